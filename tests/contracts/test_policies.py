"""What every task policy must do, whoever wrote it: those in the registry, and the documentation's own."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from bursar.curriculum import POLICIES, Course, load_policy, make_policy
from bursar.curriculum.policy import read_policy

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "policies.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)

TASKS = ("intent", "slots", "urgency")
SIZES = (900, 400, 30)
WEIGHTS = dict(zip(TASKS, (1, 3, 0.5), strict=True))
SETTINGS = {  # beside the defaults, where there are any
    "fixed": [{"weights": WEIGHTS}, {"weights": {**WEIGHTS, "intent": 0}}, {"weights": {**WEIGHTS, "mood": 2}}],
    "size": [{}, {"temperature": 2}, {"temperature": 0.1}],
    "exp3s": [{}, {"rate": 5.0}, {"reward": "improving", "explore": 0.3}, {"reward": "trend", "reservoir": 5}],
    "dynamic": [{}, {"explore": 0.1}, {"weights": {"waiting": 30.0, "shortfall x progress": -4.0}}],
}


def documented():
    """The policy of the documentation, which is not left in the registry."""
    known = set(POLICIES)
    block = next(block for block in BLOCKS if "POLICIES.add" in block)
    exec(compile(block, str(PAGE), "exec", dont_inherit=True), {"__name__": __name__})
    [name] = set(POLICIES) - known
    return POLICIES._entries.pop(name)


EVERY = [make_policy(name, **settings) for name in POLICIES for settings in SETTINGS.get(name, [{}])]
EVERY.append(documented()())
every_policy = pytest.mark.parametrize("policy", EVERY, ids=str)


def lead(policy, *, steps=60, seed=0, runs=1, tasks=TASKS, sizes=SIZES, losses=None, planned=None):
    """What a policy says at every step of trainings in which tasks are drawn and losses fall: (steps, runs, tasks)."""
    rng = np.random.default_rng(5)
    steering = policy.begin(Course(tasks, sizes, planned or steps, seed, runs))
    found = np.empty((steps, runs, len(tasks)))
    for step in range(steps):
        found[step] = steering.probabilities(step)
        task = rng.integers(len(tasks), size=runs)
        before = rng.exponential(2.0 / (1 + step / 10), runs) if losses is None else rng.choice(losses, runs)
        after = before * rng.uniform(0.5, 1.1, runs) if losses is None else rng.choice(losses, runs)
        steering.observe(step, task, before, after if steering.needs_after else None)
    return found


def assert_probabilities(found):
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-9)


@every_policy
@pytest.mark.parametrize("runs", [1, 7])
def test_it_answers_with_probabilities_of_every_task_for_every_run(policy, runs):
    assert_probabilities(lead(policy, runs=runs))


@every_policy
def test_the_same_seed_gives_the_same_answers(policy):
    np.testing.assert_array_equal(lead(policy, steps=1200, seed=3), lead(policy, steps=1200, seed=3))


@every_policy
def test_asking_twice_gives_the_same_answer(policy):
    steering = policy.begin(Course(TASKS, SIZES, 10))
    np.testing.assert_array_equal(steering.probabilities(0), steering.probabilities(0))


# Which rewards a full reservoir keeps is drawn, differently for one run and for many.
@pytest.mark.parametrize("policy", [policy for policy in EVERY if getattr(policy, "reservoir", 1000) >= 60], ids=str)
def test_trainings_side_by_side_are_steered_like_each_alone(policy):
    rng, runs, steps = np.random.default_rng(2), 5, 60
    task, before, after = rng.integers(3, size=(steps, runs)), *rng.exponential(size=(2, steps, runs))
    together = policy.begin(Course(TASKS, SIZES, steps, runs=runs))
    alone = [policy.begin(Course(TASKS, SIZES, steps)) for _ in range(runs)]
    for step in range(steps):
        said = together.probabilities(step)
        for run, steering in enumerate(alone):
            np.testing.assert_allclose(steering.probabilities(step)[0], said[run], rtol=1e-9, atol=1e-12)
            told = after[step, run : run + 1] if steering.needs_after else None
            steering.observe(step, task[step, run : run + 1], before[step, run : run + 1], told)
        together.observe(step, task[step], before[step], after[step] if together.needs_after else None)


@every_policy
def test_a_policy_that_was_saved_is_the_same_when_loaded(policy, tmp_path, monkeypatch):
    monkeypatch.setitem(POLICIES._entries, policy.name, type(policy))
    policy.save(tmp_path / "policy.json", learned={"logs": ["a.parquet"]})
    again = load_policy(tmp_path / "policy.json")
    assert again == policy
    assert read_policy(json.loads(json.dumps(policy.describe()))) == policy
    np.testing.assert_array_equal(lead(again), lead(policy))


@every_policy
def test_a_policy_is_a_description_that_trainings_do_not_change(policy):
    before = json.dumps(policy.describe())
    first = lead(policy)
    assert json.dumps(policy.describe()) == before
    np.testing.assert_array_equal(lead(policy), first)  # nothing is carried from one training to the next


@every_policy
@pytest.mark.parametrize("losses", [[0.0], [1e-12], [50.0], [0.0, 1e-12, 50.0], [700.0, 1e4]])
def test_no_loss_breaks_it(policy, losses):
    assert_probabilities(lead(policy, steps=400, runs=3, losses=losses))


@every_policy
def test_it_goes_on_beyond_the_steps_that_were_planned(policy):
    assert_probabilities(lead(policy, steps=50, planned=10))


@every_policy
def test_one_task_alone_gets_every_step(policy):
    np.testing.assert_allclose(lead(policy, tasks=TASKS[1:2], sizes=(40,)), 1, atol=1e-12)


@every_policy
def test_the_order_of_the_tasks_does_not_matter(policy):
    """On average over rounds of all tasks, since somebody may take turns."""
    order, steps = [2, 0, 1], 60
    rng = np.random.default_rng(4)
    task, before, after = rng.integers(3, size=steps), *rng.exponential(size=(2, steps))
    said = []
    for places in ([0, 1, 2], order):
        course = Course(tuple(TASKS[at] for at in places), tuple(SIZES[at] for at in places), steps)
        steering, found = policy.begin(course), np.empty((steps, 3))
        for step in range(steps):
            found[step, places] = steering.probabilities(step)[0]
            told = after[step : step + 1] if steering.needs_after else None
            steering.observe(step, np.array([places.index(task[step])]), before[step : step + 1], told)
        said.append(found.mean(axis=0))
    np.testing.assert_allclose(said[0], said[1], rtol=1e-9)


@every_policy
def test_many_trainings_are_steered_at_the_speed_of_arrays(policy):
    """A thousand trainings of eight tasks cost less than a hundred alone would, on a busy machine as well."""

    def seconds(runs):
        begun = time.perf_counter()
        lead(policy, steps=30, runs=runs, tasks=tuple("abcdefgh"), sizes=(10,) * 8)
        return time.perf_counter() - begun

    if policy.name == "fixed":
        policy = type(policy)(dict.fromkeys("abcdefgh", 1))
    alone, many = np.median([[seconds(1), seconds(1000)] for _ in range(5)], axis=0)
    assert many < 100 * alone


def test_the_librarys_way_in_the_documentation_works(tmp_path, monkeypatch, one_thread):
    from bursar.curriculum import StepLog
    from bursar.simulation import assistant_corpus

    monkeypatch.chdir(tmp_path)
    corpus = assistant_corpus(300, seed=1).with_tasks(["intent", "slots"])
    small = corpus.take(np.concatenate([np.flatnonzero(corpus.split_codes == code)[:30] for code in range(3)]))
    block = next(block for block in BLOCKS if "improve(" in block)
    assert '{"steps": 400}' in block
    exec(block.replace('{"steps": 400}', '{"steps": 6, "layers": 1}'), {"corpus": small})
    first, second = (StepLog.read(f"logs/{name}.parquet") for name in ("first", "second"))
    assert first.policy == {"policy": "uniform"}
    assert second.policy == load_policy("learned.json").describe()
