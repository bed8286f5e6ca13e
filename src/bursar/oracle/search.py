"""The search for the best labelling order: simulated annealing, then greedy steps (paper 4, algorithm 1).

Four things make it fast and none of them changes the chain. A proposal asks only about the prefixes whose sets it
changes, and a memory knows those that were asked about before. What becomes of a proposal can mostly be guessed, so the
next ones are made as if it were known, and all that they need is trained together. A judge that trains networks is
asked set by set, and hears at once what is no longer wanted. And because the number that decides on a proposal is drawn
first, a proposal is dropped as soon as perfect scores on its other prefixes could not save it.

A *surrogate*, a cheaper judge that picks the most promising of several moves at every step, does change the chain.
"""

from __future__ import annotations

from dataclasses import replace

from bursar.errors import ConfigError
from bursar.oracle.async_search import Streamed
from bursar.oracle.chain import Chain, Plan, State, Told
from bursar.oracle.judge import Judge, Memory
from bursar.oracle.orders import Order


def search(
    judge: Judge,
    batches: int,
    size: int,
    plan: Plan,
    *,
    seed: int = 0,
    state: State | None = None,
    told: Told | None = None,
    memory: Memory | None = None,
    surrogate: Judge | None = None,
) -> State:
    """The best order found, from a random one or from where an earlier search was.

    ``told`` hears of the state after every round of proposals, and it is all that ``state`` needs to go on. It is one
    object that goes on changing: whoever wants to keep it writes it down, as ``as_json`` gives it.
    """
    if plan.screened > 1 and (surrogate is None or surrogate.pool != judge.pool):
        raise ConfigError(f"screened = {plan.screened} without a surrogate of the same pool", fix="give one, or use 1")
    hired = Chain(judge, plan, seed, memory or Memory(judge), Memory(surrogate) if surrogate else None)
    now = (
        replace(state, history=[*state.history])
        if state
        else hired.begin(Order.random(judge.pool, batches, size, seed))
    )
    if batches == 1 and size == judge.pool:
        now.step = plan.all_steps  # there is only one order
    stream = judge.stream() if plan.ahead > 1 else None
    if stream is not None:
        return Streamed(hired, stream).run(now, told)
    while now.step < plan.all_steps:
        hired.decide(now, list(hired.ahead(now)))
        if told is not None:
            told(now)
    return now
