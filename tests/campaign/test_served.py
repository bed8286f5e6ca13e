"""A strategy that the learner cannot serve is refused before anything is trained; every other one buys a round."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bursar.annotation.settings import choices, strategies
from bursar.campaign import Campaign, GoldAnnotator, Run, run_campaign
from bursar.campaign.checks import check_arms, check_served
from bursar.campaign.config import parse_config
from bursar.campaign.decisions import RoundSelection
from bursar.campaign.splits import load_parts
from bursar.corpus import CorpusBuilder
from bursar.errors import BursarError, ConfigError, LearnerError
from bursar.learners import LEARNERS, make_learner
from bursar.learners.learner import PASSES, VECTORS, gives
from bursar.simulation import assistant_corpus
from experiments.studies.arms import Arm, Place, Setup, config_of
from tests.campaign.small import config_of as small
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")

TASKS = ("intent", "slots")
NAMES = [one["name"] for one in strategies(TASKS)]
THINNED = ("MT-AVGDA", "MT-DA-", "ST-DA-", "BALD", "VARIATION-RATIO", "BATCHBALD")
PLACED = ("K-CENTER", "BADGE", "COVER", "COVER-LABELS")
OURS = ("transformer", "bilstm", "cnn", "aoe", "image-cnn", "probe", "scikit")
WITH_DROPOUT, WITHOUT_VECTORS = ("transformer",), ("scikit",)
QUICK = {name: {"epochs": 1, "evaluate_every": 1} for name in ("transformer", "bilstm", "cnn", "aoe")}
QUICK |= {"scikit": {"estimator": "naive-bayes"}, "probe": {}}


def wanting(name: str, bins: str = "length") -> set[str]:
    """What a strategy needs, by its name."""
    placed = name.startswith(PLACED) or (bins == "cluster" and name.endswith("+IDMR"))
    return ({PASSES} if name.startswith(THINNED) else set()) | ({VECTORS} if placed else set())


def served(name: str, learner: str, bins: str = "length", dropout: bool = False) -> bool:
    lacking = wanting(name, bins)
    if learner in WITH_DROPOUT or dropout:
        lacking -= {PASSES}
    return not (lacking if learner in WITHOUT_VECTORS else lacking - {VECTORS})


def is_refused(**table) -> str:
    """What is said against a campaign; nothing if nothing is."""
    try:
        check_served(parse_config(table))
    except ConfigError as wrong:
        return str(wrong)
    return ""


def test_these_learners_come_with_the_package():
    assert set(OURS) <= set(LEARNERS)


@pytest.mark.parametrize("learner", OURS)
def test_a_strategy_is_refused_if_the_learner_does_not_give_what_it_needs(learner):
    for name, bins in itertools.product(NAMES, ("length", "cluster")):
        for full in (name, f"{name}+IDMR"):
            if full != "EQB-DJS+IDMR":
                said = is_refused(strategy={"name": full, "bins": bins}, learner={"name": learner})
                assert bool(said) != served(full, learner, bins), (full, said)
                if said:
                    assert f"strategy {full} needs" in said
                    assert repr(learner) in said
                    assert "transformer" in said.partition("Fix: ")[2]
                    assert "MT-AVG" in said.partition("Fix: ")[2]


@pytest.mark.parametrize("learner", ["bilstm", "cnn", "aoe", "image-cnn"])
def test_a_small_network_with_dropout_serves_all(learner):
    assert "set learner.dropout = 0.5" in is_refused(strategy={"name": "BALD"}, learner={"name": learner})
    assert not any(is_refused(strategy={"name": name}, learner={"name": learner, "dropout": 0.2}) for name in NAMES)


def test_of_a_learner_that_says_nothing_nothing_is_refused():
    LEARNERS.add("silent", lambda tasks: None)
    try:
        assert gives("silent") is None
        assert not is_refused(strategy={"name": "BALD"}, learner={"name": "silent"})
    finally:
        LEARNERS._entries.pop("silent")


# -- what is declared is so ---
@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder")))


def pictures():
    builder = CorpusBuilder({"side": {"kind": "classification", "labels": ["left", "right"]}})
    for number, image in enumerate(np.random.default_rng(0).integers(255, size=(20, 16, 16), dtype=np.uint8)):
        builder.add(f"i{number}", image=image, labels={"side": ("left", "right")[number % 2]})
    return builder.build()


def options_of(learner, encoder):
    return QUICK.get(learner, {"epochs": 1}) | ({"encoder": encoder} if learner in ("transformer", "probe") else {})


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, {}) for name in OURS),
        ("bilstm", {"dropout": 0.5}),
        ("cnn", {"dropout": 0.5}),
        ("transformer", {"dropout": 0.0}),
    ],
)
def test_a_learner_gives_what_it_says_and_nothing_else(name, more, encoder):
    corpus = pictures() if name == "image-cnn" else assistant_corpus(60, seed=2).with_tasks(list(TASKS))
    options = options_of(name, encoder) | more
    learner = make_learner(name, corpus.schema, options)
    learner.fit(corpus.take(np.arange(20)))
    items, given = corpus.take(np.arange(5)), gives(name, options)
    try:
        passes = next(iter(learner.predict_proba(items, passes=3).values())).values
        assert (PASSES in given) == bool(np.ptp(passes, axis=0).any())
    except LearnerError:
        assert PASSES not in given
    try:
        assert len(learner.vectors(items)) == 5
        assert VECTORS in given
    except LearnerError:
        assert VECTORS not in given


# -- what is not refused buys a round ---
SAMPLED = [
    (name, [learner for learner in QUICK if served(name, learner)][at % sum(served(name, one) for one in QUICK)])
    for at, name in enumerate(NAMES)
]


@pytest.fixture(scope="module")
def parts():
    return load_parts(tiny_campaign("MT-AVG", "scikit", {}))


def tiny_campaign(strategy, learner, options):
    return small(
        strategy={"name": strategy},
        learner={"name": learner, **options},
        corpus={"items": 120, "pool_items": 30, "test_items": 4, "dev_items": 4},
        budget={"seed_items": 8, "per_round": 40, "rounds": 1},
        audit={"share": 0.0, "shadow": False},
    )


@pytest.mark.parametrize(("strategy", "learner"), SAMPLED)
def test_a_strategy_that_is_not_refused_buys_a_round(strategy, learner, parts, encoder, tmp_path):
    config = tiny_campaign(strategy, learner, options_of(learner, encoder))
    check_arms(config, parts.corpus)
    campaign = Campaign(config, tmp_path, parts=parts)
    gold = GoldAnnotator(parts.corpus)
    for want in campaign.ask().items:
        campaign.tell({want.id: gold.annotate(want.id, want.tasks)})
    bought = campaign.ask()
    campaign.close()
    assert bought.round == 1
    assert bought.items


# -- wherever a campaign begins ---
UNSERVED = {"strategy": {"name": "BALD"}, "learner": {"name": "scikit"}}
BESIDE = {"compare": ["RANDOM", "BALD"], "learner": {"name": "scikit"}}


@pytest.mark.parametrize("changes", [UNSERVED, BESIDE])
def test_no_arm_is_run_and_nothing_is_written(tmp_path, changes):
    table = {"tasks": list(TASKS), "corpus": {"items": 120}, "budget": {"seed_items": 8}}
    with pytest.raises(ConfigError, match="strategy BALD needs dropout passes, which the learner 'scikit'"):
        run_campaign(Run(tmp_path / "run", parse_config(table | changes)))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("compare", ["MT-EC-slot", "BATCHBALD"])
def test_an_arm_beside_that_could_choose_no_round_is_refused_before_the_first_has_run(tmp_path, compare):
    table = {"tasks": ["slots"], "corpus": {"items": 120}, "budget": {"seed_items": 8}, "compare": [compare]}
    with pytest.raises(ConfigError, match="slots"):
        run_campaign(Run(tmp_path / "run", parse_config(table)))
    assert not (tmp_path / "run").exists()


def test_a_campaign_from_python_is_refused_before_its_seed_items_are_asked_for(tmp_path):
    campaign = Campaign(tiny_campaign("VARIATION-RATIO-intent", "probe", {}), tmp_path)
    with pytest.raises(ConfigError, match="needs dropout passes"):
        campaign.ask()
    assert campaign.ledger.decisions(RoundSelection) == []
    campaign.close()


def test_an_arm_of_a_study_is_refused_before_it_is_trained(tmp_path):
    setup = Setup(pool=40, dev=5, test=5, start=8, per_round=4, rounds=1, learner={"dropout": 0.0, "encoder": "cnn"})
    arm = Arm(data="builtin", tasks=TASKS, strategy="MT-AVGDA", setup=setup, seed=0)
    with pytest.raises(BursarError, match="strategy MT-AVGDA needs dropout passes"):
        config_of(arm, Place(tmp_path, tmp_path))


def test_a_lead_is_offered_what_the_learner_can_serve():
    tasks = assistant_corpus(60).with_tasks(list(TASKS)).schema
    for learner in OURS:
        found = choices(parse_config({"learner": {"name": learner}}), tasks, has_groups=False)
        assert [one["name"] for one in found["strategies"]] == [name for name in NAMES if served(name, learner)]
        assert ("cluster" in found["bins"]) == (learner not in WITHOUT_VECTORS)


def test_the_strategy_in_force_is_offered_even_so():
    tasks = assistant_corpus(60).with_tasks(list(TASKS)).schema
    found = choices(parse_config(UNSERVED), tasks, has_groups=False)
    assert "BALD" in [one["name"] for one in found["strategies"]]
