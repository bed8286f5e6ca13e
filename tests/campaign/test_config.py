"""A campaign file is checked, and what is wrong is said with the key and the fix."""

from __future__ import annotations

import pytest

from bursar.campaign import load_config
from bursar.campaign.config import parse_config
from bursar.errors import ConfigError


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"budget": {"per_round": "much"}}, "budget.per_round"),
        ({"budget": {"rounds": -1}}, "budget.rounds"),
        ({"budget": {"seed_items": 0}}, "budget.seed_items"),
        ({"budget": {"round": 3}}, "patience, per_round"),
        ({"bugdet": {}}, "bugdet"),
        ({"strategy": {"name": "MT-AVGG"}}, "did you mean 'MT-AVG'"),
        ({"compare": ["RANDOMLY"]}, "RANDOM"),
        ({"learner": {"name": "oracle"}}, "there is no learner 'oracle'"),
        ({"audit": {"share": 1.0}}, "audit.share"),
        ({"seed": "seven"}, "seed"),
        ({"name": "../escape"}, "name"),
        ({"tasks": "intent"}, "tasks"),
        ({"costs": {"pricing": "free"}}, "costs.pricing"),
    ],
)
def test_a_wrong_key_is_named_with_what_would_be_right(table, said):
    with pytest.raises(ConfigError) as caught:
        parse_config(table, "campaign.toml")
    assert said in str(caught.value)
    assert "campaign.toml" in str(caught.value)


def test_a_file_that_is_not_there_not_toml_or_not_text_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("budget = [")
    with pytest.raises(ConfigError, match=r"bad\.toml is not valid TOML"):
        load_config(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bytes\.toml"):
        load_config(tmp_path / "bytes.toml")


WHOLE = 'name = "spring"\ntasks = ["intent", "slots"]\n\n[budget]\nper_round = 500\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"# tasks = ['intent']\n# nothing else\n", "is empty"),
        (WHOLE[:16].encode(), "names no tasks and no corpus"),
        (WHOLE[:35].encode(), "is not valid TOML"),
        (WHOLE[:-5].rstrip(" =5").encode(), "is not valid TOML"),
        (b"tasks = []\n[corpus]\n", "names no tasks and no corpus"),
        (b"[budget]\nrounds = 3\n", "names no tasks and no corpus"),
        (bytes(range(256)), "cannot be read as text"),
        (b"\x00" * 40, "is not valid TOML"),
        (b"tasks = " + b"[" * 5000, "is not valid TOML"),
    ],
)
def test_a_file_that_is_empty_cut_off_or_no_campaign_is_refused_with_what_it_needs(tmp_path, content, said):
    (tmp_path / "spring.toml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "spring.toml")
    assert f"{tmp_path / 'spring.toml'} {said}" in caught.value.message
    assert "tasks" in caught.value.fix
    assert "[corpus]" in caught.value.fix


def test_a_relative_corpus_is_found_beside_the_file(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "c.toml").write_text('[corpus]\nsource = "data.jsonl"\n')
    assert load_config(tmp_path / "c.toml").corpus.source == str(tmp_path / "data.jsonl")


def test_the_name_of_a_campaign_is_that_of_its_file(tmp_path):
    (tmp_path / "spring.toml").write_text('tasks = ["intent"]')
    assert load_config(tmp_path / "spring.toml").name == "spring"


def test_the_digest_tells_apart_what_changes_results_and_nothing_else():
    plain = parse_config({})
    assert plain.digest == parse_config({"name": "other", "compare": ["RANDOM"]}).digest
    assert plain.digest != parse_config({"seed": 1}).digest
    assert plain.digest != parse_config({"learner": {"epochs": 3}}).digest


def test_a_campaign_that_was_written_down_is_the_same_campaign():
    for table in ({}, {"budget": {"per_round": 500}}, {"budget": {"per_round": 80}, "costs": {"hourly": 9}}):
        config = parse_config(table)
        assert parse_config(config.model_dump(mode="json")).digest == config.digest
    assert parse_config({"budget": {"per_round": 500}}).digest == parse_config({}).digest
