"""Campaigns whose trainings are led by a task policy, and those that say nothing of one."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.campaign import Campaign, GoldAnnotator, Run, load_config, run_campaign
from bursar.campaign.decisions import AuditPredictions, CampaignBegun, RoundRecord
from bursar.campaign.models import Models
from bursar.campaign.splits import load_parts
from bursar.curriculum import FixedPolicy, StepLog, make_policy
from bursar.errors import ConfigError
from tests.campaign.small import config_of
from tests.tiny import tiny_encoder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def parts():
    return load_parts(config_of())


def steered(encoder, **learner):
    usual = {"name": "transformer", "encoder": encoder, "epochs": 2, "policy": "uniform", "checkpoint_seconds": 0.0}
    return config_of(
        learner={**usual, **learner}, budget={"seed_items": 20, "per_round": 80, "rounds": 2}, audit={"share": 0.3}
    )


def annotated(parts):
    return parts.corpus.take(parts.pool[:5])


# -- what identifies a run ---
def test_the_learner_of_a_campaign_without_a_policy_is_written_as_it_was_given():
    learner = {"name": "transformer", "epochs": 3, "heads": {"slots": "crf"}}
    written = config_of(learner=learner).model_dump(mode="json", exclude_unset=True)
    assert written["learner"] == learner


def test_digests_tell_policies_apart_by_what_they_are_and_not_where_they_were_found(parts, tmp_path):
    for name in ("a.json", "b.json"):
        FixedPolicy({"intent": 1, "slots": 3}).save(tmp_path / name)
    FixedPolicy({"intent": 3, "slots": 1}).save(tmp_path / "other.json")
    table = {"name": "fixed", "weights": {"intent": 1, "slots": 3}}
    given = [None, str(tmp_path / "a.json"), str(tmp_path / "b.json"), table, str(tmp_path / "other.json"), "uniform"]
    configs = [config_of(learner={"name": "transformer", "policy": policy}) for policy in given]
    models = [Models(tmp_path, config, parts.corpus.schema)._digest(annotated(parts)) for config in configs]
    for digests in ([config.digest for config in configs], models):
        assert digests[1] == digests[2] == digests[3]
        assert len({digests[0], digests[1], digests[4], digests[5]}) == 4


def test_a_name_is_a_policy_with_all_its_defaults():
    short, long = (config_of(learner={"policy": p}) for p in ("size", {"name": "size", "temperature": 1.0}))
    assert short.digest == long.digest
    assert short.learner.policy == make_policy("size").describe()
    assert short.learner.options == {}  # the learner is not told of either key


def test_writing_logs_changes_no_result_and_so_no_digest(encoder, parts, tmp_path):
    quiet, logging = steered(encoder), steered(encoder, log_steps=True)
    assert quiet.digest == logging.digest
    quiet, logging = (Models(tmp_path, config, parts.corpus.schema) for config in (quiet, logging))
    assert quiet._digest(annotated(parts)) == logging._digest(annotated(parts))


# -- where a policy comes from ---
def test_the_file_of_a_policy_is_found_beside_the_campaigns(tmp_path, monkeypatch):
    (tmp_path / "campaigns" / "policies").mkdir(parents=True)
    file = tmp_path / "campaigns" / "policies" / "learned.json"
    FixedPolicy({"intent": 1, "slots": 3}).save(file)
    (tmp_path / "campaigns" / "c.toml").write_text('tasks = ["intent"]\n[learner]\npolicy = "policies/learned.json"\n')
    monkeypatch.chdir(tmp_path)
    assert load_config("campaigns/c.toml").learner.task_policy == FixedPolicy({"intent": 1, "slots": 3})


def test_a_table_names_a_policy_and_its_settings(tmp_path):
    policy = '[learner.policy]\nname = "size"\ntemperature = 2\n'
    (tmp_path / "c.toml").write_text(f'tasks = ["intent"]\n[learner]\nepochs = 3\n{policy}')
    learner = load_config(tmp_path / "c.toml").learner
    assert learner.task_policy == make_policy("size", temperature=2)
    assert learner.options == {"epochs": 3}


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ('policy = "exp3"', "there is no task policy 'exp3'. Fix: did you mean 'exp3s'"),
        ('policy = "none.json"', "none.json: there is no such policy file"),
        ('policy = "bad.json"', "bad.json is not a task policy"),
        ('policy = "list.json"', "list.json is not a task policy: it is not a table"),
        ('policy = "other.json"', "it has no name"),
        ("policy = 3", "learner.policy = 3"),
        ("policy = { temperature = 2 }", "name one"),
        ('policy = { name = "size", temperature = "hot" }', "temperature = 'hot'"),
        ('policy = { name = "size", heat = 2 }', "has no setting 'heat'"),
        ("log_steps = true", 'name a policy, such as learner.policy = "uniform"'),
        ('policy = "uniform"\nlog_steps = "yes"', "learner.log_steps"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_file_and_a_way_out(learner, said, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "other.json").write_text('{"weights": {}}')
    (tmp_path / "c.toml").write_text(f'tasks = ["intent"]\n[learner]\n{learner}\n')
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "c.toml")
    assert said in str(caught.value)
    assert "c.toml: learner." in str(caught.value)


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ({"policy": {"name": "fixed", "weights": {"intent": 1, "mood": 2}}}, "does not know task 'slots'"),
        (
            {"policy": {"name": "fixed", "weights": {"intent": 0, "slots": 0}}},
            "gives no weight to any of intent, slots",
        ),
        ({"name": "word-counts"}, "the learner 'WordCounts' has no training steps"),
        ({"name": "probe"}, "the learner 'probe' has no training steps that the policy 'uniform' could choose"),
        ({"name": "scikit"}, "the learner 'scikit' has no training steps"),
        ({"sharing": "single", "log_steps": True}, "each task has a model and steps of its own"),
    ],
)
def test_a_policy_that_trainings_cannot_be_led_by_is_refused_before_money_is_spent(
    learner, said, encoder, parts, tmp_path
):
    config = steered(encoder, **learner)
    if "name" in learner:  # the transformer's options are none of theirs
        config = config_of(learner={**learner, "policy": "uniform"})
    campaign = Campaign(config, tmp_path / "run", parts=parts)
    with pytest.raises(ConfigError, match=said):
        campaign.ask()
    assert campaign.ledger.decision(CampaignBegun, 0) is None
    assert campaign.ledger.spent() == 0


# -- what it does ---
def tables(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("**/logs/*.parquet"))}


def test_every_round_of_every_arm_logs_its_steps_and_no_shadow_does(encoder, parts, tmp_path):
    config = steered(encoder, log_steps=True).model_copy(update={"compare": ["MT-MAX", "ST-R"]})
    run_campaign(Run(tmp_path / "run", config, parts))
    found = tables(tmp_path / "run")
    rounds = [f"round-{number:02}.parquet" for number in range(3)]
    assert list(found) == [f"{arm}logs/{name}" for arm in ("compare/MT-MAX/", "") for name in rounds]
    ledger = Run(tmp_path / "run", config, parts).campaign("MT-AVG").ledger
    assert any(predicted.shadow is not None for predicted in ledger.decisions(AuditPredictions))
    for record in ledger.decisions(RoundRecord):  # all that was known, and not the random items alone
        log = StepLog.read(tmp_path / "run" / "logs" / f"round-{record.round:02}.parquet")
        assert dict(zip(log.tasks, log.sizes, strict=True)) == record.labels
    assert log.tasks == ("intent", "slots")
    assert log.policy == {"policy": "uniform"}
    np.testing.assert_array_equal(log.probabilities, 0.5)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_campaign_killed_while_it_trains_ends_in_the_same_ledger_and_logs(encoder, parts, tmp_path):
    config = steered(encoder, log_steps=True, policy="exp3s")
    whole = Campaign(config, tmp_path / "whole", parts=parts)
    whole.run(GoldAnnotator(parts.corpus))

    class Killer:
        def __init__(self, patience):
            self.left = patience

        def stage(self, round, what, done):
            self.left -= what.startswith("training")
            if self.left < 0:
                raise Killed

        def scored(self, record):
            pass

    for patience in (3, 5, 6):
        campaign = Campaign(config, tmp_path / "killed", parts=parts, watcher=Killer(patience))
        with pytest.raises(Killed):
            campaign.run(GoldAnnotator(parts.corpus))
        campaign.close()
    campaign = Campaign(config, tmp_path / "killed", parts=parts)
    campaign.run(GoldAnnotator(parts.corpus))
    assert campaign.ledger.fingerprint() == whole.ledger.fingerprint()
    assert tables(tmp_path / "killed") == tables(tmp_path / "whole")
    assert len(tables(tmp_path / "whole")) == 3


def test_a_run_goes_on_though_the_file_of_its_policy_is_gone_and_not_with_another_one(encoder, parts, tmp_path):
    file = tmp_path / "policy.json"
    FixedPolicy({"intent": 1, "slots": 3}).save(file)
    config = steered(encoder, policy=str(file))
    run_campaign(Run(tmp_path / "run", config, parts))
    file.unlink()
    again = Run.open(tmp_path / "run")
    assert again.config == config
    again.pin()
    other = steered(encoder, policy={"name": "fixed", "weights": {"intent": 1, "slots": 1}})
    with pytest.raises(ConfigError, match=r"learner\.policy\.weights\.slots was 3, now 1"):
        Run(tmp_path / "run", other, parts).pin()
