"""What a project and a loop plan with a budget, and how their settings are written."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.annotation.active_learner import plan_loop
from bursar.annotation.projects import FullCost, money_text, task_of, toml_of, usual_rounds, usual_seed_items
from bursar.campaign.config import parse_config
from bursar.corpus import CorpusBuilder
from bursar.corpus.formats.format import new_folder
from bursar.errors import ConfigError
from bursar.web.start import shortened

CAMPAIGN = """\
name = "spring"

[costs]
reading = {per_word = 2}

[budget]
rounds = 3
"""


def test_a_loop_plans_rounds_of_items_or_of_money():
    # 460 items are left after the 40 seed items: ten rounds, and twice as many and one are allowed.
    by_item = {"counts": "items", "total": 500.0, "seed_items": 40, "per_round": 46.0, "rounds": 21}
    assert plan_loop(500, None, 2000).budget == by_item
    # 100 items of 0.5: the batch size is that of the seed items too, so four rounds of 20 are left.
    by_money = {"counts": "money", "total": 50.0, "seed_items": 20, "per_round": 10.0, "rounds": 9}
    assert plan_loop(50, 0.5, 2000, batch_size=20).budget == by_money


def test_a_budget_buys_as_many_items_as_there_are_at_most():
    everything = FullCost(items=5000, price=0.024)
    assert (everything.total, everything.affordable(60.0), everything.affordable(500.0)) == (120.0, 2500, 5000)


def test_a_small_budget_has_few_seed_items_and_rounds():
    assert (usual_seed_items(500, 1000), usual_seed_items(20, 1000)) == (40, 6)
    assert [usual_rounds(items) for items in (10, 100, 5000)] == [1, 2, 10]


def test_an_amount_of_money_has_decimals_where_it_needs_them():
    assert (money_text("€", 1234.5), money_text("$", 20)) == ("€1,234.50", "$20")


def test_the_file_of_a_campaign_has_what_differs_from_the_defaults():
    settings = {"name": "spring", "budget": {"rounds": 3}, "costs": {"reading": {"per_word": 2}}}
    assert toml_of(parse_config(settings)) == CAMPAIGN


def test_a_task_without_a_kind_is_refused_with_an_example():
    with pytest.raises(ConfigError, match="as in mood:classification:good,bad"):
        task_of("mood")


def test_a_long_cell_is_cut_and_a_whole_number_has_no_decimals():
    assert (shortened("a" * 500)[-3:], shortened(7.0)) == ("aa…", "7")


def test_labels_are_taken_with_gaps():
    builder = CorpusBuilder({"slots": {"kind": "tagging", "labels": ["time"]}})
    for number in range(2):
        builder.add(f"u{number}", text="wake me", labels={"slots": [[0, 1 + number, "time"]]})
    taken = builder.build().labels["slots"].take_or_none(np.array([1, -1, 0]))
    assert taken.present.tolist() == [True, False, True]
    assert [len(rows) for rows in taken.rows] == [1, 0, 1]


def test_a_folder_appears_when_it_is_complete_or_not_at_all(tmp_path):
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "project") as draft:
        (draft / "half").write_text(str(1 / 0))
    assert list(tmp_path.iterdir()) == []
    with new_folder(tmp_path / "project") as draft:
        (draft / "whole").write_text("1")
        assert not (tmp_path / "project").exists()
    assert [path.name for path in (tmp_path / "project").iterdir()] == ["whole"]
    with pytest.raises(ConfigError, match="already exists"), new_folder(tmp_path / "project"):
        pass
