"""The page as a file: whole, self-contained, the same every time, and safe whatever a text says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from bursar.report import render, write_report
from bursar.report.page import bundled, embedded
from tests.report import results
from tests.report.results import KINDS, make_corpus, make_reliability, make_result

BETTER = {"MT-AVG": (0.4, 0.6, 0.72, 0.8), "RANDOM": (0.4, 0.5, 0.6, 0.7)}
HOSTILE = (
    "<script>window.hacked = 1</script> & </script><!-- <img src=x onerror=hacked=1>",
    'say "hi" \u2028 \u2029 \u202e reversed',
    "]]> </style> {{ 7 * 7 }} %{x} $x$",
)


class Outline(HTMLParser):
    """The elements, attributes and texts of a page, as a browser would take them apart."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[tuple[str, str]] = []  # the element it stands in, and the text
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        self.texts.append((self._open[-1] if self._open else "", data))


def shown(page: str) -> str:
    """What a reader sees: the texts outside scripts and styles."""
    found = "".join(text for tag, text in Outline(page).texts if tag not in ("script", "style"))
    return re.sub(r"\s+", " ", found.replace("\u202f", " "))


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# -- self-contained --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def page() -> str:
    return render(make_result(BETTER, audit=5), make_corpus())


def test_nothing_is_loaded_from_anywhere(page):
    outline = Outline(page)
    assert not [a for a in outline.attributes if a[1] in ("src", "href", "srcset", "action", "poster", "data")]
    assert not {"link", "img", "iframe", "object", "embed", "form", "base"} & set(outline.tags)
    style = "".join(text for tag, text in outline.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_forbids_the_network_and_every_script_but_that_of_the_page(page):
    policy = next(value for tag, key, value in Outline(page).attributes if (tag, key) == ("meta", "content"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    allowed = re.search(r"script-src ([^;]*)", policy)
    assert allowed is not None
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert allowed[1] == f"'sha256-{digest}'"
    assert "unsafe" not in allowed[1]


def test_a_report_is_small_enough_to_send():
    """Sixteen rounds of five tasks, two strategies, audit slices, and bars in all histograms."""
    rounds = 16
    curves = {arm: [0.4 + gain * k for k in range(rounds)] for arm, gain in (("MT-AVG", 0.015), ("RANDOM", 0.01))}
    money = [500 * (k + 1) for k in range(rounds)]
    reliability = dict.fromkeys(KINDS, make_reliability(*((40, k / 15 + 0.03, k / 15) for k in range(15))))

    def fill(found):
        for record in found["arms"]["MT-AVG"]["confidence"]:
            record |= {"pool": dict.fromkeys(KINDS, [50] * 20), "chosen": dict.fromkeys(KINDS, [5] * 20)}

    result = make_result(curves, tasks=tuple(KINDS), money=money, audit=12, reliability=reliability, edit=fill)
    assert len(render(result, make_corpus(tuple(KINDS))).encode()) < 1_000_000


def test_the_scripts_of_a_report_are_one_that_imports_nothing():
    script = bundled("static/elements.js", "static/charts.js", "page.js")
    assert "\nimport " not in f"\n{script}"
    for function in ("el", "svg", "plot", "ticks"):
        assert script.count(f"function {function}(") == 1


def test_the_same_result_gives_the_same_page(page):
    assert page == render(make_result(BETTER, audit=5), make_corpus())


def test_the_page_says_nothing_of_the_folder_a_corpus_lies_in():
    source = {"source": "/home/somebody/secret/flights.jsonl"}
    result = make_result(config={"corpus": source}, edit=lambda found: found["corpus"].update(source))
    page = render(result, make_corpus())
    assert "flights.jsonl" in page
    assert "somebody" not in page


def test_every_chart_has_words_and_the_curves_have_a_table(page):
    outline = Outline(page)
    labels = [value for tag, key, value in outline.attributes if (tag, key) == ("div", "aria-label")]
    assert any("MT-AVG from 40.0" in label and "random from 40.0" in label for label in labels)
    assert "Every point of the curves" in shown(page)
    assert "72.0 %" in shown(page)


# -- texts are texts -------------------------------------------------------------------------------------------------
def test_a_hostile_text_never_becomes_markup():
    calm = Outline(render(make_result(BETTER), make_corpus(texts=("a b c",) * 3)))
    page = render(make_result(BETTER), make_corpus(texts=HOSTILE))
    outline = Outline(page)
    assert outline.tags == calm.tags
    assert "<img" not in page
    for text in ("script> & </script><!-- <img src=x onerror=hacked=1>", "{{ 7 * 7 }}"):
        assert text in shown(page)


def test_hostile_names_never_become_markup(monkeypatch):
    name = "<img src=x onerror=alert(1)></script><a href='javascript:x'>%{x}"
    monkeypatch.setitem(results.KINDS, name, KINDS["intent"])
    monkeypatch.setitem(results.METRICS, name, "accuracy")
    page = render(make_result(BETTER, tasks=(name,)), make_corpus((name,)))
    assert {"img", "a"}.isdisjoint(Outline(page).tags)
    assert name in shown(page)
    assert any(name in bar["text"] for bar in data_of(page)["spending"]["bars"])  # the script puts texts in as texts


def test_embedded_json_cannot_end_its_element_and_reads_back():
    data = {"text": "</script><!--<script>&\u2028\u2029😀"}
    text = embedded(data)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == data


# -- odd runs --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", range(1, 6))
def test_one_to_five_tasks_of_any_kind(count):
    tasks = tuple(KINDS)[:count]
    page = render(make_result(BETTER, tasks=tasks), make_corpus(tasks))
    curves = [key for key in data_of(page) if key.startswith("curve-")]
    assert len(curves) == (1 if count == 1 else count + 1)  # and the mean of several
    assert all(name in shown(page) for name in tasks)


def test_labels_of_every_kind_can_be_read():
    text = shown(render(make_result(tasks=tuple(KINDS)), make_corpus(tuple(KINDS))))
    assert "wake (method) → used-for → at (task)" in text
    assert "me: obj of wake" in text
    assert "0.25" in text


def test_one_strategy_alone():
    page = render(make_result(), make_corpus())
    assert "latest scores" not in shown(page)
    assert len(data_of(page)["curve-0"]["lines"]) == 1


def test_without_a_test_set_the_audit_slices_are_drawn():
    page = render(make_result(BETTER, test=False, audit=5), make_corpus())
    chart = data_of(page)["curve-0"]
    assert [[at[1] for at in line["points"]] for line in chart["lines"]] == [[40.0, 60.0, 72.0]]
    assert [mark["high"] - mark["low"] for mark in chart["marks"]] == pytest.approx([20, 20, 20])
    assert "There is no test set" in shown(page)


def test_slices_too_small_for_an_interval_are_not_drawn_beside_a_curve():
    page = render(make_result(BETTER, audit=5), make_corpus())
    assert "marks" not in data_of(page)["curve-0"]
    assert "too small for an interval" in shown(page)
    page = render(make_result(BETTER, money=(500, 1000, 1500, 2000), audit=12), make_corpus())
    assert len(data_of(page)["curve-0"]["marks"]) == 3


def test_no_score_at_all():
    page = render(make_result(test=False), make_corpus())
    assert "Nothing has been scored yet" in shown(page)
    assert {key.split("-")[0] for key in data_of(page)} == {"confidence", "spending"}


def test_a_run_that_has_not_begun():
    page = render(make_result({"MT-AVG": ()}, money=(100,), ended=None), make_corpus())
    assert "has not bought anything yet" in shown(page)
    assert data_of(page) == {}


def test_a_campaign_of_no_rounds():
    page = render(make_result({"MT-AVG": (0.4,), "RANDOM": (0.4,)}, money=(100,)), make_corpus())
    assert data_of(page)["curve-mean"]["lines"][0]["points"][0][1] == 40.0
    assert "has not used a model to select items" in shown(page)


def test_a_run_in_progress_says_so():
    page = render(make_result({"MT-AVG": (0.4, 0.6)}, money=(100, 200, 300), ended=None), make_corpus())
    assert "In progress: 1 of 2 rounds done" in shown(page)


def test_random_alone_has_no_confidences():
    page = render(make_result({"RANDOM": (0.4, 0.5)}, money=(100, 200)), make_corpus())
    assert "Random has not used a model to select items" in shown(page)


def test_images_are_shown_by_their_ids():
    tasks = ("intent",)
    page = render(make_result(tasks=tasks), make_corpus(tasks, texts=(None, None, None)))
    assert "Item u1" in shown(page)


def test_a_long_text_is_cut_at_a_word_and_says_so():
    page = render(make_result(), make_corpus(texts=("word " * 1000, "a b c", "d e f")))
    assert "more characters" in shown(page)
    assert page.count("word word word") < 1000


def test_texts_of_any_script_keep_their_direction():
    text = "أيقظني في السابعة 😀 👩‍👩‍👧"
    page = render(make_result(), make_corpus(texts=(text, "a b c", "d e f")))
    assert "السابعة" in shown(page)
    assert ("p", "dir", "auto") in Outline(page).attributes


# -- the file --------------------------------------------------------------------------------------------------------
def run_in(folder: Path) -> SimpleNamespace:
    return SimpleNamespace(
        folder=folder, result=lambda: make_result(BETTER), parts=SimpleNamespace(corpus=make_corpus())
    )


def test_the_report_lies_in_the_run_folder_unless_told_otherwise(tmp_path):
    assert write_report(run_in(tmp_path)) == tmp_path / "report.html"
    assert write_report(run_in(tmp_path), tmp_path / "other.html") == tmp_path / "other.html"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.html", "report.html"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_report_that_fails_leaves_the_old_one_alone(tmp_path):
    path = write_report(run_in(tmp_path))
    before = path.read_bytes()
    broken = run_in(tmp_path)
    broken.parts = SimpleNamespace(corpus=make_corpus(texts=("only one item",)))
    with pytest.raises(Exception, match="no such item"):
        write_report(broken)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
