"""``bursar new``: a project from a file and a few answers, all of it or nothing."""

from __future__ import annotations

import io
import json
import shutil
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from bursar.annotation.projects import Wishes, draft_project, full_cost, parted, task_of, with_wished_tasks
from bursar.annotation.session import AnnotationSession
from bursar.campaign import Run, load_config
from bursar.corpus import CorpusBuilder
from bursar.errors import BursarError, ConfigError, SchemaError

TASKS = "intent:classification:alarm,music; slots:tagging:time,artist"
CHEAP = ("--learner", "scikit", "--yes")


def write(path, items=60, labels=lambda number: None, split=lambda number: "train"):
    lines = []
    for number in range(items):
        record = {"id": f"u{number}", "text": f"wake me at {number} please", "split": split(number)}
        if labels(number) is not None:
            record["labels"] = labels(number)
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines))
    return path


def both(number):
    return {"intent": ("alarm", "music")[number % 2], "slots": [[3, 4, ("time", "artist")[number % 2]]]}


# -- from a file without labels ---
def test_a_file_of_texts_becomes_a_project_that_can_be_opened(bursar, tmp_path):
    data = write(tmp_path / "data.jsonl")
    code, out, err = bursar("new", "project", "--from", data, "--tasks", TASKS, "--budget", 2, *CHEAP)
    assert (code, err) == (0, "")
    assert "60 to choose from" in out
    assert "no test items" in out
    assert out.rstrip().endswith("bursar serve project")
    data.unlink()  # the project has its own
    live = AnnotationSession.open(tmp_path / "project")
    purposes = [want.purpose for want in live.wanted()]
    assert set(purposes) == {"seed"}  # no development items: training needs none
    assert live.state().budget == 20_000  # two euros in hundredths of a cent
    assert live.config.costs.measured
    assert sum(sum(want.estimate.values()) for want in live.wanted()) < 10_000
    live.close()


def test_a_project_may_be_moved(bursar, tmp_path):
    data = write(tmp_path / "data.jsonl")
    bursar("new", "here", "--from", data, "--tasks", TASKS, "--budget", 2, *CHEAP)
    (tmp_path / "there").mkdir()
    shutil.move(tmp_path / "here", tmp_path / "there" / "moved")
    live = AnnotationSession.open(tmp_path / "there" / "moved")
    assert len(live.parts.pool) == 60
    live.close()


def test_its_campaign_file_says_the_same_as_the_run(bursar, tmp_path):
    data = write(tmp_path / "data.jsonl")
    bursar("new", "a b", "--from", data, "--tasks", TASKS, "--budget", 2, "--currency", '"$\\', *CHEAP)
    config = load_config(tmp_path / "a b" / "campaign.toml")
    assert config.digest == Run.open(tmp_path / "a b").config.digest
    assert tomllib.loads((tmp_path / "a b" / "campaign.toml").read_text())["costs"]["currency"] == '"$\\'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no tasks"),
        (["--tasks", TASKS], "--budget"),
        (["--tasks", TASKS, "--budget", "-3"], "-3 is not a valid budget"),
        (["--tasks", TASKS, "--budget", "nan"], "nan is not a valid budget"),
        (["--tasks", TASKS, "--budget", "0.01"], "too few"),
        (["--tasks", TASKS, "--budget", "2", "--strategy", "MT-AVGG"], "did you mean 'MT-AVG'"),
        (["--tasks", TASKS, "--budget", "2", "--learner", "oracle"], "no learner 'oracle'"),
        (["--tasks", TASKS, "--budget", "2", "--learner", "scikit", "--strategy", "BALD"], "needs dropout passes"),
        (["--tasks", TASKS, "--budget", "2", "--learner", "scikit", "--strategy", "BADGE"], "needs vectors of items"),
        (["--tasks", TASKS, "--budget", "2", "--hourly", "0"], "costs.hourly"),
        (["--tasks", TASKS, "--budget", "2", "--price", "mood.per_item=1"], "costs.mood"),
        (["--tasks", TASKS, "--budget", "2", "--price", "much"], "is not a price"),
        (["--tasks", TASKS, "--budget", "2", "--seed-items", "500"], "too few"),
        (["--tasks", "tree:parsing:a,b", "--budget", "2", "--learner", "scikit"], "tree"),
        (["--tasks", "links:relations:in:place", "--budget", "2"], "links"),
        (["--tasks", "mood", "--budget", "2"], "'mood' is not a task"),
        (["--tasks", "mood:guess:a", "--budget", "2"], "no known kind"),
        (["--tasks", "mood:classification", "--budget", "2"], "names no labels"),
        (["--tasks", "mood:classification:a,a", "--budget", "2"], "twice"),
        (["--tasks", "mood:regression:5,0", "--budget", "2"], "below high"),
        (["--tasks", "mood:regression:low", "--budget", "2"], "range"),
        (["--tasks", "reading:classification:a,b", "--budget", "2"], "reading"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(bursar, tmp_path, arguments, said):
    data = write(tmp_path / "data.jsonl")
    code, _, err = bursar("new", "project", "--from", data, "--yes", *arguments)
    assert code == 2
    assert said in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.jsonl"]


def test_without_a_terminal_what_was_not_said_is_asked_for_by_name(bursar, tmp_path):
    data = write(tmp_path / "data.jsonl")
    code, _, err = bursar("new", "project", "--from", data, "--tasks", TASKS, "--hourly", 20, "--currency", "€")
    assert code == 2
    assert "stdin is not a terminal" in err
    assert "--budget" in err


def test_at_a_terminal_questions_are_asked_until_their_answers_can_be_used(bursar, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    data = write(tmp_path / "data.jsonl")
    monkeypatch.setattr("sys.stdin", Terminal(f"mood\n{TASKS}\n\n$\nlots\n25\n2\n\n"))
    code, out, _ = bursar("new", "project", "--from", data, "--learner", "scikit")
    assert code == 0
    assert "Budget $2:" in out
    live = AnnotationSession.open(tmp_path / "project")
    assert (live.config.costs.hourly, live.config.strategy.name) == (20, "AUTO")
    live.close()


def test_a_folder_with_something_in_it_is_left_alone(bursar, tmp_path):
    data = write(tmp_path / "data.jsonl")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes.txt").write_text("mine")
    code, _, err = bursar("new", "project", "--from", data, "--tasks", TASKS, "--budget", 2, *CHEAP)
    assert code == 2
    assert "already exists" in err
    assert [path.name for path in (tmp_path / "project").iterdir()] == ["notes.txt"]


def test_a_team_keeps_its_ledger_on_a_server(bursar, tmp_path, place_for_ledger):
    place, data = place_for_ledger("postgresql"), write(tmp_path / "data.jsonl")
    wanted = ("--from", data, "--tasks", TASKS, "--budget", 2, *CHEAP)
    code, _, err = bursar("new", "project", *wanted, "--ledger", place.place)
    assert (code, err) == (0, "")
    assert not list(tmp_path.glob("project/*.sqlite"))
    assert place.raw("SELECT count(*) FROM decisions WHERE kind = 'selection'") == [(1,)]
    live = AnnotationSession.open(tmp_path / "project")
    assert len(live.wanted()) == 10
    live.close()
    code, _, err = bursar("new", "another", *wanted, "--seed", 1, "--ledger", place.place)
    assert (code, "another schema" in err) == (2, True)
    assert not (tmp_path / "another").exists()


# -- from a table ---
LETTERS = ["where is order {}", "please refund {}", "my parcel {} is late"]


def table(path, rows=60):
    """A CSV file as a German Excel writes it."""
    lines = ["Ticket;Datum;Body;Category;Nr"]
    lines += [
        f"T{n:03};0{1 + n % 9}.05.2026;{LETTERS[n % 3].format(n)} – 5 €;{'order' if n == 7 else ''};{n:04}"
        for n in range(rows)
    ]
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    return path


ASKED = ("--tasks", "intent:classification:refund,order,other", "--budget", "0.5", *CHEAP)


def test_a_table_becomes_a_project_and_what_was_found_out_is_said(bursar, tmp_path):
    data = table(tmp_path / "m.csv")
    code, out, err = bursar("new", "project", "--from", data, "--label-columns", "intent=Category", *ASKED)
    assert (code, err) == (0, "")
    assert out.startswith(
        "Read 60 items; separated by semicolons, Windows-1252, with a header; text: column 'Body'; ids: column "
        "'Ticket'; kept as metadata: Datum, Nr.\n"
    )
    assert "59 to choose from, 1 labelled already" in out
    live = AnnotationSession.open(tmp_path / "project")
    assert live.corpus.schema["intent"].labels == ("refund", "order", "other")
    assert live.item("T008") == {
        "id": "T008",
        "kind": "text",
        "text": "my parcel 8 is late – 5 €",
        "words": live.item("T008")["words"],
        "group": None,
        "metadata": [
            {"name": "Ticket", "value": "T008"},
            {"name": "Datum", "value": "09.05.2026"},
            {"name": "Nr", "value": "0008"},
        ],
    }
    assert live.corpus.metadata.row(8)["Category"] == ""  # kept, but not shown: it holds labels
    live.close()


def test_columns_may_be_named_and_their_labels_used_as_they_are(bursar, tmp_path):
    data = table(tmp_path / "m.csv")
    named = ("--text-column", "Datum", "--id-column", "Nr", "--label-columns", "intent=Category;day=Ticket")
    code, _, err = bursar("new", "p", "--from", data, *named, "--tasks", "intent", "--budget", 0.5, *CHEAP)
    assert (code, err) == (0, "")
    live = AnnotationSession.open(tmp_path / "p")
    assert live.item("0003")["text"] == "04.05.2026"
    assert list(live.corpus.schema) == ["intent", "day"]
    assert live.corpus.schema["intent"].labels == ("order",)
    live.close()


def test_labelling_everything_is_priced_before_the_budget_is_given(bursar, tmp_path):
    data = table(tmp_path / "m.csv")
    tasks, dear = ("--tasks", "intent:classification:refund,order"), ("--price", "intent.per_item=0.5")
    given = ("new", "p", "--from", data, *tasks, *dear, "--price", "reading.per_word=0", "--learner", "scikit", "--yes")
    code, _, err = bursar(*given)
    assert (code, "labelling all 60 items costs about €30: --budget has no default" in err) == (2, True)
    code, _, err = bursar(*given, "--budget", 31)
    assert (code, "a budget of €31 is more than labelling everything costs: about €30 for all 60 items" in err) == (
        2,
        True,
    )
    code, out, _ = bursar(*given, "--budget", 20)
    assert code == 0
    assert "Labelling everything costs about €30. You have €20, which buys about 40 of the 60 items." in out


@pytest.mark.parametrize(
    ("line", "arguments", "said"),
    [
        ("T9;1;a;b;order;5", (), "m.csv:9: the row has 6 cells, and the first row has 5"),
        ("T9;1;;order;5", (), "m.csv:9: column 'Body' has no text in line 9"),
        ("T9;1;a;nope;5", ("--label-columns", "intent=Category"), "m.csv:9: item 'T9': task 'intent': unknown label"),
        ("T001;1;a;order;5", ("--id-column", "Ticket"), "m.csv:9: item 'T001': this id was used before"),
        ("T9;1;a;order;5", ("--text-column", "Boddy"), "did you mean 'Body'?"),
        ("T9;1;a;order;5", ("--label-columns", "Category"), "'Category' names no task and column"),
        ("T9;1;a;order;5", ("--label-columns", "intent=Kategory"), "there is no column 'Kategory'"),
    ],
)
def test_a_bad_row_is_named_with_its_line_and_nothing_is_written(bursar, tmp_path, line, arguments, said):
    data = table(tmp_path / "m.csv")
    lines = data.read_text("cp1252").splitlines()
    data.write_text("\n".join([*lines[:8], line, *lines[10:]]), "cp1252")
    code, _, err = bursar("new", "project", "--from", data, *ASKED, *arguments)
    assert code == 2
    assert said in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.csv"]


def test_a_file_without_columns_has_none_to_name(bursar, tmp_path):
    (tmp_path / "m.txt").write_text("hello there\ngood bye\n")
    code, _, err = bursar("new", "project", "--from", "m.txt", "--text-column", "Body", *ASKED)
    assert (code, "m.txt is read as text, which has no columns to name" in err) == (2, True)


def test_a_project_is_served_as_soon_as_it_is_created_on_request(bursar, tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr("bursar.web.server.serve", lambda folder, **settings: served.append((folder, settings)))
    code, _, _ = bursar("new", "project", "--from", table(tmp_path / "m.csv"), *ASKED, "--serve")
    assert code == 0
    assert [(folder.name, settings["host"]) for folder, settings in served] == [("project", "127.0.0.1")]


# -- labels that came with the data ---
def test_labels_are_held_out_and_the_rest_is_given_to_the_model(bursar, tmp_path):
    data = write(tmp_path / "data.jsonl", 160, lambda number: both(number) if number < 100 else None)
    code, out, _ = bursar("new", "project", "--from", data, "--budget", 2, *CHEAP)
    assert code == 0
    assert "60 to choose from, 20 development, 30 test, 50 labelled already" in out
    live = AnnotationSession.open(tmp_path / "project")
    assert {want.purpose for want in live.wanted()} == {"seed"}
    assert (len(live.parts.pool), len(live.parts.dev), len(live.parts.test)) == (60, 20, 30)
    assert len(live.ledger.view()) == 50
    assert live.state().spent == 0
    apart = {live.corpus.ids[at] for at in [*live.parts.dev, *live.parts.test]}
    assert not apart & set(live.ledger.view().ids.tolist())
    live.close()


def test_a_few_labels_are_all_given_and_parts_of_labels_too(bursar, tmp_path):
    labels = {3: both(3), 4: both(4), 5: {"intent": "alarm"}}
    data = write(tmp_path / "data.jsonl", 80, labels.get)
    code, _, _ = bursar("new", "project", "--from", data, "--tasks", TASKS, "--budget", 2, *CHEAP)
    assert code == 0
    live = AnnotationSession.open(tmp_path / "project")
    view = live.ledger.view()
    assert {view[at].id: set(view[at].labels) for at in range(3)} == {
        "u3": {"intent", "slots"},
        "u4": {"intent", "slots"},
        "u5": {"intent"},
    }
    assert len(live.parts.pool) == 78  # what is labelled in part may still be asked about
    live.close()


def test_labelled_data_is_only_labelled_again_on_request(bursar, tmp_path):
    def split(number):
        return "train" if number < 60 else "test"

    data = write(tmp_path / "data.jsonl", 80, both, split)
    code, _, err = bursar("new", "project", "--from", data, "--budget", 2, *CHEAP)
    assert code == 2
    assert "--forget-labels" in err
    code, _, _ = bursar("new", "project", "--from", data, "--budget", 2, "--forget-labels", *CHEAP)
    assert code == 0
    live = AnnotationSession.open(tmp_path / "project")
    assert len(live.ledger.view()) == 0
    assert len(live.parts.test) == 20
    assert not live.corpus.take(live.parts.pool).labels["intent"].present.any()
    live.close()


def test_every_format_that_can_be_read_can_be_made_a_project_of(bursar, tmp_path):
    (tmp_path / "seq").mkdir()
    lines = [f"wake/O me/O at/O {n}/B-time" for n in range(30)]
    (tmp_path / "train.conll").write_text("\n\n".join("\n".join(w.replace("/", " ") for w in x.split()) for x in lines))
    arguments = ("new", "p", "--from", "train.conll", "--forget-labels", "--budget", 1, *CHEAP)
    code, out, err = bursar(*arguments)
    assert (code, err) == (0, "")
    assert "tagging: time" in out
    code, out, _ = bursar(
        "new",
        "q",
        "--from",
        "builtin",
        "--set",
        "items=120",
        "--forget-labels",
        "--tasks",
        "intent",
        "--budget",
        2,
        *CHEAP,
    )
    assert code == 0
    assert "test" in out


# -- the parts, by themselves ---
@pytest.mark.parametrize(
    ("text", "kind", "more"),
    [
        ("a:classification:x,y", "classification", {"labels": ["x", "y"]}),
        (" a : tagging : x , y ", "tagging", {"labels": ["x", "y"], "every_word": False}),
        ("a:regression", "regression", {"low": 0.0, "high": 1.0}),
        ("a:regression:-1,1", "regression", {"low": -1.0, "high": 1.0}),
        ("a:relations:r:x,y", "relations", {"labels": ["r"], "entity_types": ["x", "y"]}),
    ],
)
def test_a_task_is_read_as_people_write_it(text, kind, more):
    assert task_of(text).describe() == {"kind": kind} | more


def corpus_of(labels, items=10):
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    for number in range(items):
        builder.add(f"u{number}", text="some words", labels={"intent": labels[number % len(labels)]} if labels else {})
    return builder.build()


def test_more_labels_may_be_wished_for_than_the_data_has_and_no_fewer():
    corpus = corpus_of(["a", "b"])
    wider = with_wished_tasks(corpus, ["intent:classification:c,b,a"])
    assert wider.schema["intent"].labels == ("c", "b", "a")
    assert [wider[at].labels["intent"] for at in range(2)] == ["a", "b"]
    with pytest.raises(SchemaError, match="'a', which is not among"):
        with_wished_tasks(corpus, ["intent:classification:b,c"])
    with pytest.raises(SchemaError, match="is classification in the data"):
        with_wished_tasks(corpus, ["intent:tagging:a,b"])


def test_parts_depend_on_the_ids_and_the_seed_and_not_on_the_order():
    corpus = corpus_of([], 0)
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    for number in range(120):
        builder.add(f"u{number}", text="x", labels={"intent": "a"} if number < 60 else {})
    corpus = builder.build()
    shuffled = corpus.take(np.random.default_rng(0).permutation(120))

    def where(parts):
        return {parts[at].id: parts[at].split for at in range(len(parts))}

    assert where(parted(corpus)) == where(parted(shuffled))
    assert where(parted(corpus)) != where(parted(corpus, seed=1))
    assert parted(corpus).split_counts() == {"train": 60, "dev": 12, "test": 18, "given": 30}


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("items", [12, 100, 5000])
def test_a_draft_plans_within_its_budget_and_its_pool(share, items):
    budget = round(share * full_cost(corpus_of([], items), Wishes("p", 0)).total, 2)
    draft = draft_project(corpus_of([], items), Wishes("p", budget))
    plan = draft.config.budget
    assert plan.seed_items + plan.dev_items <= items
    assert plan.total == budget
    assert plan.rounds * plan.per_round <= budget + 0.01 * plan.rounds


def test_a_budget_beyond_the_pool_is_refused_with_the_sum():
    wishes = Wishes("p", 25.01, hourly=None, prices={"intent": {"per_item": 0.5}, "reading": {"per_word": 0}})
    with pytest.raises(
        ConfigError, match=r"€25\.01 is more than labelling everything costs: about €25 for all 50 items"
    ):
        draft_project(corpus_of([], 50), wishes)
    assert draft_project(corpus_of([], 50), replace(wishes, budget=25.0)).everything.affordable(10.0) == 20


def test_prices_without_an_hourly_rate_are_not_measured():
    draft = draft_project(corpus_of([], 50), Wishes("p", 20.0, hourly=None, prices={"intent": {"per_item": 0.5}}))
    assert not draft.config.costs.measured
    with pytest.raises(BursarError, match="no price"):
        draft_project(corpus_of([], 50), Wishes("p", 50.0, hourly=None))
