"""The search for the best order, against the plain loop that retrains every prefix of every proposal."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bursar.compute import Processes
from bursar.corpus.formats import read
from bursar.oracle import Judge, LabellingProblem, Order, ProbeJudge, SearchPlan, SearchState, search
from bursar.oracle.network import NetworkJudge, NetworkOptions
from bursar.oracle.parallel_judge import ParallelJudge
from bursar.oracle.probe import rows_of, score_of
from bursar.oracle.problem import propose
from bursar.oracle.search import SearchOptions
from bursar.ragged import IntArray
from experiments.bench.harness import CannotMeasureError, Case, Measured, Sides, bench_case, seconds

CASES: list[Case] = []

SIZES = {"pool": 800, "warm": 40, "aside": 100, "validation": 4000, "test": 4000}  # paper 4's, for intents
STEPS = {"aoe": 400, "lstm": 40, "probe": 30_000}  # of our chain
PLAIN = {"aoe": 8, "lstm": 1, "probe": 20}  # and of the plain one
HALFWAY = 12_500  # the step from which a stretch with a network is timed
COOLING = 0.1


@cache
def _problem() -> LabellingProblem:
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    folder = Path(os.environ.get("BURSAR_DATA", beside)) / "topv2"
    if not folder.exists():
        raise CannotMeasureError("TOPv2 is not here: say where the data sets are, BURSAR_DATA")
    corpus = read(folder).with_tasks(["intent"])
    return LabellingProblem.draw(corpus, SIZES, shape=(8, 20), metric="weighted_f1", seed=0)


def _ours(judge: Judge, steps: int, begun: SearchState) -> int:
    search(
        judge, (8, 20), SearchPlan(begun.step + steps, 0, cooling=COOLING), seed=0, options=SearchOptions(state=begun)
    )
    return steps


def _begun(judge: Judge, step: int) -> SearchState:
    """A random order as if so many steps had been taken: half-way, what becomes of a proposal is hardest to guess."""
    order = Order.random(SIZES["pool"], 8, 20, seed=0)
    curve = judge.scores([order.prefix(k) for k in range(1, 9)])
    return SearchState(step, order, curve, order, curve)


def seconds_a_step(side: Callable[[], int]) -> Measured:
    """How long one step of a chain takes; calling a side returns its number of steps."""
    taken: list[int] = []
    found = seconds(lambda: taken.append(side()))
    return Measured(found / taken[0], {"steps": taken[0]})


# -- the plain way -----------------------------------------------------------------------------------------------------
def plain_chain(judged: Callable[[IntArray], float], steps: int, begun: SearchState) -> int:
    """Algorithm 1 of paper 4, line by line: every proposal trains a model for each of its prefixes."""
    order, now = begun.order, float(begun.curve.mean())
    for step in range(begun.step + 1, begun.step + steps + 1):
        move, u = propose(order, SIZES["pool"], 0, step)
        proposed = order.moved(move)
        reached = float(np.mean([judged(proposed.prefix(k)) for k in range(1, 9)]))
        if u < np.exp(min(COOLING * step * (reached - now), 1.0)):
            order, now = proposed, reached
    return steps


class PlainAverage(nn.Module):
    """The mean of word vectors, two layers of 100."""

    def __init__(self, vectors: Tensor, labels: int) -> None:
        super().__init__()
        self.words = nn.Embedding(len(vectors), vectors.shape[1], padding_idx=0, _weight=vectors.clone())
        self.layers = nn.Sequential(
            nn.Linear(vectors.shape[1], 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, labels)
        )

    def forward(self, codes: Tensor, lengths: Tensor) -> Tensor:
        found: Tensor = self.layers(self.words(codes).sum(dim=1) / lengths[:, None])
        return found


class PlainBiLSTM(nn.Module):
    """One bidirectional layer, the mean over the words."""

    def __init__(self, vectors: Tensor, labels: int) -> None:
        super().__init__()
        size = vectors.shape[1]
        self.words = nn.Embedding(len(vectors), vectors.shape[1], padding_idx=0, _weight=vectors.clone())
        self.lstm = nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * size, labels)

    def forward(self, codes: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.words(codes), lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        found: Tensor = self.output(states.sum(dim=1) / lengths[:, None])
        return found


def plain_training(judge: NetworkJudge, make: Callable[[Tensor, int], nn.Module]) -> Callable[[IntArray], float]:
    """Trains one model of a set with the same data, epochs, early stopping and optimiser, and scores it."""
    network: Any = judge.tasks["intent"].network
    codes, lengths = torch.from_numpy(network.texts.codes), torch.from_numpy(network.texts.lengths)
    targets, vectors = torch.from_numpy(network.targets), torch.from_numpy(network.vectors).float()
    settings, rows = judge.settings, judge.rows

    def guesses(model: nn.Module, items: IntArray) -> IntArray:
        longest = int(lengths[items].max())
        found: IntArray = model(codes[items, :longest], lengths[items]).argmax(dim=1).numpy()
        return found

    def score(model: nn.Module, part: str) -> float:
        with torch.no_grad():
            found = np.concatenate(
                [guesses(model, some) for some in np.array_split(rows[part], len(rows[part]) // 500 + 1)]
            )
        return score_of(network.targets[rows[part]], found, network.labels, "weighted_f1")

    def judged(items: IntArray) -> float:
        torch.manual_seed(0)
        model = make(vectors, network.labels)
        optimiser = torch.optim.Adam(model.parameters(), lr=settings.rate)
        train = np.concatenate([rows["warm"], rows["pool"][items]])
        best, best_epoch, kept = -1.0, 0, model.state_dict()
        for epoch in range(1, settings.epochs + 1):
            walk = np.random.default_rng([0, epoch]).permutation(train)
            for at in range(0, len(walk), settings.batch):
                some = walk[at : at + settings.batch]
                longest = int(lengths[some].max())
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(model(codes[some, :longest], lengths[some]), targets[some])
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            reached = score(model, "aside")
            if reached > best:
                best, best_epoch = reached, epoch
                kept = {name: value.clone() for name, value in model.state_dict().items()}
            elif epoch - best_epoch >= settings.patience:
                break
        model.load_state_dict(kept)
        return score(model, "validation")

    return judged


@dataclass(frozen=True)
class Trained:
    """How every process makes the judge of a network."""

    name: str

    def __call__(self) -> Judge:
        return NetworkJudge(_problem(), self.name, options=NetworkOptions(dropout=0.0))


_open = ExitStack()
atexit.register(_open.close)


def _networks(name: str, make: Callable[[Tensor, int], nn.Module]) -> Sides:
    """Ours with a process a core, as users have it; the plain loop is sequential, with torch's own threads."""
    judge = ParallelJudge(Trained(name), _open.enter_context(Processes()))
    judge.scores([np.arange(20), np.arange(20, 40)])  # so that every process has made its own
    assert isinstance(judge.here, NetworkJudge)
    judged, begun = plain_training(judge.here, make), _begun(judge, HALFWAY)
    return lambda: _ours(judge, STEPS[name], begun), lambda: plain_chain(judged, PLAIN[name], begun)


def _case(name: str, what: str, repeats: int = 1) -> Callable[[Callable[[], Sides]], None]:
    return bench_case(CASES, name, what, repeats, unit="s/step", measure=seconds_a_step)


@_case(
    "proposal-aoe", "a step of the chain with averages of trained word vectors, against retraining all eight prefixes"
)
def _aoe() -> Sides:
    return _networks("aoe", PlainAverage)


@_case("proposal-lstm", "a step with a BiLSTM of 64 on vectors of 64, against retraining all eight prefixes")
def _lstm() -> Sides:
    return _networks("lstm", PlainBiLSTM)


@_case("probe-search", "a step of a search of 30,000 with the probe, against scikit-learn's ridge on every prefix")
def _probe() -> Sides:
    from sklearn.linear_model import Ridge

    problem = _problem()
    judge = ProbeJudge.of(problem)
    task = judge.tasks["intent"]
    rows = rows_of(problem)["intent"]
    indicators = {part: np.eye(task.labels)[rows[part].codes] for part in ("warm", "pool")}

    def judged(items: IntArray) -> float:
        x = np.concatenate([rows["warm"].features, rows["pool"].features[items]])
        y = np.concatenate([indicators["warm"], indicators["pool"][items]])
        guesses = Ridge(alpha=task.penalty).fit(x, y).predict(rows["validation"].features).argmax(axis=1)
        return score_of(rows["validation"].codes, guesses, task.labels, "weighted_f1")

    begun = _begun(judge, 0)
    return lambda: _ours(judge, STEPS["probe"], begun), lambda: plain_chain(judged, PLAIN["probe"], begun)
