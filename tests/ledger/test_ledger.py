"""The ledger loses nothing, charges nothing twice, and never changes what it holds."""

from __future__ import annotations

import json
import sqlite3
import threading

import numpy as np
import pytest
import sqlalchemy as sa

from bursar.corpus import CorpusBuilder
from bursar.errors import DataError, LedgerError
from bursar.ledger import Annotation, Charge, Ledger, Submission
from bursar.ledger import schema as tables


def corpus():
    builder = CorpusBuilder(
        {
            "intent": {"kind": "classification", "labels": ["alarm", "music"]},
            "slots": {"kind": "tagging", "labels": ["time"]},
            "urgency": {"kind": "regression"},
        }
    )
    for number in range(6):
        builder.add(f"u{number}", text=f"wake me at seven number {number}")
    return builder.build()


def bought(key="k", item="u1", label="alarm", cost=3, **more):
    return Submission(key, (Annotation(item, "intent", label),), (Charge(item, "intent", cost, cost),), **more)


@pytest.fixture
def ledger(tmp_path):
    opened = Ledger.open(tmp_path / "ledger.sqlite", corpus())
    yield opened
    opened.close()


def test_what_was_submitted_is_there_after_opening_again(tmp_path):
    first = Ledger.open(tmp_path / "l.sqlite", corpus())
    first.submit(bought())
    first.close()
    again = Ledger.open(tmp_path / "l.sqlite", corpus())
    assert again.view()[0].labels == {"intent": "alarm"}
    assert again.spent() == 3


def test_a_submission_sent_twice_is_recorded_and_charged_once(ledger):
    assert not ledger.submit(bought()).repeated
    assert ledger.submit(bought()).repeated
    assert ledger.spent() == 3
    assert len(ledger.view()) == 1


def test_a_key_used_for_other_content_is_refused_and_changes_nothing(ledger):
    ledger.submit(bought())
    before = ledger.fingerprint()
    with pytest.raises(LedgerError, match="used before"):
        ledger.submit(bought(label="music"))
    assert ledger.fingerprint() == before


def test_a_correction_is_a_new_entry_and_the_newest_counts(ledger):
    ledger.submit(bought())
    ledger.submit(bought("fix", label="music", cost=0, purpose="correction"))
    assert ledger.view()[0].labels == {"intent": "music"}
    with sqlite3.connect(ledger.where) as raw:
        assert [json.loads(row[0]) for row in raw.execute("SELECT label FROM entries")] == ["alarm", "music"]


def test_taking_back_hides_a_label_but_keeps_its_entry_and_its_cost(ledger):
    ledger.submit(bought())
    ledger.submit(bought("back", label=None, cost=0, purpose="correction"))
    assert len(ledger.view()) == 0
    assert ledger.spent() == 3


@pytest.mark.parametrize("table", ["submissions", "entries", "charges", "decisions"])
@pytest.mark.parametrize("verb", ["UPDATE {} SET id = id", "DELETE FROM {}"])
def test_nobody_can_change_or_remove_a_row(ledger, table, verb):
    ledger.submit(bought())
    ledger.decide((0, "selection", {"items": []}))
    with sqlite3.connect(ledger.where) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(verb.format(table))


@pytest.mark.parametrize(
    ("submission", "said"),
    [
        (bought(item="nobody"), "nobody"),
        (Submission("k", (Annotation("u1", "mood", "glad"),)), "mood"),
        (bought(label="sport"), "sport"),
        (Submission("k", (Annotation("u1", "slots", [[0, 99, "time"]]),)), "99"),
        (Submission("k", (Annotation("u1", "urgency", 7),)), "7"),
        (bought(cost=-1), "-1"),
        (bought(cost=0.5), "0.5"),
        (Submission("", (Annotation("u1", "intent", "alarm"),)), "key"),
        (Submission("k", ()), "annotation"),
        (Submission("k", (Annotation("u1", "intent", "alarm"),), (Charge("u1", "tea", 1, 1),)), "tea"),
    ],
)
def test_what_could_not_be_read_back_is_refused_by_name_and_leaves_no_trace(ledger, submission, said):
    before = ledger.fingerprint()
    with pytest.raises((LedgerError, DataError), match=said):
        ledger.submit(submission)
    assert ledger.fingerprint() == before


def test_one_bad_annotation_refuses_the_whole_submission(ledger):
    both = Submission("k", (Annotation("u1", "intent", "alarm"), Annotation("u2", "intent", "sport")))
    with pytest.raises(LedgerError, match="u2"):
        ledger.submit(both)
    assert len(ledger.view()) == 0


def test_a_view_of_some_ids_holds_those_and_no_others(ledger):
    for number in range(4):
        ledger.submit(bought(f"k{number}", item=f"u{number}"))
    assert ledger.view(["u3", "u1"]).ids.tolist() == ["u1", "u3"]
    assert len(ledger.view([])) == 0


def test_a_view_never_shows_gold_that_was_not_bought(ledger):
    builder = CorpusBuilder({"intent": {"kind": "classification"}})
    builder.add("a", text="x", labels={"intent": "secret"})
    builder.add("b", text="y", labels={"intent": "secret"})
    fresh = Ledger.open(":memory:", builder.build())
    fresh.submit(Submission("k", (Annotation("a", "intent", "secret"),)))
    assert fresh.view().ids.tolist() == ["a"]


def test_every_kind_of_label_comes_back_as_it_went_in(ledger):
    said = {"intent": "music", "slots": [[2, 4, "time"]], "urgency": 0.25}
    ledger.submit(Submission("k", tuple(Annotation("u2", task, label) for task, label in said.items())))
    assert ledger.view()[0].labels == said


def test_decisions_stand_once_made(ledger):
    ledger.decide((1, "selection", {"items": ["u1"]}))
    ledger.decide((1, "selection", {"items": ["u1"]}))
    with pytest.raises(LedgerError, match="another selection"):
        ledger.decide((2, "selection", {}), (1, "selection", {"items": ["u2"]}))
    assert ledger.decision(1, "selection") == {"items": ["u1"]}
    assert ledger.decision(2, "selection") is None


def test_spending_adds_up_by_round_purpose_and_thing(ledger):
    ledger.submit(
        Submission(
            "a",
            (Annotation("u1", "intent", "alarm"),),
            (Charge("u1", "reading", 6, 6), Charge("u1", "intent", 3, 4)),
            round=1,
        )
    )
    ledger.submit(bought("b", item="u2", round=2, purpose="audit"))
    assert ledger.spent() == 13
    assert ledger.spent(round=2) == 3
    assert ledger.spent_on(["u1"]) == 10
    assert sum(row["actual"] for row in ledger.spending()) == 13
    assert {(row["round"], row["purpose"], row["what"]) for row in ledger.spending()} == {
        (1, "strategy", "reading"),
        (1, "strategy", "intent"),
        (2, "audit", "intent"),
    }


def test_a_ledger_of_a_newer_bursar_is_refused(tmp_path):
    path = tmp_path / "l.sqlite"
    Ledger.open(path, corpus()).close()
    with sqlite3.connect(path) as raw:
        raw.execute("INSERT INTO versions VALUES (99, 'later')")
    with pytest.raises(LedgerError, match="upgrade Bursar"):
        Ledger.open(path, corpus())


def test_an_older_ledger_is_brought_up_to_date_and_keeps_its_rows(tmp_path, monkeypatch):
    path = tmp_path / "l.sqlite"
    old = Ledger.open(path, corpus())
    old.submit(bought())
    old.close()

    def add_a_table(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE notes (id INTEGER PRIMARY KEY)")

    monkeypatch.setattr(tables, "MIGRATIONS", [*tables.MIGRATIONS, add_a_table])
    new = Ledger.open(path, corpus())
    assert new.spent() == 3
    new.close()
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT max(version) FROM versions").fetchone() == (2,)
        raw.execute("SELECT * FROM notes")


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "l.sqlite"
    Ledger.open(path, corpus()).close()

    def half_way(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE half (id INTEGER PRIMARY KEY)")
        raise RuntimeError("power cut")

    monkeypatch.setattr(tables, "MIGRATIONS", [*tables.MIGRATIONS, half_way])
    with pytest.raises(RuntimeError):
        Ledger.open(path, corpus())
    with sqlite3.connect(path) as raw:
        names = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "half" not in names


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "l.sqlite"
    path.write_bytes(b"certainly not a database, but long enough to look at" * 20)
    with pytest.raises(LedgerError, match=r"l\.sqlite"):
        Ledger.open(path, corpus())


def test_two_openers_of_one_file_lose_nothing(tmp_path):
    path = tmp_path / "l.sqlite"
    Ledger.open(path, corpus()).close()
    errors = []

    def write(name: str) -> None:
        mine = Ledger.open(path, corpus())
        try:
            for number in range(25):
                mine.submit(bought(f"{name}{number}", item=f"u{number % 6}"))
        except Exception as wrong:
            errors.append(wrong)
        finally:
            mine.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert Ledger.open(path, corpus()).spent() == 150


def test_fingerprints_tell_ledgers_apart_and_ignore_the_clock(tmp_path):
    one, two, three = (Ledger.open(tmp_path / f"{n}.sqlite", corpus()) for n in "abc")
    one.submit(bought())
    two.submit(bought())
    three.submit(bought(cost=4))
    assert one.fingerprint() == two.fingerprint() != three.fingerprint()


def test_a_commit_is_synchronous_and_logged_ahead(ledger):
    with ledger._reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_labels_of_many_items_are_aligned_with_them(ledger):
    rng = np.random.default_rng(0)
    said = {f"u{n}": rng.choice(["alarm", "music"]) for n in rng.permutation(6)}
    for item, label in said.items():
        ledger.submit(bought(f"k-{item}", item=item, label=str(label)))
    view = ledger.view()
    assert {view[at].id: view[at].labels["intent"] for at in range(len(view))} == said
