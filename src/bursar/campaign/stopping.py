"""When to stop buying labels: have the predictions settled, and what would the next round still bring?

Both questions are answered from what an honest campaign may look at: development scores, or audit slices where there
are none; never test scores. Advice changes nothing by itself.

**The next round's gain.** Scores follow a power law of money, ``score = level + slope · rise(money / spent)`` with
``rise(u) = (1 − u^−bend) / bend``: an inverse power law for a bend above 0, a logarithm at 0, and below 0 a curve that
is still in its steep beginning. It never falls and is steepest at first. ``level`` and ``slope`` are those at the money
spent so far, so the gain of the next round needs no belief in a far asymptote. The posterior of bend and slope is taken
on a grid, with level and noise integrated out: no starting values, no failed fits, the same numbers every time.

**Settled predictions** (after Bloodgood and Vijay-Shanker, 2009): the model labels watched pool items as the last
round's did, for several rounds. Agreement is taken as it is, without their correction for chance. Two models that agree
on a share of the units cannot differ by more than the rest in accuracy, which is the question here, and kappa is not
defined where both give one label to everything. What it guards against, agreeing on nothing, is asked of the score
instead: only a campaign whose score has risen can have settled. Still, a tagger agrees on words without a label
whatever it knows of the others. So settled predictions never end a campaign by themselves: where they have settled,
the expected gain decides instead of the upper end.
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

WATCHED = 200  # pool items whose predictions are followed from round to round
FEWEST_SCORES = 3  # to see a curve bend
NOTHING = 0.01  # a score up to this is none: a curve begins when something has been learned
NOISE = 0.01  # of a development score from round to round, as far as is known beforehand
NOISE_COUNTS = 3.0  # as much as so many residuals would
TIMES = 4.0  # not even so many times the money brings more than a perfect score
BENDS: FloatArray = (np.arange(-4, 25) / 8)[:, None]  # (bends, 1)
STEEPEST = 1.5  # score for e times the money
_EDGES: FloatArray = STEEPEST * (np.arange(129) / 128) ** 2  # finest near 0, where it matters whether to stop
SLOPES: FloatArray = STEEPEST * ((np.arange(128) + 0.5) / 128) ** 2  # (slopes,)
DEFAULTS = StoppingSection()


def watched_items(pool: IntArray, seed: int) -> IntArray:
    """The pool items to follow, whether they are bought later or not; ``pool`` in an order that does not change."""
    count = min(WATCHED, len(pool))
    return np.sort(np.random.default_rng([seed, 17]).choice(pool, count, replace=False))


def agreement(items: Corpus, before: Mapping[str, Sequence[Any]], now: Mapping[str, Ragged]) -> dict[str, float]:
    """How far two models agree, per task: the mean over items of the share of units that both label alike.

    ``before`` holds labels as values, the way a ledger keeps them.
    """
    found = {}
    for name, task in items.schema.items():
        earlier = Labels.of(items, name, *before[name]).rows
        found[name] = round(float(task.accuracies(earlier, now[name], items.words).mean()), 6)
    return found


# -- advice ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class KnownRound:
    """What is known of a round when its advice is given."""

    spent: float
    dev: float | None = None
    agreement: Mapping[str, float] | None = None
    audited: AuditScores | None = None  # the model before it, on this round's audit slice


def advise(
    rounds: Sequence[KnownRound], *, next_money: float | None = None, settings: StoppingSection = DEFAULTS
) -> StoppingAdvice:
    """The advice after these rounds.

    ``next_money`` is what the next round may cost, in the units of ``spent``; what the latest did if it is not given.

    >>> steep = [KnownRound(500 * k, 1 - 0.6 * k**-0.5, {"intent": 0.9}) for k in range(1, 6)]
    >>> found = advise(steep, next_money=500)
    >>> found.stop, found.settled, found.low < 0.6 * (5**-0.5 - 6**-0.5) < found.high
    (False, False, True)
    """
    scores = _scores(rounds)
    settled = _settled(rounds, scores, settings)
    lacking = _lacking(rounds, scores)
    money = _next_money(rounds, next_money)
    if lacking is None and not money > 0:
        lacking = "the next round costs nothing, so there is nothing to weigh its gain against"
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
    rounds: Sequence[KnownRound], *, next_money: float | None = None, settings: StoppingSection = DEFAULTS
) -> list[StoppingAdvice]:
    """The advice as it was after every round, from what was known then."""
    return [advise(rounds[: k + 1], next_money=next_money, settings=settings) for k in range(len(rounds))]


def stopped_at(
    rounds: Sequence[KnownRound], *, next_money: float | None = None, settings: StoppingSection = DEFAULTS
) -> int | None:
    """The first round, counted from 0, after which the advice is to stop; ``None`` if it never is.

    >>> stopped_at([KnownRound(500 * k, 0.9) for k in range(1, 7)])
    3
    """
    for last in range(len(rounds)):
        if advise(rounds[: last + 1], next_money=next_money, settings=settings).stop:
            return last
    return None


def _verdict(gain: float, high: float, settled: bool | None, settings: StoppingSection) -> tuple[bool, str]:
    if settings.judge_by == "high" and high < settings.least_gain:
        return True, "even the upper end is less than a round must bring"
    if gain >= settings.least_gain:
        return False, "that is at least what a round must bring"
    if settings.judge_by == "mean":
        return True, "that is less than a round must bring"
    if settled:
        return True, "the predictions have settled, and that is less than a round must bring"
    return False, "the mean is less, but the upper end is not less than a round must bring"


def _settled(rounds: Sequence[KnownRound], scores: _Scores, settings: StoppingSection) -> bool | None:
    """Whether the last rounds' models label alike, in a campaign that has learned something."""
    newest = [r.agreement or {} for r in rounds[-settings.settled_rounds :]]
    if len(newest) < settings.settled_rounds or not all(newest) or not len(scores.score):
        return None
    has_risen = not scores.unlearned and bool(scores.score.max() > max(scores.score[0], NOTHING))
    return has_risen and min(min(found.values()) for found in newest) >= settings.agreement


def _next_money(rounds: Sequence[KnownRound], given: float | None) -> float:
    if given is not None:
        return given
    return float(rounds[-1].spent - rounds[-2].spent) if len(rounds) > 1 else 0.0


# -- what a campaign may look at -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores known so far, each at the money of the model that it is of."""

    source: Literal["dev", "audit"]
    money: FloatArray  # (scores,)
    score: FloatArray
    noise: float  # of one score, as far as is known beforehand
    unlearned: tuple[str, ...] = ()  # tasks at 0 in every slice

    @property
    def begun(self) -> slice:
        """The scores from where something was learned; a curve at 0 has not begun, and does not say how it will go."""
        return slice(int(np.argmax(self.score > NOTHING)), None)


def known_rounds(rounds: Sequence[RoundRecord], slices: Sequence[AuditScores]) -> list[KnownRound]:
    """The rounds, each with what its audit slice said of the model before it: that was not known any earlier."""
    of_model = {part.round: part for part in slices}
    return [KnownRound(r.spent, r.dev, r.agreement, of_model.get(r.round - 1)) for r in rounds]


def _scores(rounds: Sequence[KnownRound]) -> _Scores:
    """Development scores where there are any, else the mean over tasks of every audit slice."""
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


def _lacking(rounds: Sequence[KnownRound], scores: _Scores) -> str | None:
    """Why there is no curve to read the next round's gain from."""
    if not len(scores.score) and len(rounds) >= FEWEST_SCORES:
        return "neither development items nor audit slices say how good the model is"
    if len(np.unique(scores.money)) < FEWEST_SCORES:
        return f"fewer than {_word(FEWEST_SCORES)} rounds have a score, too few to see a curve"
    if scores.unlearned:
        return f"nothing has been learned yet of {' and '.join(scores.unlearned)}, so the curve has not begun"
    if scores.score.max() <= NOTHING:
        return "the score is still zero: of one task at least nothing has been learned, so the curve has not begun"
    if len(np.unique(scores.money[scores.begun])) < FEWEST_SCORES:
        return f"fewer than {_word(FEWEST_SCORES)} rounds have a score above zero, too few to see a curve"
    return None


def _word(count: int) -> str:
    return {2: "two", 3: "three", 4: "four"}.get(count, str(count))


# -- the curve -------------------------------------------------------------------------------------------------------
def rise(times: FloatArray | float, bend: FloatArray) -> FloatArray:
    """What so many times the money bring, for a slope of 1: nothing for once, a logarithm where the bend is 0.

    >>> rise(np.e, np.array([0.0, 1.0])).round(4).tolist()
    [1.0, 0.6321]
    """
    logs = np.log(times)
    safe = np.where(bend == 0, 1.0, bend)
    found: FloatArray = np.where(bend == 0, logs, -np.expm1(-safe * logs) / safe)
    return found


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """What scores at amounts of money say of the curve behind them: a weight for every bend and slope."""

    weight: FloatArray  # (bends, slopes), sums to 1
    level: FloatArray  # (bends, slopes), expected at the money spent so far

    @classmethod
    def of(
        cls, money: FloatArray, score: FloatArray, spent: float, *, noise: float = NOISE, times: float = 1.0
    ) -> LearningCurve:
        """The posterior; beforehand all slopes and bends are alike that keep scores between 0 and 1.

        ``noise`` is the standard deviation of one score, as good as known from ``NOISE_COUNTS`` others; ``times`` is
        how far, in multiples of ``spent``, the curve will be read.
        """
        risen = rise(money / spent, BENDS)  # (bends, scores), at most 0 up to now
        off_rise, off_score = risen - risen.mean(axis=1, keepdims=True), score - score.mean()
        residual = (
            off_score @ off_score
            - 2 * SLOPES * (off_rise @ off_score)[:, None]
            + SLOPES**2 * (off_rise**2).sum(axis=1)[:, None]
        )
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
        """What so many times the money are expected to bring."""
        return float((self.weight * SLOPES * rise(times, BENDS)).sum())

    def interval(self, times: float, share: float) -> tuple[float, float]:
        """The shortest interval that holds the gain with this probability; it begins at 0 where that is likeliest."""
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
        """The score at multiples of the money spent so far."""
        found: FloatArray = np.array(
            [(self.weight * (self.level + SLOPES * rise(t, BENDS))).sum() for t in times.tolist()]
        )
        return found


def _curve(rounds: Sequence[KnownRound], scores: _Scores, times: float) -> LearningCurve:
    money, score = scores.money[scores.begun], scores.score[scores.begun]
    return LearningCurve.of(money, score, float(rounds[-1].spent), noise=scores.noise, times=times)


def forecast(
    rounds: Sequence[KnownRound], *, next_money: float | None = None, settings: StoppingSection = DEFAULTS
) -> Forecast | None:
    """The scores known so far, the curve through them and where it goes in the next two rounds, for a chart.

    ``None`` where no score is known; without ``curve`` and ``ahead`` where there is no curve to see.
    """
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
    forecast = CurvePoints(
        money=_listed(ahead * spent), score=_listed(curve.expected(ahead)), low=_listed(low), high=_listed(high)
    )
    return found.model_copy(update={"curve": fitted, "ahead": forecast})


def _listed(values: FloatArray) -> tuple[float, ...]:
    return tuple(values.round(6).tolist())
