"""Should tasks be trained together? What is asked about, what may be looked at, and two trainings to compare."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from bursar.campaign import Run, run_campaign
from bursar.campaign.splits import load_parts
from bursar.corpus import CorpusBuilder
from bursar.corpus.corpus import Labels
from bursar.errors import ConfigError
from bursar.laws import joint_vs_single as module
from bursar.laws.joint_vs_single import (
    advice_on,
    check,
    compared,
    current_together,
    keep,
    outcome_of,
    planned_items,
    subject_of_campaign,
    subject_of_corpus,
    subject_of_run,
)
from bursar.learners import LEARNERS
from tests.campaign.small import config_of
from tests.laws.planted import planted_laws
from tests.tiny import WordCounts, tiny_encoder

LAWS = planted_laws()
SMALL = {"corpus": {"items": 500, "pool_items": 150}, "budget": {"seed_items": 20, "per_round": 150, "rounds": 1}}


class Sociable(WordCounts):
    """Learns from three items alone where a task is alone."""

    fits = 0

    def fit(self, annotated, **more):
        type(self).fits += 1
        alone = len(self.tasks) == 1
        return super().fit(annotated.take(np.arange(3)) if alone else annotated, **more)


@pytest.fixture(autouse=True)
def sociable():
    LEARNERS.add("sociable", Sociable)
    Sociable.fits = 0
    yield
    LEARNERS._entries.pop("sociable")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, word_counts):
    folder = tmp_path_factory.mktemp("finished") / "run"
    run_campaign(Run(folder, config_of(**SMALL)))
    return folder


def campaign(**changes):
    config = config_of(**{**SMALL, **changes})
    return config, load_parts(config)


def data_of(learner="sociable", **changes):
    """What is labelled of a small corpus, as if it were somebody's data."""
    return subject_of_corpus(*campaign(learner={"name": learner}, **changes), items=60)


# -- what is asked about -----------------------------------------------------------------------------------------------
def test_a_run_is_asked_about_at_what_it_has_bought(finished):
    run = Run.open(finished)
    subject = subject_of_run(run)
    opened = run.campaign(run.arms[0])
    bought = opened.ledger.view()
    opened.close()
    assert subject.units == dict.fromkeys(("intent", "slots"), int(bought.words.sum()))
    assert set(subject.labels.known.ids.tolist()) == {
        *bought.ids.tolist(),
        *run.parts.corpus.take(run.parts.dev).ids.tolist(),
    }
    assert subject.judged.ids.tolist() == run.parts.corpus.take(run.parts.test).ids.tolist()


def test_a_simulated_campaign_s_advice_depends_on_no_label_that_is_not_bought_yet():
    config, parts = campaign()
    hidden = np.concatenate([parts.pool, parts.test])
    order = np.arange(len(parts.corpus))
    order[hidden] = np.roll(hidden, 7)
    labels = {**parts.corpus.labels, "intent": parts.corpus.labels["intent"].take(order)}
    changed = replace(parts, corpus=parts.corpus.with_labels(labels))
    plain, other = (advice_on(subject_of_campaign(config, some), LAWS) for some in (parts, changed))
    assert plain["tasks"] == other["tasks"]
    assert plain["pairs"][0]["items"] == len(parts.corpus) - len(hidden)


def test_of_a_partly_labelled_pool_all_labels_are_looked_at_but_those_of_test_items():
    config, parts = campaign()
    column = parts.corpus.labels["intent"]
    gone = parts.pool[::3]
    present = column.present.copy()
    present[gone] = False
    lengths = column.rows.lengths * present
    rows = type(column.rows)(column.rows.values[present[column.rows.owners]], np.append(0, np.cumsum(lengths)))
    live = replace(parts, corpus=parts.corpus.with_labels({**parts.corpus.labels, "intent": Labels(present, rows)}))
    subject = subject_of_campaign(config, live)
    assert len(subject.labels.known) == len(parts.corpus) - len(parts.test)
    assert advice_on(subject, LAWS)["pairs"][0]["items"] == len(subject.labels.known) - len(gone)


def test_a_budget_of_items_is_as_many_items():
    budget = {"counts": "items", "seed_items": 20, "per_round": 15, "rounds": 3}
    config, parts = campaign(budget=budget)
    known = parts.corpus.take(parts.dev)
    assert planned_items(config, parts, known) == 65
    assert planned_items(config_of(**{**SMALL, "budget": {**budget, "total": 40}}), parts, known) == 40
    assert planned_items(config_of(**{**SMALL, "budget": {**budget, "rounds": 90}}), parts, known) == len(parts.pool)


def test_a_budget_of_money_is_about_as_many_items_as_random_buying_gets():
    config, parts = campaign()
    costs = config.costs.model(parts.corpus.schema.values())
    planned = planned_items(config, parts, parts.corpus.take(parts.dev))
    pool = parts.corpus.take(parts.pool)
    counts = {name: task.count(pool.labels[name].rows) for name, task in pool.schema.items()}
    price = costs.price(list(pool.schema.values()), pool.reading, counts).joint().mean()
    assert planned == pytest.approx(20 + costs.units(150) / price, rel=0.25)


def test_planned_words_follow_from_planned_items():
    config, parts = campaign()
    subject = subject_of_campaign(config, parts)
    items = planned_items(config, parts, subject.labels.known)
    assert set(subject.units.values()) == {round(items * parts.corpus.words[parts.pool].mean())}
    assert f"about {items} items" in subject.basis


def test_tasks_of_items_alone_are_counted_in_items():
    builder = CorpusBuilder({name: {"kind": "classification", "labels": ["x", "y"]} for name in ("one", "two")})
    for at in range(60):
        labels = {"one": "xy"[at % 2], "two": "xy"[at % 2]}
        builder.add(f"u{at}", text="a b c", split="train" if at < 50 else "test", labels=labels)
    corpus = builder.build()
    config = config_of(tasks=[], corpus={"pool_items": None, "dev": None})
    subject = subject_of_corpus(config, load_parts(config, corpus))
    assert (subject.units, subject.unit, subject.judged_by) == ({"one": 50, "two": 50}, "items", "test items")


# -- two trainings -----------------------------------------------------------------------------------------------------
def test_a_learner_that_is_better_in_company_is_found_to_be(tmp_path):
    found = check(data_of(), tmp_path, seeds=2)
    assert Sociable.fits == 2 * (1 + 2)
    for task in found["tasks"].values():
        assert task["verdict"] == "helps"
        assert task["gain"]["value"] == pytest.approx(task["together"] - task["alone"])
        assert 0 < task["gain"]["low"] <= task["gain"]["value"] <= task["gain"]["high"]
    assert (found["items"], found["judged"], found["judged_by"]) == (60, 40, "test items")


def test_what_is_trained_is_not_trained_again(tmp_path):
    subject = data_of()
    first = check(subject, tmp_path, seeds=1)
    assert check(subject, tmp_path, seeds=1) == first
    assert Sociable.fits == 3
    check(subject, tmp_path, seeds=2)
    assert Sociable.fits == 6


def test_a_check_that_was_stopped_ends_as_an_undisturbed_one(tmp_path):
    subject = data_of()
    whole = check(subject, tmp_path / "whole", seeds=2)

    def stop(what, done):
        if done >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(subject, tmp_path / "stopped", seeds=2, progress=stop)
    before = Sociable.fits
    assert check(subject, tmp_path / "stopped", seeds=2) == whole
    assert Sociable.fits - before < 6


def test_trainings_on_other_labels_or_of_another_learner_are_not_taken_over(tmp_path):
    check(data_of(), tmp_path, seeds=1)
    other = check(data_of("word-counts"), tmp_path, seeds=1)
    assert {task["gain"]["value"] for task in other["tasks"].values()} == {0.0}  # it has a model for each task anyhow
    assert {task["verdict"] for task in other["tasks"].values()} == {"cannot tell"}


def test_progress_is_told_of_every_training(tmp_path):
    told = []
    check(data_of(), tmp_path, seeds=1, progress=lambda what, done: told.append((what, done)))
    assert {what for what, _ in told} == {"training together, seed 0", "training alone, seed 0"}
    assert [done for _, done in told] == sorted(done for _, done in told)
    assert told[-1][1] == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learner": {"name": "probe"}}, "trains each task by itself"),
        ({"tasks": ["intent"]}, "no two tasks that can be trained separately"),
        ({"corpus": {**SMALL["corpus"], "test": None, "dev": None}}, "no items to test on"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_trained(tmp_path, changes, said):
    subject = subject_of_corpus(*campaign(**{"learner": {"name": "sociable"}, **changes}), items=60)
    with pytest.raises(ConfigError, match=said):
        check(subject, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_test_items_development_items_judge():
    subject = data_of(corpus={**SMALL["corpus"], "test": None})
    assert subject.judged_by == "development items"
    assert len(subject.judged) == 30


def test_a_shared_model_of_the_run_is_found_again_and_single_ones_are_trained(tmp_path, one_thread):
    options = {"encoder": str(tiny_encoder(tmp_path / "encoder")), "epochs": 1, "frozen_layers": 1}
    run = Run(tmp_path / "run", config_of(**SMALL, learner={"name": "transformer", **options}))
    run_campaign(run)
    told = []
    found = check(
        subject_of_run(run),
        run.folder,
        seeds=1,
        own_models=run.folder / "models",
        progress=lambda what, done: told.append(what),
    )
    assert set(told) == {"training alone, seed 0"}
    last = run.result().main.rounds[-1].test
    for name, task in found["tasks"].items():
        assert task["together"] == pytest.approx(last[name][task["metric"]], abs=1e-6)


@pytest.mark.parametrize(
    ("own", "way", "trained"),
    [("shared", "alone", "single"), ("gated", "together", "gated"), ("single", "together", "shared")],
)
def test_together_is_the_campaign_s_own_way_of_sharing_unless_that_is_none(monkeypatch, tmp_path, own, way, trained):
    seen = []

    def spy(folder, config, tasks, pool):
        seen.append(config.learner)
        raise InterruptedError

    monkeypatch.setattr(module, "Models", spy)
    policy = {"name": "uniform"}
    subject = subject_of_corpus(
        *campaign(learner={"name": "transformer", "sharing": own, "policy": policy}, strategy={"name": "ST-EC-slots"}),
        items=60,
    )
    with pytest.raises(InterruptedError):
        module._trained(subject, way, 0, tmp_path, lambda what, done: None)
    assert seen[0].options.get("sharing", "shared") == trained
    assert (seen[0].policy is None) == (trained == "single")


# -- what a difference says --------------------------------------------------------------------------------------------
def accuracy(totals):
    return totals[..., 0] / totals[..., 1]


def right(*shares, items=400):
    """A model a seed that is right on such a share of the items, the first ones."""
    flags = np.array([np.arange(items) < share * items for share in shares], dtype=float)
    return np.stack([flags, np.ones_like(flags)], axis=2)


@pytest.mark.parametrize(
    ("together", "alone", "verdict"),
    [
        ((0.9, 0.9, 0.9), (0.8, 0.8, 0.8), "helps"),
        ((0.8, 0.8, 0.8), (0.9, 0.9, 0.9), "harms"),
        ((0.8, 0.8, 0.8), (0.8, 0.8, 0.8), "cannot tell"),
        ((0.9, 0.7, 0.95), (0.8, 0.8, 0.8), "cannot tell"),  # seeds do not agree
    ],
)
def test_a_verdict_needs_a_difference_that_seeds_and_items_agree_on(together, alone, verdict):
    found = compared(accuracy, right(*together), right(*alone))
    assert found["verdict"] == verdict
    assert found["gain"]["value"] == pytest.approx(np.mean(together) - np.mean(alone))


def test_a_difference_on_few_items_is_not_decided():
    assert compared(accuracy, right(0.9, items=400), right(0.85, items=400))["verdict"] == "helps"
    assert compared(accuracy, right(0.9, items=20), right(0.85, items=20))["verdict"] == "cannot tell"


# -- what is kept ------------------------------------------------------------------------------------------------------
@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


def test_advice_and_check_are_kept_beside_each_other_and_found_again(run):
    subject = subject_of_run(run)
    assert current_together(run) is None
    advice = advice_on(subject, LAWS)
    keep(run.folder, advice=advice)
    assert current_together(run) == {"advice": json.loads(json.dumps(advice))}
    found = check(subject, run.folder, seeds=1)
    keep(run.folder, check=found)
    assert set(current_together(run)) == {"advice", "check"}


def test_what_was_said_of_other_labels_is_neither_kept_nor_shown(run):
    advice = advice_on(subject_of_run(run), LAWS)
    keep(run.folder, advice=advice | {"of": "something else"})
    assert current_together(run) is None
    assert set(keep(run.folder, check={"of": advice["of"]})) == {"kind", "check"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "other"}'])
def test_a_damaged_file_is_as_good_as_none(run, text):
    (run.folder / module.FILE).write_text(text)
    assert current_together(run) is None


@pytest.mark.parametrize(
    ("predicted", "measured", "outcome"),
    [
        ("helps", "helps", "held"),
        ("helps", "harms", "did not hold"),
        ("helps", "cannot tell", "not decided"),
        ("cannot tell", "helps", "none was made"),
        (None, "helps", "none was made"),
    ],
)
def test_a_prediction_holds_if_what_was_measured_is_the_same(predicted, measured, outcome):
    assert outcome_of(predicted, measured) == outcome
