"""Advice on when to stop buying labels: the expected gain of the next round, and whether predictions have settled.

It is based on development scores, or on audit slices if there are none; never on test scores. It only advises.

**Expected gain.** Scores follow a power law of money, ``score = level + slope · rise(money / spent)`` with
``rise(u) = (1 − u^−bend) / bend``: an inverse power law for a bend above 0, a logarithm at 0, a steeper start below 0.
``level`` and ``slope`` are those at the money spent so far, so no distant asymptote has to be assumed. The posterior of
bend and slope is computed on a grid with level and noise integrated out: no starting values, no failed fits.

**Settled predictions** (after Bloodgood and Vijay-Shanker, 2009): for several rounds, the model labels the watched pool
items like the previous one, and the score has risen. Agreement is not corrected for chance: two models that agree on a
share of the units differ in accuracy by at most the rest, and kappa may be undefined. Taggers also agree on words
without a label, so settled predictions only make the expected gain decide instead of the upper end of its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from bursar.campaign.decisions import RoundRecord
from bursar.campaign.results import AuditScores, CurvePoints, Forecast, StoppingAdvice
from bursar.campaign.sections import StoppingSection
from bursar.corpus import Corpus
from bursar.corpus.corpus import Labels
from bursar.ragged import FloatArray, IntArray, Ragged
from bursar.random_streams import rng

WATCHED = 200  # pool items whose predictions are compared from round to round
FEWEST_SCORES = 3  # to see a curve bend
NOTHING = 0.01  # scores up to this count as zero: the curve has not begun
NOISE = 0.01  # prior standard deviation of a development score from round to round
NOISE_COUNTS = 3.0  # weight of that prior, in residuals
TIMES = 4.0  # the prior keeps the curve at or below a perfect score up to this multiple of the money
BENDS: FloatArray = (np.arange(-4, 25) / 8)[:, None]  # (bends, 1)
STEEPEST = 1.5  # score for e times the money
_EDGES: FloatArray = STEEPEST * (np.arange(129) / 128) ** 2  # finest near 0, where the decision is made
SLOPES: FloatArray = STEEPEST * ((np.arange(128) + 0.5) / 128) ** 2  # (slopes,)
DEFAULTS = StoppingSection()


def watched_items(pool: IntArray, seed: int) -> IntArray:
    """The pool items to watch, whether they are bought later or not; ``pool`` must be in a fixed order."""
    return np.sort(rng(seed, "watched items").choice(pool, min(WATCHED, len(pool)), replace=False))


def agreement(items: Corpus, before: Mapping[str, Sequence[Any]], now: Mapping[str, Ragged]) -> dict[str, float]:
    """The mean share of an item's units that two models label alike, by task; ``before`` is as the ledger keeps it."""
    found = {}
    for name, task in items.schema.items():
        earlier = Labels.of(items, name, *before[name]).rows
        found[name] = round(float(task.accuracies(earlier, now[name], items.words).mean()), 6)
    return found


# -- advice ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class KnownRound:
    """A round as it is known when its advice is given."""

    spent: float
    dev: float | None = None
    agreement: Mapping[str, float] | None = None
    audited: AuditScores | None = None  # the model before it, on this round's audit slice


Rounds = Sequence[KnownRound]


def advise(rounds: Rounds, *, next_money: float | None = None, settings: StoppingSection = DEFAULTS) -> StoppingAdvice:
    """The advice after these rounds; ``next_money`` is the cost of the next one, by default that of the latest."""
    scores = _scores(rounds)
    settled = _settled(rounds, scores, settings)
    lacking = _lacking(rounds, scores)
    money = _next_money(rounds, next_money)
    if lacking is None and not money > 0:
        lacking = "the next round costs nothing, so its gain has no price"
    if lacking is not None:
        return StoppingAdvice(stop=False, settled=settled, why=lacking)
    times = 1 + money / rounds[-1].spent
    curve = _curve(rounds, scores, times)
    gain = curve.gain(times)
    low, high = curve.interval(times, settings.interval)
    stop, why = _verdict(gain, high, settled, settings)
    ends = {"low": round(low, 6), "high": round(high, 6)}
    return StoppingAdvice(stop=stop, settled=settled, gain=round(gain, 6), **ends, per_money=gain / money, why=why)


def advice_by_round(
    rounds: Rounds, *, next_money: float | None = None, settings: StoppingSection = DEFAULTS
) -> list[StoppingAdvice]:
    """The advice after every round, from what was known then."""
    return [advise(rounds[: k + 1], next_money=next_money, settings=settings) for k in range(len(rounds))]


def _verdict(gain: float, high: float, settled: bool | None, settings: StoppingSection) -> tuple[bool, str]:
    if settings.judge_by == "high" and high < settings.least_gain:
        return True, "even the upper end is less than a round must bring"
    if gain >= settings.least_gain:
        return False, "that is at least what a round must bring"
    if settings.judge_by == "mean" or settled:
        why = "that is less than a round must bring"
        return True, why if settings.judge_by == "mean" else f"the predictions have settled, and {why}"
    return False, "the mean is less, but the upper end is not less than a round must bring"


def _settled(rounds: Rounds, scores: _Scores, settings: StoppingSection) -> bool | None:
    """Whether the latest models label alike and the score has risen; ``None`` if that is not known."""
    newest = [r.agreement or {} for r in rounds[-settings.settled_rounds :]]
    if len(newest) < settings.settled_rounds or not all(newest) or not len(scores.score):
        return None
    has_risen = not scores.unlearned and bool(scores.score.max() > max(scores.score[0], NOTHING))
    return has_risen and min(min(found.values()) for found in newest) >= settings.agreement


def _next_money(rounds: Rounds, given: float | None) -> float:
    latest = float(rounds[-1].spent - rounds[-2].spent) if len(rounds) > 1 else 0.0
    return latest if given is None else given


# -- scores ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores so far, each with the money spent on its model."""

    source: Literal["dev", "audit"]
    money: FloatArray  # (scores,)
    score: FloatArray
    noise: float  # prior standard deviation of one score
    unlearned: tuple[str, ...] = ()  # tasks at 0 in every slice

    @property
    def begun(self) -> slice:
        """The scores from the first above zero: those before it say nothing about the curve."""
        return slice(int(np.argmax(self.score > NOTHING)), None)


def known_rounds(rounds: Sequence[RoundRecord], slices: Sequence[AuditScores]) -> list[KnownRound]:
    """The rounds, each with its audit slice's scores of the model before it, which were not known earlier."""
    of_model = {part.round: part for part in slices}
    return [KnownRound(r.spent, r.dev, r.agreement, of_model.get(r.round - 1)) for r in rounds]


def _scores(rounds: Rounds) -> _Scores:
    """Development scores if there are any, else the mean over tasks of every audit slice."""
    dev = [(r.spent, r.dev) for r in rounds if r.dev is not None and r.spent > 0]
    if dev:
        money, score = np.array(dev, dtype=float).T
        return _Scores("dev", money, score, NOISE)
    slices = [r.audited for r in rounds if r.audited is not None and r.audited.spent > 0]
    by_task = [{name: found.score for name, found in part.scores.items()} for part in slices]
    score = np.array([np.mean(list(found.values())) for found in by_task])
    typical = float(np.clip(score.mean(), 0.1, 0.9)) if slices else 0.5
    items = float(np.mean([part.items for part in slices])) if slices else 1.0
    names = by_task[0] if by_task else {}
    return _Scores(
        "audit",
        np.array([part.spent for part in slices], dtype=float),
        score,
        float(np.sqrt(typical * (1 - typical) / max(items, 1.0))),
        tuple(name for name in names if max(found[name] for found in by_task) <= NOTHING),
    )


def _lacking(rounds: Rounds, scores: _Scores) -> str | None:
    """Why no curve can be fitted."""
    if not len(scores.score) and len(rounds) >= FEWEST_SCORES:
        return "there are no development items and no audit slices to score the model on"
    if len(np.unique(scores.money)) < FEWEST_SCORES:
        return "fewer than three rounds have a score, too few to see a curve"
    if scores.unlearned:
        return f"the score of {' and '.join(scores.unlearned)} is still zero, so the curve has not begun"
    if scores.score.max() <= NOTHING:
        return "the score is still zero, so the curve has not begun"
    if len(np.unique(scores.money[scores.begun])) < FEWEST_SCORES:
        return "fewer than three rounds have a score above zero, too few to see a curve"
    return None


# -- the curve -------------------------------------------------------------------------------------------------------
def rise(times: FloatArray | float, bend: FloatArray) -> FloatArray:
    """The gain at a multiple of the money for a slope of 1; a logarithm if the bend is 0."""
    logs = np.log(times)
    safe = np.where(bend == 0, 1.0, bend)
    found: FloatArray = np.where(bend == 0, logs, -np.expm1(-safe * logs) / safe)
    return found


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The posterior of a learning curve, given scores by money: a weight for every bend and slope."""

    weight: FloatArray  # (bends, slopes), sums to 1
    level: FloatArray  # (bends, slopes), expected at the money spent so far

    @classmethod
    def of(
        cls, money: FloatArray, score: FloatArray, spent: float, *, noise: float = NOISE, times: float = 1.0
    ) -> LearningCurve:
        """The posterior. The prior is flat over the slopes and bends that keep scores between 0 and 1.

        ``noise`` is the prior standard deviation of one score. The curve will be read up to ``times`` the money spent.
        """
        risen = rise(money / spent, BENDS)  # (bends, scores), at most 0 up to now
        off_rise, off_score = risen - risen.mean(axis=1, keepdims=True), score - score.mean()
        residual = off_score @ off_score - 2 * SLOPES * (off_rise @ off_score)[:, None]
        residual = residual + SLOPES**2 * (off_rise**2).sum(axis=1)[:, None]
        # With the level and the variance integrated out: Student's distribution, and the level's own.
        freedom = NOISE_COUNTS + len(score) - 1
        variance = (NOISE_COUNTS * noise**2 + np.maximum(residual, 0)) / freedom
        level = score.mean() - SLOPES * risen.mean(axis=1)[:, None]
        spread = np.sqrt(variance / len(score))
        top = 1 - SLOPES * rise(max(TIMES, times), BENDS)
        bottom = -SLOPES * risen.min(axis=1)[:, None]
        within = special.stdtr(freedom, (top - level) / spread) - special.stdtr(freedom, (bottom - level) / spread)
        weight = (variance / variance.min()) ** (-freedom / 2) * np.maximum(within, 1e-300) * np.diff(_EDGES)
        return cls(weight / weight.sum(), level)

    def gain(self, times: float) -> float:
        return float((self.weight * SLOPES * rise(times, BENDS)).sum())

    def interval(self, times: float, share: float) -> tuple[float, float]:
        """The shortest credible interval of the gain with this probability."""
        unsorted = (SLOPES * rise(times, BENDS)).ravel()
        order = np.argsort(unsorted, kind="stable")
        gains = unsorted[order]
        upto = np.cumsum(self.weight.ravel()[order])
        before = np.concatenate([[0.0], upto[:-1]])
        starts = np.flatnonzero(before + share <= upto[-1])
        ends = np.minimum(np.searchsorted(upto, before[starts] + share), len(gains) - 1)
        best = int(np.argmin(gains[ends] - gains[starts]))
        return float(gains[starts[best]]) if starts[best] else 0.0, float(gains[ends[best]])

    def expected(self, times: FloatArray) -> FloatArray:
        return np.array([(self.weight * (self.level + SLOPES * rise(t, BENDS))).sum() for t in times.tolist()])


def _curve(rounds: Rounds, scores: _Scores, times: float) -> LearningCurve:
    money, score = scores.money[scores.begun], scores.score[scores.begun]
    return LearningCurve.of(money, score, float(rounds[-1].spent), noise=scores.noise, times=times)


def forecast(
    rounds: Rounds, *, next_money: float | None = None, settings: StoppingSection = DEFAULTS
) -> Forecast | None:
    """The scores so far and, if one can be fitted, their curve with its next two rounds; ``None`` without scores."""
    scores, money = _scores(rounds), _next_money(rounds, next_money)
    if not len(scores.score):
        return None
    found = Forecast(source=scores.source, money=scores.money.tolist(), score=_listed(scores.score), next_money=money)
    if _lacking(rounds, scores) is not None or not money > 0:
        return found
    spent = float(rounds[-1].spent)
    ahead = 1 + 2 * money / spent * np.arange(9) / 8
    curve = _curve(rounds, scores, float(ahead[-1]))
    first = float(scores.money[scores.begun][0]) / spent
    past = first + (1 - first) * np.arange(25) / 24
    now = float(curve.expected(np.ones(1))[0])
    low, high = now + np.array([curve.interval(t, settings.interval) for t in ahead.tolist()]).T
    fitted = CurvePoints(money=_listed(past * spent), score=_listed(curve.expected(past)))
    then = CurvePoints(money=_listed(ahead * spent), score=_listed(curve.expected(ahead)))
    then = then.model_copy(update={"low": _listed(low), "high": _listed(high)})
    return found.model_copy(update={"curve": fitted, "ahead": then})


def _listed(values: FloatArray) -> tuple[float, ...]:
    return tuple(values.round(6).tolist())
