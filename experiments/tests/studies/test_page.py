"""The page of a study: answers first, the paper's figures beside ours, and nothing that is not there."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from experiments.studies.figures import picture_of
from experiments.studies.findings import Answer, Cell, Figure, Findings, Line, Table
from experiments.studies.page import Coverage, render_study, shown_table, write_study_report
from experiments.studies.study import STUDIES, Results, Study
from tests.report.test_page import Outline, data_of, shown

HOSTILE = "<img src=x onerror=hacked=1></script><!-- {{ 7 * 7 }} %{x} \u2028 & --ink"
UNITS = [{"seed": seed, "strategy": arm} for seed in (0, 1, 2) for arm in ("MT-R", "MT-AVG", "MT-MAX")]
DOMAINS = ["email", "reviews"]


def make_figures(name: str = "MT-AVG") -> list[Figure]:
    """One of every kind, in two panels where that differs."""
    up = [Line(name, [50, 100], [60.0, 70.5], [59, 69], [61, 72], panel) for panel in DOMAINS]
    flat = [Line("MT-R", [50, 100], [55.0, None], panel=panel) for panel in DOMAINS]
    grid = [Line(row, [0.25, 0.75], [3 * k, 4 + k]) for k, row in enumerate(("0.25", "0.75"))]
    return [
        Figure("Figure 4", "Scores by items", "lines", "items", "F1", [*up, *flat], note="Three seeds."),
        Figure("Figure 3", "The best", "bars", "domain", "F1", [Line(name, DOMAINS, [70.0, -2.0], [69, -3], [71, 0])]),
        Figure("Figure 7", "Gain by agreement", "points", "agreement", "gain", [Line(name, [0.1, 0.9], [1.0, 2.0])]),
        Figure("Figure 5", "Accuracy by confidence", "heat", "confidence", "accuracy", grid),
    ]


def make_findings(name: str = "MT-AVG", **changed) -> Findings:
    rows = {name: [Cell(80.04, 1.52, 84.53), Cell(91.0, 0.4, 92.27)], "MT-R": [Cell(81.3, 0.2, 82.11), Cell(88.0)]}
    found = {
        "headline": f"{name} wins where it counts.",
        "answers": [
            Answer("Q3.1", "Does exact spending help?", "yes", f"{name} is 2.1 points above.", "Yes, in all setups."),
            Answer("Q3.2", "Does active learning add to it?", "not decided here", "+0.4 points, p = 0.5.", "Mostly."),
            Answer("Q3.3", "Is joint annotation better?", "no", "It loses by 1.9 points.", "Yes."),
        ],
        "tables": [Table("Table 8", "Decisions", ["slots", "intent"], rows, note="Final scores.")],
        "figures": make_figures(name),
        "sizes": {"pool": "2,000 items at most", "budget": "5 rounds of 500 units"},
        "cut": ["RoBERTa: one encoder here"],
    }
    return Findings(**found | changed)


def make_study(findings: Findings | None = None, title: str = "Slots and intents") -> Study:
    return Study(
        "granularity-test",
        title,
        "paper 1, section 7",
        lambda scale: UNITS,
        print,
        lambda runs, scale: findings or make_findings(),
    )


COMMAND = "python -m experiments run granularity --scale small"


def make_results(finished: int = len(UNITS), **changed) -> Results:
    runs = [{"unit": unit, "result": {"seconds": 1800.0}} for unit in UNITS[:finished]]
    found = {
        "study": "granularity-test",
        "scale": "small",
        "command": COMMAND,
    }
    return Results(**found | {"runs": runs, "total": len(UNITS), "versions": {"torch": "2.13.0"}} | changed)


@pytest.fixture(scope="module")
def page() -> str:
    return render_study(make_results(), make_findings(), make_study())


# -- what it says -----------------------------------------------------------------------------------------------------
def test_the_headline_and_the_answers_are_on_top(page):
    text = shown(page)
    order = ["wins where it counts", "Does exact spending help?", "Is joint annotation better?", "Table 8", "Figure 4"]
    places = [text.index(words) for words in [*order, "How it was run"]]
    assert places == sorted(places)


def test_every_answer_has_its_question_verdict_reason_and_the_papers_own(page):
    for words in ("Q3.2", "Does active learning add to it?", "+0.4 points, p = 0.5.", "The paper: Mostly."):
        assert words in shown(page)
    badges = re.findall(r'<span class="badge (\w+)">([^<]*)</span>', page)
    assert badges == [("good", "yes"), ("open", "not decided here"), ("poor", "no")]


def test_the_papers_figure_stands_beneath_ours(page):
    cells = [" ".join(re.sub(r"<[^>]*>", "", cell).split()) for cell in re.findall(r"<td class=.*?</td>", page, re.S)]
    assert cells[:4] == ["80.0 ± 1.5paper 84.5", "91.0 ± 0.4paper 92.3", "81.3 ± 0.2paper 82.1", "88.0paper –"]


def test_the_best_of_a_column_is_marked_for_ours_and_for_the_paper_each_by_itself():
    rows = {"A": [Cell(80.0, None, 84.5), Cell(0.3)], "B": [Cell(81.0, None, 82.1), Cell(0.2)]}
    table = shown_table(Table("Table 8", "Decisions", ["slots", "calibration error"], rows, best=("high", "low")))
    marks = {name: [(cell.best, cell.best_in_paper) for cell in cells] for name, cells, _ in table.rows}
    assert marks == {"A": [(False, True), (False, False)], "B": [(True, False), (True, False)]}


def test_equal_figures_are_marked_together_and_a_single_one_is_not_marked():
    rows = {"A": [Cell(80.04), Cell(1.0), Cell(5.0)], "B": [Cell(80.01), Cell(None), Cell(5.0)]}
    rows["C"] = [Cell(70.0), Cell(None), Cell(5.0)]
    table = shown_table(Table("T", "", ["a", "b", "c"], rows))
    assert [[cell.best for cell in cells] for _, cells, _ in table.rows] == [[True, False, False]] * 2 + [[False] * 3]


def test_columns_that_are_not_better_or_worse_have_no_best():
    rows = {"A": [Cell(0.01)] * 3, "B": [Cell(0.9)] * 3}
    table = shown_table(Table("T", "Against random", ["p (Holm)", "low", "high"], rows, best=""))
    assert not table.marked


def test_the_lowest_error_is_the_best_but_not_the_lowest_score_beside_it():
    rows = {"A": [Cell(0.01), Cell(90.0)], "B": [Cell(0.09), Cell(95.0)]}
    table = shown_table(Table("T", "Overconfidence error", ["email", "mean_accuracy"], rows, best=("low", "high")))
    assert [[cell.best for cell in cells] for _, cells, _ in table.rows] == [[True, False], [False, True]]


def test_a_table_without_the_papers_figures_does_not_speak_of_the_paper():
    findings = Findings("…", tables=[Table("Ours", "alone", ["slots"], {"A": [Cell(1.0)], "B": [Cell(2.0)]})])
    assert "paper’s" not in shown(render_study(make_results(), findings, make_study()))


def test_how_it_was_run_is_told(page):
    text = shown(page)
    for words in ("2,000 items at most", "RoBERTa: one encoder here", "4 h 30 min", "16,200 core-seconds", "2.13.0"):
        assert words in text
    assert COMMAND in text
    assert "all 9 units of seeds 0, 1 and 2" in text


# -- how much of it there is ------------------------------------------------------------------------------------------
def test_an_unfinished_study_says_so_on_top():
    text = shown(render_study(make_results(7), make_findings(), make_study()))
    said = "This study is not finished: 7 of 9 units; seeds 0 and 1 whole."
    assert text.index(said) < text.index("wins where it counts")
    assert "Complete" not in text


@pytest.mark.parametrize(
    ("finished", "said"),
    [(0, "0 of 9 units"), (2, "2 of 9 units; no seed whole yet"), (3, "3 of 9 units; seed 0 whole")],
)
def test_coverage_in_words(finished, said):
    assert Coverage.of(make_results(finished), make_study()).words == said


def test_a_study_whose_grid_grew_is_not_finished_any_more():
    grown = [*UNITS, {"seed": 2, "strategy": "MT-PAR"}]
    study = Study("s", "t", "ours", lambda scale: grown, print, lambda runs, scale: make_findings())
    assert Coverage.of(make_results(), study).words == "9 of 10 units; seeds 0 and 1 whole"


def test_units_without_a_seed_are_counted_all_the_same():
    study = Study("s", "t", "ours", lambda scale: [{"x": 1}, {"x": 2}], print, lambda runs, scale: make_findings())
    results = make_results(runs=[{"unit": {"x": 1}, "result": 5}], total=2)
    assert Coverage.of(results, study).words == "1 of 2 units"
    assert "1 of 2 units" in shown(render_study(results, make_findings(), study))


def test_a_study_with_nothing_but_a_headline_is_a_page():
    assert "Nothing yet." in shown(render_study(make_results(0), Findings("Nothing yet."), make_study()))


# -- figures ----------------------------------------------------------------------------------------------------------
def test_figures_have_a_chart_for_each_panel_with_words_and_a_table(page):
    assert list(data_of(page)) == ["figure-0-0", "figure-0-1", "figure-1-0", "figure-2-0", "figure-3-0"]
    labels = [value for _, key, value in Outline(page).attributes if key == "aria-label"]
    assert "Line chart. F1 by items: MT-AVG from 60 to 70.5 and MT-R 55." in labels
    assert page.count("Figure as a table") == 4


def test_a_line_keeps_its_look_in_all_panels_and_the_papers_line_shares_its_colour():
    lines = [Line(name, [1, 2], [1.0, 2.0], panel="b" if name == "B" else "a") for name in ("A", "B", "A (paper)")]
    picture = picture_of(Figure("F", "", "lines", "x", "y", [*lines, Line("A", [1], [1.0], panel="b")]), "f")
    looks = dict(picture.legend)
    assert looks["A"].colour == looks["A (paper)"].colour != looks["B"].colour
    assert looks["A"].dash != looks["A (paper)"].dash
    colours = [{line.name: line.look for line in panel.chart.lines} for panel in picture.panels]
    assert colours[0]["A"] == colours[1]["A"]


def test_intervals_are_drawn_and_bars_begin_at_zero():
    lines, bars, *_ = (picture_of(figure, "f").panels[0].chart for figure in make_figures())
    (band,) = lines.bands
    assert (band.x, band.low, band.high) == ([50, 100], [59, 69], [61, 72])
    assert [point.y for point in lines.lines[0].points] == [60.0, 70.5]
    assert [(mark.low, mark.high) for mark in bars.marks] == [(69, 71), (-3, 0)]
    assert [bar.y for bar in bars.bars] == [(0, 70.0), (0, -2.0)]


def test_rows_of_a_grid_go_up_if_they_are_numbers_and_down_if_they_are_names():
    grid = picture_of(make_figures()[3], "f").panels[0].chart
    assert grid.y.names == ("0.25", "0.75")
    assert [(cell.row, cell.column, cell.label) for cell in grid.cells] == [
        (0, 0, ""),
        (0, 1, "4"),
        (1, 0, "3"),
        (1, 1, "5"),
    ]
    named = Figure("F", "", "heat", "", "", [Line(name, ["A", "B"], [1.0, 0.5]) for name in "AB"])
    assert picture_of(named, "f").panels[0].chart.y.names == ("B", "A")


def test_figures_that_are_no_numbers_leave_gaps():
    lines = [Line("A", ["x", "y", "z"], [1.0, None, float("nan")], [0, 0, 0], [2, 2, 2])]
    findings = Findings("…", figures=[Figure("F", "", kind, "", "y", lines) for kind in ("lines", "bars", "points")])
    lines, bars, points = data_of(render_study(make_results(), findings, make_study())).values()
    for chart in (lines, points):
        assert [at[1] for at in chart["lines"][0]["points"]] == [1.0, None, None]
    assert [bar["y"] for bar in bars["bars"]] == [[0.0, 1.0]]


def test_a_figure_of_nothing_says_so():
    findings = Findings("…", tables=[Table("T", "", ["a"], {})], figures=[Figure("F", "", "lines", "", "", [])])
    text = shown(render_study(make_results(), findings, make_study()))
    assert "Too little is finished for this table" in text
    assert "Too little is finished for this figure" in text


# -- texts are texts, and the file is whole ---------------------------------------------------------------------------
def hostile_page() -> str:
    findings = make_findings(
        HOSTILE,
        answers=[Answer(HOSTILE, HOSTILE, "yes", HOSTILE, HOSTILE)],
        tables=[Table(HOSTILE, HOSTILE, [HOSTILE], {HOSTILE: [Cell(1.0, 1.0, 2.0)]}, note=HOSTILE)],
        sizes={HOSTILE: HOSTILE},
        cut=[HOSTILE],
    )
    figures = [Figure(HOSTILE, HOSTILE, f.kind, HOSTILE, HOSTILE, f.lines, HOSTILE) for f in findings.figures]
    lines = [Line(HOSTILE, [HOSTILE], [1.0], panel=HOSTILE)]
    figures += [Figure(HOSTILE, "", kind, HOSTILE, HOSTILE, lines) for kind in ("bars", "heat")]
    changed = Findings(**{**vars(findings), "figures": figures})
    results = make_results(command=HOSTILE, versions={HOSTILE: HOSTILE}, scale=HOSTILE)
    return render_study(results, changed, make_study(title=HOSTILE))


def test_hostile_names_never_become_markup():
    page = hostile_page()
    outline = Outline(page)
    assert {"img", "a", "link", "iframe"}.isdisjoint(outline.tags)
    assert [tag for tag in outline.tags if tag == "script"] == ["script"] * 2
    assert HOSTILE.split("\u2028")[0].strip() in shown(page)


def test_nothing_is_loaded_from_anywhere_and_no_script_but_the_pages_own_may_run(page):
    outline = Outline(page)
    assert not [a for a in outline.attributes if a[1] in ("src", "href", "srcset", "action", "poster", "data")]
    policy = next(value for tag, key, value in outline.attributes if (tag, key) == ("meta", "content"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.split("script-src ")[1].split(";")[0]


def test_the_page_is_written_by_the_studys_own_findings_and_is_the_same_every_time(tmp_path, monkeypatch):
    monkeypatch.setitem(STUDIES._entries, "granularity-test", make_study())
    path = write_study_report(make_results(), tmp_path / "deep" / "page.html")
    assert path.read_text(encoding="utf-8") == render_study(make_results(), make_findings(), make_study())
    assert "Nothing has been run yet" in shown(write_study_report(make_results(0), path).read_text(encoding="utf-8"))


# -- in a browser -----------------------------------------------------------------------------------------------------
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """The hostile page in a tab, with what went wrong in it and what it asked the network for."""
    path = tmp_path_factory.mktemp("page") / "study.html"
    path.write_text(hostile_page(), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 844})
    found = SimpleNamespace(tab=tab, errors=[], requests=[])
    tab.on("console", lambda message: found.errors.append(message.text))
    tab.on("pageerror", lambda error: found.errors.append(str(error)))
    tab.on("request", lambda request: found.requests.append(request.url))
    tab.goto(path.as_uri())
    yield found
    tab.close()


@pytest.mark.browser
def test_the_page_opens_offline_without_a_request_or_an_error(opened):
    places = opened.tab.locator(".plot").count()
    assert places == 7
    assert opened.tab.locator(".plot > svg").count() == places
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert len(opened.requests) == 1
    assert opened.tab.evaluate("window.hacked") is None
    assert opened.tab.locator("img").count() == 0


@pytest.mark.browser
def test_a_phone_is_not_too_narrow(opened):
    opened.tab.set_viewport_size({"width": 390, "height": 844})
    opened.tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for _ in range(50):
        if opened.tab.evaluate(OVERFLOW) <= 0:
            break
        opened.tab.wait_for_timeout(100)
    assert opened.tab.evaluate(OVERFLOW) <= 0
