"""From a finished run to the question of the best order, and its answer beside the run."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from bursar.campaign import Campaign, GoldAnnotator, Run, run_campaign
from bursar.campaign.config import parse_config
from bursar.campaign.splits import DataSplits
from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError
from bursar.oracle import run_comparison
from bursar.oracle.comparison import plan_of
from bursar.oracle.run_comparison import ANSWER_FILE, STATE_FILE, OracleRequest, ask_oracle, current_answer, question_of
from bursar.report import write_report
from tests.campaign.small import config_of
from tests.decisions import Note
from tests.tiny import HashedEncoder

PLAN = plan_of(40)
SMALL = {"corpus": {"items": 500, "pool_items": 90}, "budget": {"seed_items": 10, "per_round": 100, "rounds": 2}}


@pytest.fixture(autouse=True)
def hashed_encoder(monkeypatch):
    monkeypatch.setattr("bursar.oracle.probe.frozen_encoder", HashedEncoder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, word_counts):
    """A run with two arms, as a folder to copy."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run_campaign(Run(folder, config_of(compare=["RANDOM"], **SMALL)))
    return folder


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


def run_of(folder, **changes):
    run = Run(folder, config_of(**{**SMALL, **changes}))
    run_campaign(run)
    return run


def parts_of(problem):
    return [getattr(problem, part) for part in ("pool", "warm", "aside", "validation", "test")]


# -- the question ------------------------------------------------------------------------------------------------------
def test_every_part_is_the_campaigns_and_no_item_plays_two(run):
    problem = question_of(run).problem
    ids = run.parts.corpus.ids
    campaign = run.campaign("MT-AVG")
    assert {ids[at] for at in problem.warm.tolist()} == set(campaign.ledger.bought(round=0))
    campaign.close()
    assert sorted([*problem.pool, *problem.warm]) == run.parts.pool.tolist()
    assert problem.aside.tolist() == run.parts.dev.tolist()
    assert problem.test.tolist() == run.parts.test.tolist()
    assert run_comparison.FEWEST_VALIDATION <= len(problem.validation) <= run_comparison.MOST_SENTENCES
    assert len(np.unique(np.concatenate(parts_of(problem)))) == sum(map(len, parts_of(problem)))


def test_an_arms_order_is_what_it_bought_after_the_start_in_equal_batches(run):
    question = question_of(run)
    problem = question.problem
    shapes = {order.batches.shape for order in question.orders.values()}
    assert shapes == {(2, min(question.about["bought"].values()) // 2)}
    for arm, order in question.orders.items():
        campaign = run.campaign(arm)
        bought = [item for number in (1, 2) for item in campaign.ledger.bought(round=number)]
        campaign.close()
        assert question.about["bought"][arm] == len(bought)
        for batch, row in enumerate(order.batches):
            first = batch * problem.size
            named = {run.parts.corpus.ids[at] for at in problem.pool[row].tolist()}
            assert named == set(bought[first : first + problem.size])


def test_arms_with_starts_of_their_own_are_judged_from_the_start_of_the_runs_strategy(tmp_path):
    run = run_of(tmp_path, compare=["RANDOM"], strategy={"name": "AUTO"}, learner={"name": "probe"})
    question = question_of(run)
    warm = set(question.problem.warm.tolist())
    for order in question.orders.values():
        bought = question.problem.pool[order.batches.ravel()].tolist()
        assert len(set(bought)) == len(bought)
        assert not warm & set(bought)
    assert set(ask_oracle(run, OracleRequest(PLAN))["arms"]) == {"AUTO", "RANDOM"}


def test_without_items_to_spare_the_test_items_are_cut_in_two(tmp_path):
    run = run_of(tmp_path / "run", corpus={"items": 300, "pool_items": None, "dev_items": None, "test_items": None})
    question = question_of(run)
    assert question.about["validation_from"] == "half of the test items"
    both = np.concatenate([question.problem.validation, question.problem.test])
    assert np.sort(both).tolist() == run.parts.test.tolist()
    assert abs(len(question.problem.validation) - len(question.problem.test)) <= 1
    assert [p.tolist() for p in parts_of(question_of(run).problem)] == [p.tolist() for p in parts_of(question.problem)]


def test_without_development_items_some_test_items_are_set_aside(tmp_path):
    question = question_of(run_of(tmp_path / "run", corpus={**SMALL["corpus"], "dev": None, "dev_items": None}))
    assert question.about["aside_from"] == "test items"
    assert len(question.problem.aside) == 40 // run_comparison.ASIDE_SHARE
    assert len(question.problem.test) == 40 - len(question.problem.aside)


def test_development_items_that_the_campaign_bought_are_set_aside_and_not_trained_on(tmp_path):
    corpus = {**SMALL["corpus"], "dev": None, "dev_items": None}
    run = run_of(tmp_path / "run", corpus=corpus, budget={**SMALL["budget"], "dev_items": 15})
    question, campaign = question_of(run), run.campaign("MT-AVG")
    bought = {purpose: campaign.ledger.bought(round=0, purposes=[purpose]) for purpose in ("seed", "dev")}
    campaign.close()
    problem, positions = question.problem, run.parts.corpus.positions
    assert question.about["aside_from"] == "development items"
    assert sorted(problem.aside) == sorted(positions(bought["dev"]))
    assert sorted(problem.warm) == sorted(positions(bought["seed"]))
    assert not np.intersect1d(problem.pool, problem.aside).size


def test_a_search_that_another_judge_began_is_begun_anew(run, finished, tmp_path, monkeypatch):
    """As after a change of the code: what was saved is of scores that nobody would give today."""
    whole = ask_oracle(run, OracleRequest(PLAN))
    shutil.rmtree(tmp_path / "run")
    shutil.copytree(finished, tmp_path / "run")
    again = Run.open(tmp_path / "run")
    monkeypatch.setattr(run_comparison, "BETWEEN_SAVES", 0.0)
    with pytest.raises(KeyboardInterrupt):
        ask_oracle(again, OracleRequest(PLAN), callback=_interrupt_late())
    state = tmp_path / "run" / STATE_FILE
    saved = json.loads(state.read_text())
    saved["state"]["best_curve"] = [0.999, *saved["state"]["best_curve"][1:]]
    state.write_text(json.dumps(saved))
    assert ask_oracle(again, OracleRequest(PLAN)) == whole


def _interrupt_late():
    calls = iter(range(10**6))

    def told(state, plan):
        if next(calls) == 12:
            raise KeyboardInterrupt

    return told


def test_tasks_that_nobody_can_judge_are_named_and_left_out(tmp_path, monkeypatch):
    run = run_of(tmp_path / "run")
    run.parts = DataSplits(*_with_parsing(run))
    question = question_of(run)
    assert question.problem.tasks == ("intent", "slots")
    assert question.about["tasks_left_out"] == {"dependencies": "parsing is not judged"}


def _with_parsing(run):
    from bursar.simulation import assistant_corpus

    corpus = assistant_corpus(run.config.corpus.items, run.config.corpus.seed)
    parts = run.parts
    return corpus.with_tasks(["intent", "slots", "dependencies"]), parts.pool, parts.dev, parts.test


def test_a_campaign_of_other_tasks_alone_is_refused_before_it_buys_anything(tmp_path):
    config = parse_config({"tasks": ["dependencies"], "corpus": {"items": 200}, "oracle": {}})
    with pytest.raises(ConfigError, match=r"any of the campaign's tasks: dependencies \(parsing\)"):
        run_campaign(Run(tmp_path / "run", config))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("tasks", "judge", "said"),
    [
        (
            ["intent", "slots"],
            "aoe",
            r"'aoe' cannot judge slots: .*intent \(classification\), slots \(tagging\).*: probe$",
        ),
        (["intent", "slots"], "tagger", r"'tagger' cannot judge intent: .*: probe$"),
        (["slots"], "lstm", r"'lstm' cannot judge slots: .* of texts.*: probe, tagger$"),
        (["intent"], "encoder", r"no judge 'encoder'.*use probe, aoe, cnn, lstm, tagger$"),
    ],
)
def test_a_judge_that_does_not_fit_all_tasks_is_refused_before_anything_is_done(tmp_path, tasks, judge, said):
    run = Run(tmp_path / "run", parse_config({"tasks": tasks, "corpus": {"items": 200}}))
    with pytest.raises(ConfigError, match=said):
        ask_oracle(run, OracleRequest(PLAN, judge=judge))
    if judge != "encoder":
        asked = parse_config({"tasks": tasks, "corpus": {"items": 200}, "oracle": {"judge": judge}})
        with pytest.raises(ConfigError, match=said):
            run_campaign(Run(tmp_path / "run", asked))
    assert not (tmp_path / "run").exists()


def test_an_arm_that_buys_labels_of_single_tasks_is_left_out_with_the_reason(tmp_path):
    run = run_of(tmp_path / "run", compare=["UDJS"])
    question = question_of(run)
    assert list(question.orders) == ["MT-AVG"]
    assert "labels of single tasks" in question.about["arms_left_out"]["UDJS"]
    alone = run_of(tmp_path / "alone", strategy={"name": "UDJS"})
    with pytest.raises(ConfigError, match="no strategy of the run has an order"):
        question_of(alone)


def test_a_run_that_buys_nothing_after_its_start_is_refused(tmp_path):
    run = run_of(tmp_path / "run", budget={"seed_items": 10, "rounds": 0})
    with pytest.raises(ConfigError, match="bought 0 items after its start"):
        question_of(run)


def test_an_unfinished_run_is_refused_and_left_as_it_was(tmp_path):
    run = Run(tmp_path / "run", config_of(compare=["RANDOM"], **SMALL))
    with pytest.raises(ConfigError, match=r"not finished: MT-AVG has not begun.*bursar run spring\.toml"):
        ask_oracle(run, OracleRequest(PLAN), finish_by="bursar run spring.toml")
    assert not run.folder.exists()
    run.folder.mkdir()
    run.pin()
    campaign = run.campaign("MT-AVG")
    campaign.ask()
    campaign.close()
    with pytest.raises(ConfigError, match="RANDOM has not begun"):
        question_of(run)
    other = run.campaign("RANDOM")
    other.run(GoldAnnotator(run.parts.corpus))
    other.close()
    with pytest.raises(ConfigError, match="MT-AVG is in round 0"):
        question_of(run)


def test_a_live_campaign_is_refused(tmp_path):
    config = config_of(**{**SMALL, "budget": {"seed_items": 10, "per_round": 100, "rounds": 1}})
    run = Run(tmp_path / "run", config)
    campaign = Campaign(config, run.folder, parts=run.parts)
    gold = GoldAnnotator(run.parts.corpus)
    while ask := campaign.ask():
        for item in ask.items:
            campaign.tell({item.id: gold.annotate(item.id, item.tasks)}, annotator="anna")
    campaign.close()
    with pytest.raises(ConfigError, match="annotated by 'anna'"):
        question_of(run)


def test_a_campaign_without_test_items_is_refused(tmp_path):
    run = run_of(tmp_path / "run", corpus={**SMALL["corpus"], "test": None, "test_items": None})
    with pytest.raises(ConfigError, match="no test items"):
        question_of(run)


def test_a_single_test_item_is_too_few(tmp_path):
    builder = CorpusBuilder({"intent": {"kind": "classification", "labels": ["a", "b"]}})
    for number in range(31):
        split = "test" if number == 30 else "train"
        builder.add(f"u{number}", text=f"word {number % 7}", split=split, labels={"intent": "ab"[number % 2]})
    parts = DataSplits(builder.build(), np.arange(30), np.zeros(0, dtype=np.int64), np.array([30]))
    with pytest.raises(ConfigError, match="1 test items are too few"):
        run_comparison.held_out_parts(parts, np.zeros(0, dtype=np.int64), 0, 4_000)


# -- judges ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def intents(tmp_path_factory, word_counts):
    """A finished run whose only task has classes, as a folder to copy."""
    folder = tmp_path_factory.mktemp("intents") / "run"
    run_of(folder, tasks=["intent"])
    return folder


def test_a_network_judges_as_well_and_the_answer_says_so(intents, tmp_path):
    shutil.copytree(intents, tmp_path / "run")
    run, plan = Run.open(tmp_path / "run"), plan_of(6, judge="aoe")
    answer = ask_oracle(run, OracleRequest(plan, judge="aoe"))
    assert answer["judge"] == "aoe"
    assert current_answer(run) == answer
    assert "scored by AOE (an average of word vectors with two layers)" in write_report(run).read_text()
    assert ask_oracle(run, OracleRequest(plan))["judge"] == "probe"
    assert current_answer(run)["judge"] == "probe"


def test_a_search_that_was_stopped_is_not_gone_on_with_by_another_judge(intents, tmp_path, monkeypatch):
    monkeypatch.setattr(run_comparison, "BETWEEN_SAVES", 0.0)
    shutil.copytree(intents, tmp_path / "run")
    run, plan, first = Run.open(tmp_path / "run"), plan_of(20, 0), []
    with pytest.raises(KeyboardInterrupt):
        ask_oracle(run, OracleRequest(plan), callback=_interrupt_late())
    assert json.loads((run.folder / STATE_FILE).read_text())["state"]["step"] > 5

    def told(state, plan):
        first.append(state.step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_oracle(run, OracleRequest(plan, judge="aoe"), callback=told)
    assert first == [1]


# -- the answer --------------------------------------------------------------------------------------------------------
def test_the_answer_is_kept_and_found_again_without_a_search(run, monkeypatch):
    answer = ask_oracle(run, OracleRequest(PLAN))
    assert json.loads((run.folder / ANSWER_FILE).read_text()) == answer == current_answer(run)
    assert not (run.folder / STATE_FILE).exists()
    assert set(answer["arms"]) == {"MT-AVG", "RANDOM"}
    monkeypatch.setattr(run_comparison, "compare_orders", None)
    assert ask_oracle(run, OracleRequest(PLAN)) == answer


def test_other_settings_are_another_search(run):
    first = ask_oracle(run, OracleRequest(PLAN))
    assert ask_oracle(run, OracleRequest(plan_of(5)))["plan"]["steps"] == 5
    assert ask_oracle(run, OracleRequest(plan_of(5), seed=7))["arms"] != first["arms"]


def test_a_stopped_search_goes_on_and_ends_in_the_same_file(run, finished, tmp_path, monkeypatch):
    shutil.copytree(finished, tmp_path / "other")
    other = Run.open(tmp_path / "other")
    ask_oracle(other, OracleRequest(PLAN))
    monkeypatch.setattr(run_comparison, "BETWEEN_SAVES", 0.0)
    for stop_at in (10, 25):

        def stop(state, plan, stop_at=stop_at):
            if state.step >= stop_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ask_oracle(run, OracleRequest(PLAN), callback=stop)
        assert json.loads((run.folder / STATE_FILE).read_text())["state"]["step"] >= stop_at
        assert not (run.folder / ANSWER_FILE).exists()
    steps = []
    ask_oracle(run, OracleRequest(PLAN), callback=lambda state, plan: steps.append(state.step))
    assert min(steps) > 25
    assert (run.folder / ANSWER_FILE).read_bytes() == (other.folder / ANSWER_FILE).read_bytes()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"asked": 1}', '{"kind": "bursar oracle 1", "asked": {}}'])
def test_damaged_files_are_as_good_as_none(run, damage):
    (run.folder / ANSWER_FILE).write_text(damage)
    (run.folder / STATE_FILE).write_text(damage)
    assert current_answer(run) is None
    assert ask_oracle(run, OracleRequest(plan_of(5)))["plan"]["steps"] == 5
    assert current_answer(run) is not None


@pytest.mark.parametrize("damage", ["nothing", "empty", "later version", "no batches"])
def test_the_state_of_a_search_that_cannot_be_read_is_as_good_as_none(run, monkeypatch, damage):
    monkeypatch.setattr(run_comparison, "BETWEEN_SAVES", 0.0)
    with pytest.raises(KeyboardInterrupt):
        ask_oracle(run, OracleRequest(plan_of(20, 0)), callback=_interrupt_late())
    kept = json.loads((run.folder / STATE_FILE).read_text())
    state = kept.pop("state")
    changed = {"empty": {}, "later version": {**state, "later": 1}, "no batches": {**state, "order": []}}
    (run.folder / STATE_FILE).write_text(json.dumps(kept | ({"state": changed[damage]} if damage in changed else {})))
    steps = []
    ask_oracle(run, OracleRequest(plan_of(20, 0)), callback=lambda state, plan: steps.append(state.step))
    assert steps[0] == 1


@pytest.mark.parametrize("key", ["plan", "random_curves", "items", "arms"])
def test_an_answer_that_lacks_something_is_looked_for_anew(run, key):
    answer = ask_oracle(run, OracleRequest(plan_of(5)))
    for broken in ({name: value for name, value in answer.items() if name != key}, {**answer, key: [1]}):
        (run.folder / ANSWER_FILE).write_text(json.dumps(broken))
        if key != "items":
            assert current_answer(run) is None
    (run.folder / ANSWER_FILE).write_text(json.dumps({name: value for name, value in answer.items() if name != key}))
    assert ask_oracle(run, OracleRequest(plan_of(5))) == answer


def test_no_search_is_lost_to_another_question(run, monkeypatch):
    monkeypatch.setattr(run_comparison, "BETWEEN_SAVES", 0.0)
    long = ask_oracle(run, OracleRequest(PLAN))
    with pytest.raises(KeyboardInterrupt):
        ask_oracle(run, OracleRequest(plan_of(20, 0)), callback=_interrupt_late())
    assert current_answer(run) == long  # until the other one is answered
    short = ask_oracle(run, OracleRequest(plan_of(5)))
    assert current_answer(run) == short
    steps = []
    ask_oracle(run, OracleRequest(plan_of(20, 0)), callback=lambda state, plan: steps.append(state.step))
    assert min(steps) > 5
    monkeypatch.setattr(run_comparison, "compare_orders", None)
    assert ask_oracle(run, OracleRequest(PLAN)) == long == current_answer(run)
    assert ask_oracle(run, OracleRequest(plan_of(5))) == short == current_answer(run)
    assert not list(run.folder.glob("oracle.state*"))


def test_an_answer_about_another_state_of_the_ledger_is_not_shown(run):
    ask_oracle(run, OracleRequest(PLAN))
    assert "How far from the best?" in write_report(run).read_text()
    campaign = run.campaign("RANDOM")
    campaign.ledger.decide(Note(round=9, text="somebody was here"))
    campaign.close()
    assert current_answer(run) is None
    assert run.result().oracle is None
    assert "How far from the best?" not in write_report(run).read_text()


def test_an_answer_whose_settings_were_changed_by_hand_is_not_shown(run):
    answer = ask_oracle(run, OracleRequest(PLAN))
    answer["plan"]["steps"] = 25_000
    (run.folder / ANSWER_FILE).write_text(json.dumps(answer))
    assert current_answer(run) is None


def test_an_oracle_section_makes_the_run_end_with_the_search(tmp_path):
    config = config_of(oracle={"steps": 40}, compare=["RANDOM"], **SMALL)
    run = Run(tmp_path / "run", config)
    result = run_campaign(run)
    assert result.oracle["plan"] == {"steps": 40, "greedy_steps": 8, "cooling": 1250.0}
    assert result.oracle["seed"] == config.seed
    assert "of the way from random to the best order found" in write_report(run).read_text()


def test_the_oracle_section_is_no_other_campaign(run):
    plain, asked = config_of(**SMALL), config_of(oracle={"steps": 40}, **SMALL)
    assert asked.digest == plain.digest
    assert plain.model_dump()["oracle"] is None
    assert parse_config(asked.model_dump(mode="json")) == asked
    with_section = Run(run.folder, config_of(oracle={"steps": 10}, compare=["RANDOM"], **SMALL))
    assert run_campaign(with_section).oracle["plan"]["steps"] == 10


def test_a_run_with_nothing_to_compare_says_why_and_is_a_run_all_the_same(tmp_path):
    run = Run(tmp_path / "run", config_of(oracle={"steps": 10}, **{**SMALL, "budget": {"seed_items": 10, "rounds": 0}}))
    result = run_campaign(run)
    assert "bought 0 items after its start" in result.oracle["refused"]
    assert "How far from the best?" not in write_report(run).read_text()
