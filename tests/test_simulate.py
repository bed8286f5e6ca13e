"""Simulations from Python: strategies, seeds, comparisons, plots and pages."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import bursar
from bursar.comparison.paired import paired_test
from bursar.comparison.runner import Material, Parcel, split
from bursar.comparison.simulation import Cell, Round, Simulation
from bursar.errors import BursarError, ConfigError

QUICK = {"learner": "scikit", "workers": 1}


@pytest.fixture(scope="module")
def corpus():
    return bursar.assistant_corpus(160, seed=1).with_tasks(["intent", "slots"])


@pytest.fixture(scope="module")
def result(corpus):
    return bursar.simulate(corpus, ["MT-AVG", "RANDOM"], seeds=[0, 1, 2], budget=40, batch_size=10, **QUICK)


def made(scores, counts="items"):
    """A simulation with these scores by strategy and seed: of one task, after 10, 20, ... items."""
    cells = tuple(
        Cell(name, seed, tuple(Round(k, 2.0 * k + 2, 10 * k + 10, {"intent": score}) for k, score in enumerate(curve)))
        for name, curves in scores.items()
        for seed, curve in enumerate(curves)
    )
    return Simulation(cells, {"intent": "accuracy"}, counts)


# -- running -----------------------------------------------------------------------------------------------------------
def test_a_frame_has_a_row_for_each_strategy_seed_round_and_task(result):
    frame = result.to_frame()
    assert len(frame) == 2 * 3 * 4 * 2
    assert frame.groupby(["strategy", "seed"])["items"].unique().map(list).tolist() == [[10, 20, 30, 40]] * 6
    assert frame["score"].between(0, 1).all()
    assert frame.groupby("task")["metric"].unique().map(list).to_dict() == {"intent": ["accuracy"], "slots": ["f1"]}


def test_the_same_call_gives_the_same_scores_and_each_seed_its_own(corpus, result):
    again = bursar.simulate(corpus, ["MT-AVG", "RANDOM"], seeds=[0, 1, 2], budget=40, batch_size=10, **QUICK)
    assert again.to_frame().equals(result.to_frame())
    scores = result.to_frame().set_index(["seed", "strategy"])["score"]
    assert scores[0, "RANDOM"].tolist() != scores[1, "RANDOM"].tolist()


def test_both_strategies_of_a_seed_have_the_same_test_items_and_first_batch(corpus, result):
    first = result.to_frame().query("round == 0").groupby(["seed", "task"])["score"].nunique()
    assert (first == 1).all()
    one, other = split(corpus, 0.3, 0), split(corpus, 0.3, 1)
    assert one.split("test").ids.tolist() == other.split("test").ids.tolist()  # the corpus has a test split


def test_without_a_test_split_one_is_drawn_by_the_seed(corpus):
    pool = corpus.split("train")
    one, again, other = (split(pool, 0.25, seed) for seed in (0, 0, 1))
    tests = [part.split("test").ids.tolist() for part in (one, again, other)]
    assert tests[0] == tests[1] != tests[2]
    assert len(tests[0]) == round(0.25 * len(pool))
    assert len(split(pool, 20, 0).split("test")) == 20
    shuffled = pool.take(np.random.default_rng(0).permutation(len(pool)))
    assert sorted(split(shuffled, 0.25, 0).split("test").ids.tolist()) == sorted(tests[0])


def test_a_simulation_is_the_loop_of_an_active_learner_with_the_gold_labels(corpus):
    """The scores are those of a campaign that buys the same items by hand."""
    result = bursar.simulate(corpus, ["MT-AVG"], seeds=[4], budget=30, batch_size=10, test=0.3, **QUICK)
    pool = split(corpus, 0.3, 4)
    learner = bursar.learners.make_learner("scikit", corpus.schema)
    gold = bursar.GoldAnnotator(corpus)
    loop = bursar.ActiveLearner(
        pool.split("train").unlabelled(), strategy="MT-AVG", budget=30, batch_size=10, seed=4, learner="scikit"
    )
    first = loop.ask()
    loop.tell({item.id: gold.annotate(item.id, item.tasks) for item in first})
    learner.fit(corpus.take(corpus.positions([item.id for item in first])), seed=4)
    expected = learner.evaluate(pool.split("test"))
    row = result.to_frame().query("round == 0").set_index("task")["score"]
    assert row["intent"] == pytest.approx(expected["intent"]["accuracy"], abs=1e-6)
    assert row["slots"] == pytest.approx(expected["slots"]["f1"], abs=1e-6)


def test_with_prices_the_budget_is_money(corpus):
    prices = {"reading": {"per_word": 0.01}, "intent": 0.05, "slots": {"per_span": 0.02}}
    result = bursar.simulate(corpus, ["MT-AVG", "RANDOM"], [0], budget=5, prices=prices, currency="€", **QUICK)
    frame = result.to_frame()
    assert result.counts == "money"
    assert 4 < frame["spent"].max() <= 5
    assert result.about["budget"] == "5 €"


def test_models_and_strategies_of_ones_own_are_simulated(corpus):
    asked = []

    def last(pool, budget, rng):
        asked.append((len(pool.ids), int(budget)))
        return np.arange(len(pool.ids))[-int(budget) :]

    def always(train_texts, train_labels, texts):
        return [{train_labels[0]: 1.0}] * len(texts)

    result = bursar.simulate(
        corpus, [last, "RANDOM"], [0], tasks=["intent"], budget=10, learner=bursar.from_function(always), workers=1
    )
    assert result.strategies == ["last", "RANDOM"]
    pool = result.about["items"].split(" ")[0]
    assert asked == [(int(pool) - 5, 5)]


def test_a_strategy_that_falls_back_says_so(corpus):
    result = bursar.simulate(corpus, ["auto"], [0], budget=10, **QUICK)
    assert result.notes == (
        "auto: the learner 'scikit' gives no vectors of items, so items are chosen by MT-AVG after a random start.",
    )


# -- processes and folders ---------------------------------------------------------------------------------------------
SCRIPT = """
import bursar, numpy as np

class Own:  # defined in a script without a guard, so other processes cannot import it
    def fit(self, texts, labels):
        self.label = max(sorted(set(labels)), key=labels.count)
    def predict_proba(self, texts):
        return [{self.label: 1.0}] * len(texts)

def last(pool, budget, rng):
    return np.arange(len(pool.ids))[-int(budget):]

print("started")
corpus = bursar.assistant_corpus(100, seed=1).with_tasks(["intent"])
options = dict(seeds=[0, 1], budget=10, learner=Own())
two = bursar.simulate(corpus, [last, "RANDOM"], workers=2, **options)
one = bursar.simulate(corpus, [last, "RANDOM"], workers=1, **options)
print(two.to_frame().equals(one.to_frame()), len(one.to_frame()))
"""


def test_processes_give_the_same_from_a_script_without_a_guard(tmp_path):
    script = tmp_path / "own.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["started", "True", "8"]


def test_what_cannot_be_sent_to_a_process_is_named(corpus):
    import threading

    class Locked:
        lock = None

        def __init__(self):
            self.lock = threading.Lock()

        def fit(self, texts, labels):
            pass

        def predict_proba(self, texts):
            pass

    with pytest.raises(ConfigError, match=r"cannot be sent to another process: .*Fix: use workers=1"):
        Parcel.of(Material(corpus, Locked(), ()), elsewhere=True)


KILLED = """
import sys, bursar
from bursar.campaign.campaign import Campaign
import os
corpus = bursar.assistant_corpus(160, seed=1).with_tasks(["intent", "slots"])
told = 0
tell = Campaign.tell
def counted(self, answers, annotator="somebody"):
    global told
    told += 1
    if told == 55:
        os._exit(9)
    return tell(self, answers, annotator)
Campaign.tell = counted
bursar.simulate(corpus, ["MT-AVG", "RANDOM"], seeds=[0, 1, 2], budget=40, batch_size=10, learner="scikit", workers=1,
                folder=sys.argv[1])
"""


def test_a_killed_simulation_goes_on_and_finished_campaigns_are_kept(tmp_path, corpus, result, monkeypatch):
    script, folder = tmp_path / "killed.py", tmp_path / "kept"
    script.write_text(textwrap.dedent(KILLED))
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert len(list((folder / "results").glob("*.json"))) == 1
    assert len(list((folder / "unfinished").iterdir())) == 1
    arguments = {"budget": 40, "batch_size": 10, "folder": folder, **QUICK}
    resumed = bursar.simulate(corpus, ["MT-AVG", "RANDOM"], [0, 1, 2], **arguments)
    assert resumed.to_frame().equals(result.to_frame())
    assert list((folder / "unfinished").iterdir()) == []

    def fail(*arguments, **options):
        raise AssertionError("a finished campaign was run again")

    monkeypatch.setattr("bursar.comparison.runner.Campaign", fail)
    again = bursar.simulate(corpus, ["MT-AVG", "RANDOM"], [0, 1, 2], **arguments)
    assert again.to_frame().equals(result.to_frame())


def test_a_changed_function_is_run_again(tmp_path, corpus):
    def of(count):
        code = "import numpy as np\ndef own(pool, budget, rng):\n    return np.arange(len(pool.ids))[:{}]\n"
        names = {}
        exec(code.format(count), names)
        return names["own"]

    arguments = {"seeds": [0], "budget": 20, "batch_size": 5, "folder": tmp_path, **QUICK}
    spent = [
        bursar.simulate(corpus, [of(count)], **arguments).to_frame().query("round == 1")["items"].max()
        for count in (3, 1, 3)
    ]
    assert spent == [8, 6, 8]


# -- comparisons -------------------------------------------------------------------------------------------------------
def test_differences_are_paired_over_seeds():
    mine, theirs = [[0.5, 0.7], [0.4, 0.8], [0.5, 0.9]], [[0.5, 0.6], [0.4, 0.6], [0.5, 0.8]]
    found = made({"A": mine, "RANDOM": theirs}).compare().set_index("measure")
    last = paired_test([0.7, 0.8, 0.9], [0.6, 0.6, 0.8])
    assert found.loc["last score", ["difference", "low", "high", "p"]].tolist() == pytest.approx(
        [last["difference"], last["low"], last["high"], last["p"]]
    )
    assert found.loc["area", "difference"] == pytest.approx(np.mean([0.05, 0.1, 0.05]))  # half: the first points tie
    assert found.loc["area", "seeds"] == 3


def test_what_was_saved_is_a_share_of_what_the_other_spent():
    found = made({"A": [[0.5, 0.7, 0.9]] * 3, "RANDOM": [[0.5, 0.6, 0.7]] * 3}).compare().set_index("measure")
    assert found.loc["saved", "difference"] == pytest.approx(1 / 3)  # 20 items instead of 30
    money = made({"A": [[0.5, 0.7, 0.9]] * 3, "RANDOM": [[0.5, 0.6, 0.7]] * 3}, counts="money")
    assert money.compare().set_index("measure").loc["saved", "difference"] == pytest.approx(1 / 3)


def test_all_are_compared_with_the_last_or_two_by_name():
    result = made({"A": [[0.5, 0.7]] * 2, "B": [[0.5, 0.8]] * 2, "RANDOM": [[0.5, 0.6]] * 2})
    assert set(result.compare()["strategy"]) == {"A", "B"}
    assert set(result.compare()["against"]) == {"RANDOM"}
    pair = result.compare("b", "a").set_index("measure")
    assert pair.loc["last score", "difference"] == pytest.approx(0.1)
    with pytest.raises(ConfigError, match="'C' was not simulated"):
        result.compare("C")
    with pytest.raises(ConfigError, match="RANDOM cannot be compared with itself"):
        result.compare("random")


def test_p_values_are_corrected_for_the_number_of_strategies():
    rng = np.random.default_rng(0)
    scores = {name: [[0.5, 0.7 + shift + x] for x in rng.normal(0, 0.02, 6)] for name, shift in
              (("A", 0.03), ("B", 0.04), ("RANDOM", 0.0))}  # fmt: skip
    found = made(scores).compare().query("measure == 'last score'")
    low, high = sorted(found["p"])
    assert sorted(found["p_corrected"]) == pytest.approx(sorted([min(1, 2 * low), max(high, 2 * low)]))


def test_one_seed_has_differences_and_no_intervals():
    found = made({"A": [[0.5, 0.7]], "RANDOM": [[0.5, 0.6]]}).compare()
    assert found["low"].isna().all()
    assert found["difference"].notna().all()


# -- plots and pages ---------------------------------------------------------------------------------------------------
def test_a_plot_has_a_line_and_a_band_for_each_strategy(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = result.plot()
    assert [line.get_label() for line in axes.lines] == ["MT-AVG", "RANDOM"]
    assert axes.lines[0].get_xdata().tolist() == [10, 20, 30, 40]
    assert len(axes.collections) == 2
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("items labelled", "mean score of the tasks")
    means = result.to_frame().query("strategy == 'RANDOM'").groupby("items")["score"].mean()
    assert axes.lines[1].get_ydata() == pytest.approx(means.to_numpy())
    slots = result.plot("slots", ax=axes.figure.add_subplot())
    assert slots.get_ylabel() == "slots: f1"
    with pytest.raises(ConfigError, match="there is no task 'mood'"):
        result.plot("mood")


def test_without_matplotlib_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(
        ConfigError, match=r"matplotlib is not installed. Fix: install it: pip install 'bursar\[plots\]'"
    ):
        result.plot()


def test_a_report_is_one_page_with_all_numbers(result, tmp_path):
    page = result.report(tmp_path / "deep" / "page.html").read_text(encoding="utf-8")
    assert page.count("data-chart=") == 3  # all tasks, and each
    assert "<title>MT-AVG against random · Bursar</title>" in page
    assert "95 % interval" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert result.report(tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_a_report_of_one_strategy_has_no_comparison(tmp_path):
    page = made({"A": [[0.5, 0.7]]}).report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Paired differences" not in page


def test_twelve_lines_lead_from_a_csv_file_to_a_plot_of_two_strategies(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    rows = [f"where is my {thing} number {n},order" for n in range(20) for thing in ("lamp", "chair")]
    rows += [f"money back for the {thing} number {n},refund" for n in range(20) for thing in ("lamp", "chair")]
    (tmp_path / "messages.csv").write_text("\n".join(["body,intent", *rows]))

    corpus = bursar.read("messages.csv", text="body", labels={"intent": "intent"})
    result = bursar.simulate(corpus, strategies=["MT-AVG", "RANDOM"], seeds=range(2), budget=20, learner="scikit")
    result.compare("MT-AVG", "RANDOM")
    result.plot().figure.savefig("curves.png")
    result.report("page.html")

    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert (tmp_path / "page.html").stat().st_size > 10_000


# -- arguments ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"strategies": []}, "strategies = []"),
        ({"strategies": "auto"}, "strategies = 'auto'"),
        ({"strategies": ["MT-AVG", "mt-avg"]}, "names one twice"),
        ({"strategies": ["MT-AGV"]}, "did you mean 'MT-AVG'"),
        ({"strategies": ["K-CENTER"]}, "K-CENTER needs vectors"),
        ({"seeds": []}, r"seeds = \[\]"),
        ({"seeds": [1, 1]}, r"seeds = \[1, 1\]"),
        ({"test": 0}, "test = 0"),
        ({"test": 1.5}, "test = 1.5"),
        ({"workers": 0}, "workers = 0"),
        ({"tasks": ["mood"]}, "there is no task 'mood'"),
        ({"budget": -1}, "budget = -1"),
    ],
)
def test_wrong_arguments_say_what_to_do(corpus, arguments, words):
    with pytest.raises(BursarError, match=words.replace("= []", r"= \[\]")) as caught:
        bursar.simulate(corpus, **{**QUICK, **arguments})
    assert "Fix:" in str(caught.value)


def test_a_corpus_without_labels_is_refused(corpus):
    with pytest.raises(ConfigError, match=r"0 of the items are labelled for all tasks"):
        bursar.simulate(corpus.unlabelled(), **QUICK)
