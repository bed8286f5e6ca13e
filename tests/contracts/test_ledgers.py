"""What every ledger owes, wherever it is kept: to lose nothing, to charge nothing twice, and never to change."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bursar.corpus import CorpusBuilder
from bursar.errors import DataError, LedgerError
from bursar.ledger import Annotation, Charge, Ledger, Skip, SpendingLine, Submission
from bursar.ledger import schema as tables
from bursar.ledger.losses import audit_entries
from tests.decisions import Choice, Note
from tests.ledger.ledgers import SQLitePlace, bought

TABLES = ["submissions", "entries", "charges", "decisions", "timings", "skips", "log"]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def untouched(request, place_for_ledger):
    """A ledger for many tests, none of which may leave a trace in it."""
    opened = place_for_ledger(request.param).open()
    yield opened
    opened.close()


def fill(ledger):
    """A little of everything."""
    ledger.submit(
        Submission(
            "a",
            (Annotation("u1", "intent", "alarm"), Annotation("u1", "slots", [[3, 4, "time"]])),
            (Charge("u1", "reading", 6, 6), Charge("u1", "intent", 3, 4)),
            round=1,
            annotator="Ann",
            timings=(("reading", 3.25), ("intent", 1)),
        )
    )
    ledger.submit(bought("b", label="music", role="overlap", annotator="Bob", round=1))
    ledger.submit(bought("c", item="u2", role="overlap", annotator="Bob", round=1))
    ledger.submit(bought("d", label="music", cost=0, role="adjudication", annotator="Eve", round=1))
    ledger.skip(Skip("s", "u3", "no idea", task="slots", round=1, annotator="Ann"))
    ledger.decide(Choice(round=1, items=["u1", "u2"]))


# -- once, and for good ------------------------------------------------------------------------------------------------
def test_what_was_submitted_is_there_after_opening_again(ledger_place):
    assert not Ledger.exists(ledger_place.place)
    first = ledger_place.open()
    first.submit(bought())
    first.close()
    assert Ledger.exists(ledger_place.place)
    again = ledger_place.open()
    assert again.view()[0].labels == {"intent": "alarm"}
    assert again.spent() == 3
    again.close()


def test_a_submission_sent_twice_is_recorded_and_charged_once(ledger):
    assert not ledger.submit(bought()).repeated
    assert ledger.submit(bought()).repeated
    assert ledger.spent() == 3
    assert len(ledger.view()) == 1


def test_a_submission_sent_again_after_a_longer_while_is_still_the_same(ledger):
    assert not ledger.submit(bought(timings=(("intent", 1.5),))).repeated
    assert ledger.submit(bought(timings=(("intent", 60.0),))).repeated
    assert [timing.seconds for timing in ledger.timings()] == [1.5]


def test_a_key_used_for_other_content_is_refused_and_changes_nothing(ledger):
    ledger.submit(bought())
    before = ledger.fingerprint()
    for other in ({"label": "music"}, {"role": "overlap"}, {"annotator": "Bob"}, {"cost": 4}, {"round": 1}):
        with pytest.raises(LedgerError, match="used before for another submission"):
            ledger.submit(bought(**other))
    assert ledger.fingerprint() == before


def test_a_skip_sent_twice_is_recorded_once_and_its_key_means_nothing_else(ledger):
    skip = Skip("k", "u1", "not English", annotator="Ann", round=2)
    assert not ledger.skip(skip).repeated
    assert ledger.skip(skip).repeated
    for other in ({"reason": "too long"}, {"task": "intent"}, {"item": "u2"}, {"annotator": "Bob"}, {"round": 3}):
        with pytest.raises(LedgerError, match="used before for another skip"):
            ledger.skip(dataclasses.replace(skip, **other))
    ledger.skip(Skip("l", "u2", "no idea", task="slots"))
    assert ledger.skips() == [skip, Skip("l", "u2", "no idea", task="slots")]
    assert ledger.skips("u1") == [skip]
    assert ledger.skips("u1")[0].created_at > "2020"


def test_nobody_can_change_or_remove_a_row(ledger, ledger_place):
    fill(ledger)
    statements = ["UPDATE {0} SET id = id", "DELETE FROM {0}"]
    statements.append(
        "TRUNCATE {0} CASCADE" if ledger_place.engine == "postgresql" else "REPLACE INTO {0} SELECT * FROM {0}"
    )
    for table in TABLES:
        before = ledger_place.raw(f"SELECT * FROM {table}")
        assert before
        for statement in statements:
            with pytest.raises(Exception, match="append-only"):
                ledger_place.raw(statement.format(table))
        assert ledger_place.raw(f"SELECT * FROM {table}") == before


def test_rows_are_numbered_without_a_gap_also_after_refusals(ledger, ledger_place):
    for number in range(3):
        ledger.submit(bought(f"k{number}", item=f"u{number}"))
        with pytest.raises(LedgerError):
            ledger.submit(bought(f"k{number}", item="u5"))
        ledger.decide(Choice(round=number, items=number))
        with pytest.raises(LedgerError):
            ledger.decide(Note(round=number, text=1), Choice(round=number, items="another"))
    for table in ("submissions", "entries", "charges", "decisions"):
        assert ledger_place.raw(f"SELECT id FROM {table} ORDER BY id") == [(1,), (2,), (3,)]


# -- what is refused ---------------------------------------------------------------------------------------------------
two_items = (Annotation("u1", "intent", "alarm"), Annotation("u2", "intent", "alarm"))


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
        (bought(cost=2**63), "not a whole, non-negative amount"),
        (Submission("", (Annotation("u1", "intent", "alarm"),)), "key"),
        (Submission("k", ()), "annotation"),
        (Submission("k", (Annotation("u1", "intent", "alarm"),), (Charge("u1", "tea", 1, 1),)), "tea"),
        (Submission("k", two_items[:1], (Charge("u\0", "intent", 1, 1),)), "no text"),
        (bought("a\0b"), "no text"),
        (bought("\ud800"), "no text"),
        (bought(7), "no text"),
        (bought(annotator="\0"), "no text"),
        (bought(round=2**31), "is not a round number"),
        (bought(round="1"), "is not a round number"),
        (bought(role="boss"), "use answer, overlap, adjudication, correction"),
        (bought(timings=(("intent", -1.0),)), "-1.0 is not a number of seconds"),
        (bought(timings=(("intent", float("nan")),)), "nan is not a number of seconds"),
        (bought(timings=(("intent", "long"),)), "'long' is not a number of seconds"),
        (bought(timings=(("tea", 1.0),)), "no task 'tea' to time"),
        (bought(timings=(("intent", 1.0), ("intent", 2.0))), "timed twice"),
        (Submission("k", two_items, timings=(("reading", 1.0),)), "one item"),
    ],
)
def test_what_could_not_be_read_back_is_refused_by_name_and_leaves_no_trace(untouched, submission, said):
    with pytest.raises((LedgerError, DataError), match=said):
        untouched.submit(submission)
    assert not untouched.keys()
    assert not untouched.answers()
    assert not untouched.timings()


@pytest.mark.parametrize(
    ("skip", "said"),
    [
        (Skip("", "u1", "why"), "key"),
        (Skip("k", "u1", " "), "reason"),
        (Skip("k", "nobody", "why"), "nobody"),
        (Skip("k", "u1", "why", task="mood"), "mood"),
        (Skip("k", "u1", "\0"), "no text"),
        (Skip("k", "u1", "why", round=2**40), "round"),
    ],
)
def test_a_skip_of_nothing_or_for_no_reason_is_refused(untouched, skip, said):
    with pytest.raises((LedgerError, DataError), match=said):
        untouched.skip(skip)
    assert not untouched.skips()


def test_one_bad_annotation_refuses_the_whole_submission(untouched):
    both = Submission("k", (Annotation("u1", "intent", "alarm"), Annotation("u2", "intent", "sport")))
    with pytest.raises(LedgerError, match="u2"):
        untouched.submit(both)
    assert len(untouched.view()) == 0


# -- what stands -------------------------------------------------------------------------------------------------------
def test_a_correction_is_a_new_entry_and_the_newest_counts(ledger):
    ledger.submit(bought())
    ledger.submit(bought("fix", label="music", cost=0, purpose="correction"))
    assert ledger.view()[0].labels == {"intent": "music"}
    assert [answer.labels["intent"] for answer in ledger.answers()] == ["alarm", "music"]


def test_taking_back_hides_a_label_but_keeps_its_entry_and_its_cost(ledger):
    ledger.submit(bought())
    ledger.submit(bought("back", label=None, cost=0, role="correction"))
    assert len(ledger.view()) == 0
    assert ledger.spent() == 3
    ledger.submit(bought("anew"))
    assert ledger.view()[0].labels == {"intent": "alarm"}


def test_an_overlap_is_kept_and_paid_but_neither_seen_nor_bought_until_it_is_adjudicated(ledger):
    ledger.submit(bought("o", role="overlap", annotator="Bob"))
    assert len(ledger.view()) == 0
    assert ledger.bought() == []
    ledger.submit(bought("a", label="music", annotator="Ann"))
    assert ledger.view()[0].labels == {"intent": "music"}
    ledger.submit(bought("j", cost=0, role="adjudication", annotator="Eve"))
    ledger.submit(bought("p", label="music", role="answer", annotator="Ann"))
    assert ledger.view()[0].labels == {"intent": "alarm"}
    assert ledger.bought() == ["u1"]
    assert ledger.spent() == 9
    assert ledger.annotators() == ["Ann", "Bob", "Eve"]


def test_answers_tell_who_said_what_when_and_how_long_it_took(ledger):
    fill(ledger)
    found = [(a.key, a.item, a.labels, a.annotator, a.role, a.round, a.seconds) for a in ledger.answers()]
    both = {"intent": "alarm", "slots": [[3, 4, "time"]]}
    assert found == [
        ("a", "u1", both, "Ann", "answer", 1, {"reading": 3.25, "intent": 1.0}),
        ("b", "u1", {"intent": "music"}, "Bob", "overlap", 1, {}),
        ("c", "u2", {"intent": "alarm"}, "Bob", "overlap", 1, {}),
        ("d", "u1", {"intent": "music"}, "Eve", "adjudication", 1, {}),
    ]
    assert [answer.key for answer in ledger.answers("u2")] == ["c"]
    assert all(answer.created_at > "2020" for answer in ledger.answers())
    assert [(t.item, t.what, t.seconds, t.annotator, t.round) for t in ledger.timings()] == [
        ("u1", "reading", 3.25, "Ann", 1),
        ("u1", "intent", 1.0, "Ann", 1),
    ]


def test_a_view_of_some_ids_holds_those_and_no_others(ledger):
    for number in range(4):
        ledger.submit(bought(f"k{number}", item=f"u{number}"))
    assert ledger.view(["u3", "u1"]).ids.tolist() == ["u1", "u3"]
    assert len(ledger.view([])) == 0


def test_a_view_never_shows_gold_that_was_not_bought(ledger_place):
    builder = CorpusBuilder({"intent": {"kind": "classification"}})
    builder.add("a", text="x", labels={"intent": "secret"})
    builder.add("b", text="y", labels={"intent": "secret"})
    fresh = ledger_place.open(builder.build())
    fresh.submit(Submission("k", (Annotation("a", "intent", "secret"),)))
    assert fresh.view().ids.tolist() == ["a"]
    fresh.close()


def test_every_kind_of_label_comes_back_as_it_went_in(ledger):
    said = {"intent": "music", "slots": [[2, 4, "time"]], "urgency": 0.25}
    ledger.submit(Submission("k", tuple(Annotation("u2", task, label) for task, label in said.items())))
    assert ledger.view()[0].labels == said


def test_labels_of_many_items_are_aligned_with_them(ledger):
    rng = np.random.default_rng(0)
    said = {f"u{n}": rng.choice(["alarm", "music"]) for n in rng.permutation(6)}
    for item, label in said.items():
        ledger.submit(bought(f"k-{item}", item=item, label=str(label)))
    view = ledger.view()
    assert {view[at].id: view[at].labels["intent"] for at in range(len(view))} == said


STRANGE = [
    "naïve 日本語 🙂",
    "é",
    "e\u0301",
    "'; DROP TABLE entries; --",
    "%s %(key)s :key",
    "\\ \" '\t\x1f",
    "ﷺ" * 20_000,
]


def test_any_text_of_any_length_comes_back_as_it_went_in(ledger_place):
    """As a label, an id, a key, a name and a reason; and no other text is taken for it."""
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": STRANGE}})
    for text in STRANGE:
        builder.add(text, text="x")
    ledger = ledger_place.open(builder.build())
    for at, text in enumerate(STRANGE):
        said, paid = (Annotation(text, "intent", text),), (Charge(text, "intent", 2, 2),)
        sent = [ledger.submit(Submission(text, said, paid, annotator=text, purpose=text)) for _ in range(2)]
        assert [receipt.repeated for receipt in sent] == [False, True]
        assert [ledger.skip(Skip(text, text, f"{text}\n", annotator=text)).repeated for _ in range(2)] == [False, True]
        ledger.decide(Note(round=at, text={text: text}))
        assert [answer.labels for answer in ledger.answers(text)] == [{"intent": text}]
        assert [skip.reason for skip in ledger.skips(text)] == [f"{text}\n"]
        assert ledger.bought(purposes=[text]) == [text]
        assert ledger.spent(purpose=text) == ledger.spent_on([text]) == 2
        assert ledger.decision(Note, at).text == {text: text}
    assert [(item.id, item.labels["intent"]) for item in ledger.view()] == [(text, text) for text in STRANGE]
    assert ledger.keys() == set(STRANGE)
    assert ledger.annotators() == sorted(STRANGE)
    ledger.close()


# -- decisions and money -----------------------------------------------------------------------------------------------
def test_decisions_stand_once_made(ledger):
    ledger.decide(Choice(round=1, items=["u1"]))
    ledger.decide(Choice(round=1, items=["u1"]))
    with pytest.raises(LedgerError, match="another choice"):
        ledger.decide(Choice(round=2), Choice(round=1, items=["u2"]))
    assert ledger.decision(Choice, 1) == Choice(round=1, items=["u1"])
    assert ledger.decision(Choice, 2) is None
    assert ledger.decided(Choice) == [1]


def test_spending_adds_up_by_round_purpose_and_thing_in_whole_numbers(ledger):
    both = (Charge("u1", "reading", 6, 6), Charge("u1", "intent", 3, 4))
    ledger.submit(Submission("a", (Annotation("u1", "intent", "alarm"),), both, round=1))
    ledger.submit(bought("b", item="u2", round=2, purpose="audit"))
    ledger.submit(bought("c", item="u3", round=2, purpose="Zeal"))
    assert ledger.keys() == {"a", "b", "c"}
    assert ledger.keys(round=2) == {"b", "c"}
    assert ledger.spent() == 16
    assert ledger.spent(round=2) == 6
    assert ledger.spent_on(["u1"]) == 10
    rows = [
        (1, "strategy", "intent", 3, 4, 1, 1),
        (1, "strategy", "reading", 6, 6, 1, 1),
        (2, "Zeal", "intent", 3, 3, 1, 1),
        (2, "audit", "intent", 3, 3, 1, 1),
    ]
    assert ledger.spending() == [SpendingLine(*row) for row in rows]
    assert all(type(amount) is int for line in ledger.spending() for amount in (line.estimate, line.actual, line.items))


def test_an_item_that_two_people_are_paid_for_is_one_item_and_two_answers(ledger):
    for key, annotator, role in (("a", "ann", "answer"), ("b", "bob", "overlap")):
        said = (Annotation("u1", "intent", "alarm"),)
        ledger.submit(Submission(key, said, (Charge("u1", "intent", 3, 3),), round=1, annotator=annotator, role=role))
    (line,) = ledger.spending()
    assert (line.actual, line.items, line.answers) == (6, 1, 2)


def test_money_may_be_as_much_as_64_bits_hold(ledger):
    most = 2**63 - 1
    ledger.submit(bought(cost=most))
    assert ledger.spent() == most


# -- the same wherever it is kept --------------------------------------------------------------------------------------
def test_fingerprints_tell_ledgers_apart_and_ignore_clocks_seconds_and_engines(ledger, tmp_path):
    others = [SQLitePlace(tmp_path / f"{n}.sqlite").open() for n in "abcd"]
    for each in (ledger, *others):
        fill(each)
    assert {each.fingerprint() for each in others} == {ledger.fingerprint()}
    one, two, three, four = others
    one.submit(bought("e", timings=(("intent", 1.0),)))
    two.submit(bought("e", timings=(("intent", 2.0),)))
    three.submit(bought("e", role="correction"))
    four.skip(Skip("e", "u1", "why"))
    assert one.fingerprint() == two.fingerprint()
    assert len({each.fingerprint() for each in (ledger, one, three, four)}) == 4
    for each in others:
        each.close()


def test_what_is_read_is_the_same_as_from_a_file(ledger, tmp_path):
    file = SQLitePlace(tmp_path / "other.sqlite").open()
    for each in (ledger, file):
        fill(each)
        for number in range(6):
            each.submit(bought(f"k{number}", item=f"u{number}", annotator="bB"[number % 2], round=number % 3))
    assert file.view().digest() == ledger.view().digest()
    reads = ("keys", "spending", "bought", "annotators", "timings", "skips", "spent")
    for name in reads:
        assert getattr(file, name)() == getattr(ledger, name)()
    plain = [[dataclasses.replace(answer, created_at="") for answer in each.answers()] for each in (file, ledger)]
    assert plain[0] == plain[1]
    file.close()


def test_the_tables_are_those_that_queries_expect(ledger, ledger_place):
    assert ledger_place.tables() == set(tables.metadata.tables)
    for name, table in tables.metadata.tables.items():
        ledger_place.raw(f"SELECT {', '.join(table.c.keys())} FROM {name}")
    assert set(TABLES) == set(tables.metadata.tables) - {"versions"}


def test_the_log_has_an_entry_with_a_digest_for_everything_that_was_recorded(ledger, ledger_place):
    fill(ledger)
    odd = {"round": True, "annotator": "Zoë 😀 \u2028", "timings": (("intent", -0.0), ("reading", 1e-300))}
    ledger.submit(bought("odd", item="u4", label=None, cost=2**62, **odd))
    ledger.decide(Note(round=2, text=7), Choice(round=2, items={"z": 0.1}))
    kinds = [kind for (kind,) in ledger_place.raw("SELECT kind FROM log ORDER BY id")]
    assert kinds == ["ledger", *4 * ["submission"], "skip", "decision", "submission", "decision", "decision"]
    assert audit_entries(ledger_place.place) == (len(kinds) - 1, [])


# -- versions ----------------------------------------------------------------------------------------------------------
def with_another(monkeypatch, *statements):
    def step(connection):
        for statement in statements:
            connection.exec_driver_sql(statement)

    monkeypatch.setattr(tables, "STEPS", [*tables.STEPS, step])


def test_a_ledger_of_a_newer_bursar_is_refused(ledger, ledger_place):
    ledger_place.raw("INSERT INTO versions VALUES (99, 'later')")
    with pytest.raises(LedgerError, match="upgrade Bursar"):
        ledger_place.open()


def test_an_older_ledger_is_brought_up_to_date_and_keeps_its_rows(ledger, ledger_place, monkeypatch):
    fill(ledger)
    before = ledger.fingerprint()
    newest = len(tables.STEPS) + 1
    with_another(monkeypatch, "CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    again = ledger_place.open()
    assert again.fingerprint() == before
    again.close()
    assert ledger_place.raw("SELECT max(version) FROM versions") == [(newest,)]
    assert "notes" in ledger_place.tables()


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(ledger, ledger_place, monkeypatch):
    half = ("CREATE TABLE half (id INTEGER PRIMARY KEY)", "ALTER TABLE submissions ADD COLUMN x TEXT", "nonsense")
    with_another(monkeypatch, *half)
    with pytest.raises(LedgerError, match="nonsense"):
        ledger_place.open()
    assert "half" not in ledger_place.tables()
    monkeypatch.undo()
    assert not ledger.submit(bought()).repeated


def test_a_skip_that_is_undone_counts_no_more_and_stays_to_be_read(ledger):
    for key, item in (("k", "u1"), ("l", "u2")):
        ledger.skip(Skip(key, item, "not English", annotator="Ann", round=2))
    ledger.undo_skip("k", "Lea")
    before = ledger.fingerprint()
    assert ledger.undo_skip("k", "Max").undone_by == "Lea"  # the same again changes nothing
    assert ledger.fingerprint() == before
    assert [skip.key for skip in ledger.skips()] == ["l"]
    first, second = ledger.skips(undone=True)
    assert (first.key, first.reason, first.undone_by, second.undone_by) == ("k", "not English", "Lea", None)
    assert first.undone_at >= first.created_at
    assert ledger.skip(Skip("k", "u1", "not English", annotator="Ann", round=2)).repeated
    assert ledger.skips("u1") == []
    with pytest.raises(LedgerError, match="no skip under the key 'm'"):
        ledger.undo_skip("m", "Lea")
