"""A campaign whose ledger a server keeps is the same campaign, and no password of it is written anywhere."""

from __future__ import annotations

import json

import pytest

from bursar.campaign import Run, load_config, run_campaign
from bursar.campaign.config import parse_config
from bursar.errors import ConfigError
from bursar.ledger import Ledger
from tests.campaign.small import config_of
from tests.postgres import GUARDED, PASSWORD

BUDGET = {"seed_items": 20, "per_round": 100, "rounds": 1}
URL = "postgresql://name@host/team?schema=spring"


def small(**more):
    return config_of(compare=["RANDOM"], budget=BUDGET, **more)


def ledgers(run):
    return [run.open_ledger(arm) for arm in run.arms]


def test_a_run_on_a_server_has_the_ledgers_of_one_in_files_and_can_be_taken_up_from_them(
    tmp_path, place_for_ledger, monkeypatch
):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    place = place_for_ledger("postgresql")
    on_server = {"url": place.server.url(GUARDED, schema=place.schema)}
    runs = [Run(tmp_path / "files", small()), Run(tmp_path / "server", small(ledger=on_server))]
    results = [run_campaign(run).to_json() for run in runs]
    assert results[1].pop("config").pop("ledger") == on_server
    results[0].pop("config")
    assert json.dumps(results[0]) == json.dumps(results[1])
    opened = [ledgers(run) for run in runs]
    assert [x.fingerprint() for x in opened[0]] == [x.fingerprint() for x in opened[1]]
    schema = place.schema.replace(" ", "+")
    assert [x.where.rpartition("schema=")[2] for x in opened[1]] == [schema, f"{schema}%2FRANDOM"]
    again = Run(tmp_path / "another machine", small(ledger=on_server))
    run_campaign(again)
    assert [x.fingerprint() for x in ledgers(again)] == [x.fingerprint() for x in opened[0]]
    assert not list(tmp_path.glob("server/**/ledger.sqlite"))
    assert Run.open(tmp_path / "server").config.ledger.url == on_server["url"]
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes()
    for each in [*opened[0], *opened[1]]:
        each.close()


def test_another_campaign_in_the_same_schema_is_refused_and_leaves_no_run_behind(tmp_path, place_for_ledger):
    place = place_for_ledger("postgresql")
    run_campaign(Run(tmp_path / "one", config_of(budget=BUDGET, ledger={"url": place.place})))
    other = Run(tmp_path / "two", config_of(budget=BUDGET, seed=1, ledger={"url": place.place}))
    with pytest.raises(ConfigError, match=r"two was started with other settings.*another schema"):
        run_campaign(other)
    assert not (tmp_path / "two" / "campaign.json").exists()
    campaign = other.campaign(other.arms[0])
    with pytest.raises(ConfigError, match=r"schema=test.* was started with other settings.*choose another schema"):
        campaign.ask()
    campaign.close()


def test_a_run_does_not_begin_anew_because_its_ledger_is_looked_for_elsewhere(tmp_path, place_for_ledger):
    place = place_for_ledger("postgresql")
    run_campaign(Run(tmp_path / "run", config_of(budget=BUDGET)))
    moved = Run(tmp_path / "run", config_of(budget=BUDGET, ledger={"url": place.place}))
    with pytest.raises(ConfigError, match="ledger in another place"):
        run_campaign(moved)
    assert not Ledger.exists(place.place)


def test_where_the_ledger_is_changes_no_digest():
    plain, kept = config_of(), config_of(ledger={"url": URL})
    assert plain.digest == kept.digest
    assert plain.model_dump()["ledger"] is None
    assert kept.model_dump()["ledger"] == {"url": URL}
    assert kept.arm("RANDOM").ledger.url == "postgresql://name@host/team?schema=spring%2FRANDOM"
    assert plain.arm("RANDOM").ledger is None


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"url": "postgresql://name:hidden@host/db"}, "PGPASSWORD"),
        ({"url": "postgresql://name@host/db?password=hidden"}, "PGPASSWORD"),
        ({"url": "mysql://name:hidden@host/db"}, "mysql://"),
        ({"url": "postgresql://name:hidden@host:x/db"}, "cannot be read"),
        ({"url": "hidden.sqlite"}, "cannot be read"),
        ({"url": 5}, 'for instance ledger.url = "postgresql://'),
        ({"url": ["postgresql://name:hidden@host/db"]}, 'for instance ledger.url = "postgresql://'),
        ("postgresql://name:hidden@host/db", 'for instance ledger = {"url": "postgresql://'),
        ({}, "ledger.url: Field required"),
        ({"uri": "postgresql://name:hidden@host/db", "url": URL}, "Use url"),
    ],
)
def test_a_wrong_address_is_refused_with_the_key_and_without_the_password(section, said):
    with pytest.raises(ConfigError) as caught:
        parse_config({"ledger": section}, "campaign.toml")
    assert said in str(caught.value)
    assert "campaign.toml" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_the_section_is_read_from_a_file(tmp_path):
    (tmp_path / "spring.toml").write_text(f'tasks = ["intent"]\n[ledger]\nurl = "{URL}"\n')
    assert load_config(tmp_path / "spring.toml").ledger.url == URL
