"""The search for the best labelling order: simulated annealing, then greedy steps (paper 4, algorithm 1).

Four things make it fast without changing the chain. A proposal needs scores only for the prefixes it changes, and known
scores are cached. The outcome of a proposal can mostly be guessed, so the next ones are made in advance and all their
models are trained together. A judge that trains networks gets sets one by one and drops those no longer needed. And
since the number that decides on a proposal is drawn first, a proposal is dropped as soon as perfect scores could not
save it.

A *surrogate*, a cheaper judge that picks the most promising of several moves at each step, does change the chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bursar.errors import ConfigError
from bursar.oracle.async_search import AsyncSearch
from bursar.oracle.chain import OrderChain, SearchCallback, SearchPlan, SearchState
from bursar.oracle.judge import Judge, ScoreCache
from bursar.oracle.orders import Order


@dataclass(frozen=True)
class SearchOptions:
    """What a search may be given in addition.

    ``callback`` gets the state after each round of proposals. It is one object that keeps changing; store it with
    ``as_json`` and pass it as ``state`` to resume.
    """

    state: SearchState | None = None  # of an earlier search; a random order without
    callback: SearchCallback | None = None
    cache: ScoreCache | None = None
    surrogate: Judge | None = None


def search(
    judge: Judge, shape: tuple[int, int], plan: SearchPlan, *, seed: int = 0, options: SearchOptions | None = None
) -> SearchState:
    """Search for the best order of this shape: batches, and items per batch."""
    given = options or SearchOptions()
    surrogate, state = given.surrogate, given.state
    if plan.screened > 1 and (surrogate is None or surrogate.pool != judge.pool):
        raise ConfigError(
            f"screened = {plan.screened} needs a surrogate for the same pool", fix="pass one, or use screened = 1"
        )
    chain = OrderChain(
        given.cache or ScoreCache(judge), plan, seed, ScoreCache(surrogate) if surrogate is not None else None
    )
    now = (
        replace(state, history=[*state.history])
        if state
        else SearchState.start(Order.random(judge.pool, *shape, seed), chain.cache)
    )
    if shape == (1, judge.pool):
        now.step = plan.all_steps  # there is only one order
    stream = judge.stream() if plan.ahead > 1 else None
    if stream is not None:
        return AsyncSearch(chain, stream).run(now, given.callback)
    while now.step < plan.all_steps:
        chain.decide(now, list(chain.ahead(now)))
        if given.callback is not None:
            given.callback(now)
    return now
