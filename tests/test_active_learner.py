"""Active learning from Python: in memory and in a folder, with budgets in items and in money."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import bursar
from bursar.corpus.corpus import concatenate
from bursar.errors import BursarError, ConfigError, LearnerError, LedgerError
from bursar.selection import make_strategy

PRICES = {"reading": {"per_word": 0.01}, "intent": 0.05, "slots": {"per_span": 0.02}}
QUICK = {"learner": "scikit", "strategy": "MT-AVG"}


@pytest.fixture(scope="module")
def corpus():
    return bursar.assistant_corpus(150, seed=1).with_tasks(["intent", "slots"])


@pytest.fixture(scope="module")
def gold(corpus):
    return bursar.GoldAnnotator(corpus)


def answers(gold, batch):
    return {item.id: gold.annotate(item.id, item.tasks) for item in batch}


def run(learner, gold):
    """All batches, as lists of ids."""
    batches = []
    while batch := learner.ask():
        batches.append([item.id for item in batch])
        learner.tell(answers(gold, batch))
    return batches


def test_the_program_of_the_documents_runs_from_a_csv_file_to_a_table(tmp_path):
    products, days = ["lamp", "chair", "kettle", "desk"], ["monday", "friday", "sunday"]
    lines = ["number,body"]
    for number in range(60):
        product, day = products[number % 4], days[number % 3]
        ask = f"please refund my {product} from {day}" if number % 2 else f"order a {product} for {day} now"
        lines.append(f"{number},{ask}")
    (tmp_path / "messages.csv").write_text("\n".join(lines))

    def annotate(item):
        spans = [[at, at + 1, "product"] for at, word in enumerate(item.words) if word in products]
        spans += [[at, at + 1, "date"] for at, word in enumerate(item.words) if word in days]
        return {"intent": "refund" if "refund" in item.text else "order", "slots": spans}

    tasks = {"intent": ["refund", "order"], "slots": bursar.spans("product", "date")}
    corpus = bursar.read(tmp_path / "messages.csv", text="body", tasks=tasks)
    learner = bursar.ActiveLearner(corpus, strategy="auto", budget=500)
    asked = []
    while batch := learner.ask():
        assert all(item.tasks == ("intent", "slots") and item.metadata["number"] is not None for item in batch)
        learner.tell({item.id: annotate(item) for item in batch})
        asked += [item.id for item in batch]
    assert sorted(asked) == sorted(corpus.ids.tolist())  # the budget is larger than the pool
    frame = learner.predict(corpus).to_frame()
    assert len(frame) == 60
    assert frame["intent"].tolist() == ["order", "refund"] * 30


def test_a_budget_counts_items_if_there_are_no_prices(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=25, batch_size=10, **QUICK)
    batches = run(learner, gold)
    assert [len(batch) for batch in batches] == [10, 10, 5]
    assert (learner.spent, learner.left, learner.ended) == (25, 0, "the budget is spent")
    assert sorted(learner.labelled.ids.tolist()) == sorted(id for batch in batches for id in batch)
    assert learner.ask() == []


def test_a_budget_counts_money_if_there_are_prices(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=6, prices=PRICES, batch_size=8, **QUICK)
    paid = 0.0
    while batch := learner.ask():
        learner.tell(answers(gold, batch))
        for item in batch:
            slots = gold.annotate(item.id, ["slots"])["slots"]
            paid += 0.01 * len(item.words) + 0.05 + 0.02 * len(slots)
    assert learner.spent == pytest.approx(paid)
    assert 0 <= learner.left < 0.5


def test_the_same_seed_asks_for_the_same_items_and_another_for_others(corpus, gold):
    def asked(seed):
        return run(bursar.ActiveLearner(corpus.unlabelled(), budget=30, batch_size=10, seed=seed, **QUICK), gold)

    assert asked(3) == asked(3)
    assert asked(3) != asked(4)


def test_labels_of_the_corpus_cost_nothing_and_are_learned_from(corpus, gold):
    pool, known = corpus.take(np.arange(100)).unlabelled(), corpus.take(np.arange(100, 150))
    trained_on = [item.id for item in (known[at] for at in range(50)) if item.split == "train"]
    learner = bursar.ActiveLearner(concatenate([pool, known]), budget=12, batch_size=6, **QUICK)
    assert learner.spent == 0
    assert learner.labelled.ids.tolist() == trained_on  # the others are kept for scores
    batches = run(learner, gold)
    assert {id for batch in batches for id in batch} <= set(pool.ids.tolist())
    assert learner.spent == 12
    assert len(learner.labelled) == len(trained_on) + 12


def test_a_corpus_with_all_labels_is_refused_with_a_way_out(corpus):
    with pytest.raises(ConfigError, match=r"150 of 150 items .* bursar.simulate"):
        bursar.ActiveLearner(corpus.with_tasks(["intent"]), budget=20)


def test_some_of_the_tasks_can_be_chosen_and_one_label_told_without_its_task(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), tasks=["intent"], budget=10, batch_size=5, **QUICK)
    batch = learner.ask()
    assert {item.tasks for item in batch} == {("intent",)}
    learner.tell({item.id: gold.annotate(item.id, ["intent"])["intent"] for item in batch})
    assert learner.spent == 5


def test_predictions_keep_what_is_known_and_label_the_rest(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=40, batch_size=20, **QUICK)
    run(learner, gold)
    frame = learner.predict().to_frame().set_index("id")
    told = set(learner.labelled.ids.tolist())
    for item in (corpus[at] for at in range(len(corpus))):
        if item.id in told:
            assert frame.loc[item.id, "intent"] == item.labels["intent"]
    assert (frame["intent by"] == "model").sum() == len(corpus) - 40
    scores = learner.evaluate(corpus)
    assert 0.3 < scores["intent"]["accuracy"] <= 1
    probabilities = learner.predict_proba(corpus)["intent"].dense()[0]
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(corpus)))


def test_predicting_before_any_label_says_what_to_do(corpus):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=40, **QUICK)
    with pytest.raises(LearnerError, match="no item is labelled for task 'intent' yet"):
        learner.predict()


def test_wrong_labels_are_refused_as_a_whole_and_say_where(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=20, batch_size=5, **QUICK)
    batch = learner.ask()
    right = answers(gold, batch)
    last = batch[-1].id
    for wrong, words in [
        ({"intent": "nonsense", "slots": []}, "unknown label 'nonsense'"),
        ({"intent": right[last]["intent"]}, "answered for intent"),
        ({"intent": right[last]["intent"], "slots": [[0, 99, "x"]]}, "outside the item"),
        ("alarm", "does not say for which task"),
    ]:
        with pytest.raises(BursarError, match=words):
            learner.tell(right | {last: wrong})
    with pytest.raises(BursarError, match="no round asks about item 'nobody'"):
        learner.tell(right | {"nobody": right[last]})
    assert learner.spent == 0  # not even the right ones were stored
    learner.tell(right)
    learner.tell(right)  # again: nothing is charged twice
    assert learner.spent == 5
    with pytest.raises(LedgerError):
        learner.tell({last: right[last] | {"slots": []} if right[last]["slots"] else {"intent": "x"}})


def test_skipped_items_are_free_and_not_asked_for_again(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=20, batch_size=5, **QUICK)
    first = learner.ask()
    learner.skip([first[0].id], "not English")
    learner.tell(answers(gold, first[1:]))
    batches = run(learner, gold)
    assert first[0].id not in {id for batch in batches for id in batch}
    assert learner.spent == 20
    with pytest.raises(ConfigError, match="no open batch asks about item"):
        learner.skip([first[0].id])


# -- strategies --------------------------------------------------------------------------------------------------------
def shortest(pool, budget, rng):
    """The cheapest items first."""
    return np.argsort(pool.prices.joint(), kind="stable")[: int(budget)]


@pytest.mark.parametrize("strategy", [shortest, make_strategy("MT-MIN"), make_strategy("MT-AVG+COVER"), "random"])
def test_a_strategy_is_a_name_an_object_or_a_function(corpus, gold, strategy):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=10, batch_size=5, strategy=strategy, learner="probe")
    assert [len(batch) for batch in run(learner, gold)] == [5, 5]


def test_a_function_chooses_the_items(corpus, gold):
    called = []

    def last_two(pool, budget, rng):
        called.append((len(pool.ids), int(budget)))
        return np.arange(len(pool.ids))[-2:]

    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=8, batch_size=4, strategy=last_two, learner="scikit")
    learner.tell(answers(gold, learner.ask()))
    batch = [item.id for item in learner.ask()]
    free = sorted(set(corpus.ids.tolist()) - set(learner.labelled.ids.tolist()))
    assert batch == free[-2:]
    assert called == [(146, 4)]


def test_a_strategy_under_the_name_of_another_is_refused(corpus):
    def random(pool, budget, rng):
        return np.arange(1)

    with pytest.raises(BursarError, match="there is another strategy 'RANDOM'"):
        bursar.ActiveLearner(corpus.unlabelled(), budget=8, strategy=random)


# -- folders -----------------------------------------------------------------------------------------------------------
KILLED = """
import os, sys, bursar
corpus = bursar.assistant_corpus(150, seed=1).with_tasks(["intent", "slots"])
gold = bursar.GoldAnnotator(corpus)
learner = bursar.ActiveLearner(
    corpus.unlabelled(), budget=30, batch_size=10, learner="scikit", strategy="MT-AVG", folder=sys.argv[1]
)
told = 0
while batch := learner.ask():
    for item in batch:
        learner.tell({item.id: gold.annotate(item.id, item.tasks)})
        told += 1
        if told == 13:
            os._exit(9)
"""


def test_a_killed_loop_in_a_folder_goes_on_as_if_undisturbed(tmp_path, corpus, gold):
    script = tmp_path / "loop.py"
    script.write_text(textwrap.dedent(KILLED))
    done = subprocess.run([sys.executable, script, tmp_path / "loop"], capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    arguments = {"budget": 30, "batch_size": 10, **QUICK}
    with bursar.ActiveLearner(corpus.unlabelled(), folder=tmp_path / "loop", **arguments) as learner:
        assert learner.spent == 13
        assert [len(batch) for batch in run(learner, gold)] == [7, 10]
        resumed = {item: learner.labelled[at].labels for at, item in enumerate(learner.labelled.ids.tolist())}
        frame = learner.predict().to_frame()
    undisturbed = bursar.ActiveLearner(corpus.unlabelled(), **arguments)
    run(undisturbed, gold)
    assert set(resumed) == set(undisturbed.labelled.ids.tolist())
    assert frame.equals(undisturbed.predict().to_frame())


def test_a_folder_is_a_project_that_the_command_line_reads(tmp_path, corpus, gold):
    folder = tmp_path / "loop"
    with bursar.ActiveLearner(corpus.unlabelled(), budget=10, batch_size=5, folder=folder, **QUICK) as learner:
        learner.tell(answers(gold, learner.ask()))
    done = subprocess.run([sys.executable, "-m", "bursar", "check", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((folder / "campaign.json").read_text())["campaign"]["budget"]["total"] == 10


def test_a_folder_refuses_other_settings_and_another_corpus(tmp_path, corpus):
    folder, pool = tmp_path / "loop", corpus.unlabelled()
    bursar.ActiveLearner(pool, budget=10, folder=folder, **QUICK).close()
    with pytest.raises(
        ConfigError, match=r"started with other settings: budget.seed_items .* budget.total was 10.0, now 12.0"
    ):
        bursar.ActiveLearner(pool, budget=12, batch_size=7, folder=folder, **QUICK)
    with pytest.raises(ConfigError, match="started on another corpus"):
        bursar.ActiveLearner(pool.take(np.arange(149)), budget=10, folder=folder, **QUICK)
    bursar.ActiveLearner(pool, budget=10, folder=folder, **QUICK).close()


def test_what_is_in_memory_leaves_nothing_behind(corpus, gold):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=10, **QUICK)
    learner.tell(answers(gold, learner.ask()))
    folder = learner._campaign.folder
    assert folder.exists()
    learner.close()
    assert not folder.exists()


# -- arguments ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget": 0}, "budget = 0 is not a positive number"),
        ({"budget": "10"}, "budget = '10' is not a positive number"),
        ({"budget": 2.5}, "budget = 2.5 is not a whole number of items"),
        ({"budget": 0.01, "prices": {"intent": 1}}, "a budget of 0.01 buys no item, as one costs about 1"),
        ({"budget": 20, "batch_size": -1}, "batch_size = -1 is not a positive number"),
        ({"budget": 20, "prices": {"mood": 1}}, "prices: there is no task 'mood'"),
        ({"budget": 20, "tasks": ["mood"]}, "there is no task 'mood'"),
        ({"budget": 20, "strategy": "mt-agv"}, "did you mean 'MT-AVG'"),
        ({"budget": 20, "learner": "prob"}, "did you mean 'probe'"),
        ({"budget": 20, "learner": {"steps": 3}}, "the settings do not name it"),
        ({"budget": 20, "learner": 3}, "learner = 3 is no model"),
        ({"budget": 20, "strategy": "K-CENTER", "learner": "scikit"}, "K-CENTER needs vectors of items"),
    ],
)
def test_wrong_arguments_say_what_to_do(corpus, arguments, words):
    with pytest.raises(BursarError, match=words) as caught:
        bursar.ActiveLearner(corpus.unlabelled(), **arguments)
    assert "Fix:" in str(caught.value)


def test_a_learner_without_vectors_makes_auto_fall_back_and_say_so(corpus):
    with pytest.warns(UserWarning, match="gives no vectors of items, so items are chosen by MT-AVG"):
        bursar.ActiveLearner(corpus.unlabelled(), budget=20, learner="scikit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bursar.ActiveLearner(corpus.unlabelled(), budget=20, learner="probe")


def test_its_arguments_are_its_parameters_as_in_scikit_learn(corpus):
    learner = bursar.ActiveLearner(corpus.unlabelled(), budget=20, batch_size=5, **QUICK)
    found = learner.get_params()
    assert (found["budget"], found["batch_size"], found["strategy"]) == (20, 5, "MT-AVG")
    assert "20 items" in repr(learner)
