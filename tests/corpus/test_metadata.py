"""Cells of tables as people see them, tasks in a few words, and names that formats expect."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from bursar.corpus.formats.table_files import listed_lines
from bursar.corpus.formats.tables import table_format
from bursar.corpus.formats.write_checks import suggest_task_names
from bursar.corpus.metadata import Metadata, shown_cell
from bursar.corpus.schema import describe_task
from bursar.simulation.grammar import gerund_of
from bursar.tasks import Classification, Tagging


def test_cells_are_shown_as_people_read_them() -> None:
    shown = [shown_cell(cell) for cell in (datetime(2026, 5, 1, 9, 30), 5.0, True, ["a", 1])]
    assert shown == ["2026-05-01 09:30", "5", "true", '["a", 1]']


def test_the_column_of_the_text_has_a_place_and_no_cells() -> None:
    found = Metadata.of({"Ticket": [7, 8], "Body": ["call me", "stop"]}, text="Body")
    assert (found.order, found.row(1)) == (("Ticket", "Body"), {"Ticket": 8})


def test_empty_cells_are_not_shown() -> None:
    found = Metadata.of({"Ticket": [7.0], "Day": [datetime(2026, 5, 1)], "Agent": [None]}).shown(0)
    assert found == [{"name": "Ticket", "value": "7"}, {"name": "Day", "value": "2026-05-01"}]


def test_a_list_of_names_is_a_list_of_classes() -> None:
    assert describe_task(["refund", "order"]) == {"kind": "classification", "labels": ["refund", "order"]}


def test_a_task_is_given_the_name_of_the_only_one_of_its_kind() -> None:
    places = {"label": Classification("label"), "entities": Tagging("entities")}
    assert suggest_task_names({"intent": Classification("intent", ("alarm", "music"))}, places) == {"intent": "label"}
    assert suggest_task_names({"a": Classification("a"), "b": Classification("b")}, places) == {}


def test_the_format_of_a_table_is_that_of_its_name() -> None:
    assert table_format(Path("m.xlsx")) == "xlsx"
    assert table_format(Path("m.csv.gz")) == "csv"
    assert table_format(Path("train.conll")) is None


def test_lines_are_listed_up_to_five() -> None:
    assert listed_lines([5]) == "line 5"
    assert listed_lines(range(1, 9)) == "lines 1, 2, 3, 4, 5 and 3 more"


def test_verbs_of_the_built_in_corpus_get_their_ing_form() -> None:
    assert [gerund_of(verb) for verb in ("set", "make", "play", "see")] == ["setting", "making", "playing", "seeing"]
