"""Campaigns made of two learning curves and noise, whose saving is known: hundreds of them in seconds.

Random labelling's error is a power of money. A unit of money that the strategy chose is worth so many units of random
money, so its curve is random's, reached sooner or later. Which items were drawn makes log errors noisy, and models that
share items share that; measuring on test items or slices adds noise, which two models on the same items share in part.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from bursar.campaign.savings import FEWEST_ITEMS, TEST, Points, Row, savings_by
from bursar.ragged import FloatArray

MONEY, PRICE, START, ROUNDS = 3250.0, 15.0, 0.22, 5
LUCK = 0.045
LEVEL = 0.25  # random's error with all the money
SHARED = 0.75  # of what makes an item hard, for two models alike
WORTHS = (-0.2, 0.0, 0.2, 0.4, 0.6)  # log of what a campaign's money was worth in random's


def simulate(
    campaigns: int, *, share: float, test: int, random_start: bool, size: int = 1, seed: int = 0
) -> list[list[float | None]]:
    """For every campaign the truth, and the estimate's low end, middle, high end and labels needed.

    ``test`` is how many test items there are, ``size`` how many times the money of the smallest campaign.

    >>> truth, low, middle, high, needed = simulate(1, share=0.2, test=1000, random_start=True)[0]
    >>> low <= middle <= high
    True
    """
    rng = np.random.default_rng([seed, int(100 * share), test, random_start, size])
    found = []
    for _ in range(campaigns):
        exponent, worth = rng.uniform(0.2, 0.5), float(np.exp(rng.choice(WORTHS)))
        points, truth = _campaign(rng, exponent, worth, share, test, random_start, size)
        estimate = None if points is None else savings_by(points, size * MONEY, START * size * MONEY)
        keys = ("low", "saved", "high", "needed")
        row = [None if estimate is None else getattr(estimate, key) for key in keys]
        found.append([round(truth, 4), *(None if v is None else round(float(v), 4) for v in row)])
    return found


def _campaign(
    rng: np.random.Generator, exponent: float, worth: float, share: float, test: int, random_start: bool, size: int
) -> tuple[Points | None, float]:
    spent = size * MONEY
    start, a_round = START * spent, (1 - START) * spent / ROUNDS
    money: FloatArray = start + a_round * np.arange(ROUNDS + 1, dtype=float)
    drawn: FloatArray = share * a_round * np.arange(ROUNDS + 1, dtype=float) + (start if random_start else 0.0)
    chosen_worth = max(0.0, (worth * spent - drawn[-1]) / (spent - drawn[-1]))
    random: FloatArray = np.maximum(drawn, PRICE).astype(np.float64)
    luck, shadow_luck = _luck(rng, money), _luck(rng, random)
    if random_start:
        luck[0] = shadow_luck[0]
    error = LEVEL * ((random + chosen_worth * (money - random)) / spent) ** -exponent * luck
    shadow_error = np.minimum(LEVEL * (random / spent) ** -exponent * shadow_luck, 0.9)
    truth = 1 - (error[-1] / LEVEL) ** (1 / exponent)
    slice_items = max(1, round(share * a_round / PRICE))
    if test:
        sampled = rng.normal(size=test)
        mine, its = _measured(rng, error, sampled), _measured(rng, shadow_error, sampled)
        chosen = np.append(_chosen(money, drawn), np.zeros(ROUNDS))
        spending, errors = np.append(money, random[1:]), np.append(mine, its[1:])
        rows = [(m, m / PRICE, c, e, TEST, test) for m, c, e in zip(spending, chosen, errors, strict=True)]
    else:
        rows = _on_slices(rng, money, random, _chosen(money, drawn), error, shadow_error, slice_items)
    return Points.of(rows) if rows else None, truth


def _chosen(money: FloatArray, drawn: FloatArray) -> FloatArray:
    """The share of the money for which the strategy chose, as a part of the last round's."""
    share = 1 - drawn / money
    found: FloatArray = share / share[-1]
    return found


def _luck(rng: np.random.Generator, money: FloatArray) -> FloatArray:
    """A factor of each model's error: models that share most of their items share most of their luck."""
    drawn = [float(rng.normal())]
    for before, now in pairwise(money.tolist()):
        drawn.append(before / now * drawn[-1] + np.sqrt(1 - (before / now) ** 2) * float(rng.normal()))
    found: FloatArray = np.exp(LUCK * np.maximum(60 / (money / PRICE), 1) ** 0.3 * np.array(drawn))
    return found


def _measured(rng: np.random.Generator, errors: FloatArray, hard: FloatArray) -> FloatArray:
    """The share of items that each model gets wrong, where some are hard for all of them."""
    own = rng.normal(size=(len(errors), len(hard)))
    ease = np.sqrt(SHARED) * hard + np.sqrt(1 - SHARED) * own
    found: FloatArray = (ease < ndtri(np.minimum(errors, 0.9))[:, None]).mean(axis=1)
    return found


def _on_slices(
    rng: np.random.Generator,
    money: FloatArray,
    random: FloatArray,
    chosen: FloatArray,
    error: FloatArray,
    its: FloatArray,
    items: int,
) -> list[Row]:
    """As ``savings`` takes slices together until they hold enough items."""
    rows: list[Row] = []
    group: list[int] = []
    for round in range(1, ROUNDS + 1):
        group.append(round - 1)
        if len(group) * items < FEWEST_ITEMS:
            continue
        both = np.mean([_measured(rng, np.array([error[k], its[k]]), rng.normal(size=items)) for k in group], axis=0)
        for share, spent, wrong in ((float(chosen[group].mean()), money, both[0]), (0.0, random, both[1])):
            middle = float(np.exp(np.log(spent[group]).mean()))
            rows.append((middle, middle / PRICE, share, float(wrong), round, len(group) * items))
        group = []
    return rows
