"""``bursar select``: select items by the confidences of your own model."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.selection import Certificate, Limits, Selection, Strategy
    from bursar.selection.scores import Scores
    from bursar.selection.spend import Spend

LABEL_BY_LABEL = {"disjoint": "UDJS", "equal": "EQB-DJS"}
COMBINERS = ("avg", "max", "min", "rrf", "par", "ind")
SPENDING = {"exact": "BLP_AL", "greedy": "GRD_AL", "ratio": "RATIO_AL"}
SCORELESS = ("par", "ind")
UNWEIGHTED = ("max", "min")


ScoresArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV or Parquet file with columns id and confidence:TASK (0 to 1) for each task. Optional columns: "
        "cost:TASK (default 1), cost:reading (default 0, paid once per item), group, hours:ANNOTATOR:TASK.",
        metavar="SCORES",
    ),
]
BudgetOption = Annotated[str, typer.Option("--budget", "-b", metavar="B", help="Budget, in the units of the costs.")]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="joint: label an item for all tasks or none. disjoint: label an item for any of its tasks. equal: as "
        "disjoint, with an equal share of the budget per task. single:TASK: as joint, but by one task's confidence.",
    ),
]
CombineOption = Annotated[
    str | None,
    typer.Option(
        "--combine",
        metavar="HOW",
        help="Joint mode: how to combine the confidences of an item. avg, max, min; rrf: reciprocal rank fusion; "
        "par: Pareto fronts; ind: each task picks its share of items. Default: avg.",
    ),
]
SpendOption = Annotated[
    str | None,
    typer.Option(
        "--spend",
        metavar="HOW",
        help="exact: the optimal selection. greedy: least confident first. ratio: most uncertainty per cost first. "
        "Default: exact; greedy for par and ind.",
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="TASK=W,…",
        help="Weights of the tasks, such as intent=0.7,slots=0.3. Other tasks get weight 0. For avg, rrf, par and ind.",
    ),
]
AtMostOption = Annotated[
    list[str] | None,
    typer.Option("--at-most", metavar="TASK=N", help="Maximum number of labels for a task. Repeatable."),
]
AtLeastOption = Annotated[
    list[str] | None,
    typer.Option("--at-least", metavar="TASK=N", help="Minimum number of labels for a task. Repeatable."),
]
PerGroupOption = Annotated[
    int | None,
    typer.Option("--per-group", min=1, metavar="N", help="Maximum number of items per group."),
]
HoursOption = Annotated[
    list[str] | None,
    typer.Option("--hours", metavar="ANNOTATOR=H", help="Maximum hours of an annotator. Repeatable."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="CHOSEN", help="CSV or Parquet file to write. Default: CSV on standard output."
    ),
]
AsJsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object: objective, bound, optimal, cost, items, seconds.")
]


def select(
    scores: ScoresArgument,
    budget: BudgetOption,
    mode: ModeOption = "joint",
    combine: CombineOption = None,
    spend: SpendOption = None,
    weights: WeightsOption = None,
    in_items: Annotated[bool, typer.Option("--items", help="Count the budget in items instead of costs.")] = False,
    at_most: AtMostOption = None,
    at_least: AtLeastOption = None,
    per_group: PerGroupOption = None,
    hours: HoursOption = None,
    out: OutOption = None,
    as_json: AsJsonOption = False,
) -> None:
    """Select the items to label next, by the confidences of your own model.

    [bold]bursar select scores.csv --budget 20000 --mode disjoint --out chosen.csv[/bold]

    CHOSEN has the columns id, tasks (separated by ;) and cost, best item first.
    The command also prints how far the selection is from the optimum, at most.
    """
    recipe = _recipe(mode, combine, spend, weights)
    money = _number("--budget", budget, whole=in_items)
    most, least = _named("--at-most", at_most, whole=True), _named("--at-least", at_least, whole=True)
    time_of = _named("--hours", hours)
    if recipe.value is None and (most or least or time_of or per_group):
        raise ConfigError(
            f"{recipe.name} has no scores, so it does not support limits",
            fix="use --combine avg, max, min or rrf, or remove the limits",
        )

    from bursar.selection.scores import CostUnits, check_target, csv_text, read_scores, selection_table, write_selection

    if out is not None:
        check_target(out, scores)
    table = read_scores(scores)
    for option, task in [("--mode single", recipe.task), *(("--weights", task) for task in recipe.weights)]:
        _known(option, task, table.tasks)
    pool = table.pool(_limits(table, most, least, per_group, time_of))
    units = CostUnits(0) if in_items else table.units
    started = time.perf_counter()
    chosen = recipe.select(pool, units.floor(money), in_items=in_items)
    seconds = time.perf_counter() - started

    rows = selection_table(table, chosen)
    if out is not None:
        write_selection(rows, out)
    spent = table.units.money(chosen.total)
    if as_json:
        typer.echo(json.dumps(_as_json(chosen, spent, seconds)))
        return
    if out is None:
        typer.echo(csv_text(rows).encode(), nl=False)
    summary = f"{_bought(chosen, spent, money, in_items)}; {_quality(recipe, chosen.certificate)}"
    typer.echo(summary if out is None else f"{summary}. Saved to {out}", err=out is None)
    if table.ignored:
        typer.echo(f"Ignored columns: {', '.join(table.ignored)}", err=True)


# -- options ----------------------------------------------------------------------------------------------
def _recipe(mode: str, combine: str | None, spend: str | None, weights: str | None) -> Strategy:
    """Translate the options into a strategy of the library."""
    from bursar.selection import Strategy, make_strategy
    from bursar.selection.strategy import one_task

    kind, _, task = mode.partition(":")
    if kind not in ("joint", "single", *LABEL_BY_LABEL) or (kind == "single") != bool(task):
        raise ConfigError(f"--mode {mode}: unknown mode", fix="use joint, disjoint, equal or single:TASK")
    if kind != "joint":
        for option, given in (("--combine", combine), ("--weights", weights)):
            if given is not None:
                raise ConfigError(
                    f"{option} has no effect in --mode {kind}", fix=f"remove {option}, or use --mode joint"
                )
    combine = _one_of("--combine", combine or "avg", COMBINERS)
    spend = _one_of("--spend", spend or ("greedy" if combine in SCORELESS else "exact"), tuple(SPENDING))
    if kind == "single":
        return Strategy(
            f"STCS-{task}", f"lowest confidence in {task}", value=one_task(task), task=task, spend=cast("Spend", spend)
        )
    if kind in LABEL_BY_LABEL:
        return make_strategy(f"{LABEL_BY_LABEL[kind]}+{SPENDING[spend]}")
    if combine in SCORELESS and spend != "greedy":  # errata 8
        raise ConfigError(
            f"MT-{combine.upper()} has no scores, so it does not support --spend {spend}",
            fix="use --spend greedy, or --combine avg, max, min or rrf",
        )
    if combine in UNWEIGHTED and weights is not None:  # errata 16
        raise ConfigError(
            f"--weights have no effect with --combine {combine}",
            fix="use --combine avg, rrf, par or ind, or remove --weights",
        )
    counts = {name: float(weight) for name, weight in _named("--weights", weights and weights.split(",")).items()}
    name = f"MT-{combine.upper()}"
    return make_strategy(name if combine in SCORELESS else f"{name}+{SPENDING[spend]}", weights=counts)


def _one_of(option: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise ConfigError(f"{option} {given}: unknown value", fix=f"use {', '.join(known)}")
    return given


def _named(option: str, given: Sequence[str] | None, *, whole: bool = False) -> dict[str, Decimal]:
    """Parse ``NAME=NUMBER`` options, each name once."""
    found: dict[str, Decimal] = {}
    for entry in given or ():
        name, equals, number = entry.strip().rpartition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {entry!r} has no name", fix="write NAME=NUMBER")
        if name in found:
            raise ConfigError(f"{option} is given twice for {name!r}", fix="pass it once")
        found[name] = _number(f"{option} {name}", number, whole=whole)
    return found


def _number(option: str, text: str, *, whole: bool = False) -> Decimal:
    """Parse a number of at least 0, exactly as typed."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0 or (whole and found != found.to_integral_value()):
        fix = "use a whole number of at least 0" if whole else "use a number of at least 0, such as 20000 or 199.50"
        raise ConfigError(f"{option}: {text!r} is not a valid number", fix=fix)
    return found


def _known(option: str, task: str | None, tasks: Sequence[str]) -> None:
    if task is not None and task not in tasks:
        raise ConfigError(f"{option}: unknown task {task!r}", fix=f"the tasks are {', '.join(tasks)}")


def _limits(
    table: Scores,
    most: Mapping[str, Decimal],
    least: Mapping[str, Decimal],
    per_group: int | None,
    hours: Mapping[str, Decimal],
) -> Limits:
    """Make the limits of the selection beside its budget."""
    import numpy as np

    from bursar.selection import Limit, Limits

    for option, given in (("--at-most", most), ("--at-least", least)):
        for task in given:
            _known(option, task, table.tasks)
    sums = []
    for at, task in enumerate(table.tasks):
        if task in most or task in least:
            use = np.zeros(table.own.shape)
            use[:, at] = 1
            sums.append(Limit(f"labels of {task}", use, float(most.get(task, "inf")), float(least.get(task, 0))))
    for who, time_of in hours.items():
        if who not in table.hours:
            there = f"use {', '.join(table.hours)}" if table.hours else "add a column hours:ANNOTATOR:TASK"
            raise ConfigError(f"--hours: no column has the hours of {who!r}", fix=there)
        sums.append(Limit(f"hours of {who}", table.hours[who], float(time_of)))
    if per_group is None:
        return Limits(sums)
    if table.groups is None:
        raise ConfigError("--per-group: there is no column 'group'", fix="add one, or remove --per-group")
    return Limits(sums, table.cap(per_group))


# -- output --------------------------------------------------------------------------------------------------
def _as_json(chosen: Selection, spent: Decimal, seconds: float) -> dict[str, Any]:
    certificate = chosen.certificate
    return {
        "objective": certificate and certificate.objective,
        "bound": certificate and certificate.bound,
        "optimal": certificate is not None and certificate.optimal,
        "cost": int(spent) if spent == int(spent) else float(spent),
        "items": len(chosen),
        "seconds": round(seconds, 6),
    }


def _bought(chosen: Selection, spent: Decimal, budget: Decimal, in_items: bool) -> str:
    """Describe what was selected and what it costs."""
    from bursar.report.wording import counted

    items, labels = counted(len(chosen), "item"), counted(int(chosen.tasks.sum()), "label")
    if in_items:
        return f"{items} of {_shown(budget)}, {labels}, {_shown(spent)} spent"
    return f"{items}, {labels}, {_shown(spent)} of {_shown(budget)} spent"


def _quality(recipe: Strategy, certificate: Certificate | None) -> str:
    """Describe how far the selection is from the optimum, at most."""
    if certificate is None:
        return f"{recipe.name} has no scores to compare"
    if certificate.optimal:
        return "proven optimal"
    if certificate.gap is None:
        return "no guarantee for equal shares"
    gap = 100 * certificate.gap
    return f"at most {gap:.2f} % below the optimum" if gap >= 0.01 else "less than 0.01 % below the optimum"


def _shown(number: Decimal) -> str:
    """Format an amount with two decimals, or none if it is whole; smaller amounts than 0.01 are exact.

    >>> _shown(Decimal("20000.50")), _shown(Decimal("2E+3")), _shown(Decimal("0.004"))
    ('20,000.50', '2,000', '0.004')
    """
    if number.adjusted() > 20:
        return str(number)
    if 0 < number < Decimal("0.01"):
        return f"{number:f}"
    return f"{number:,.2f}".removesuffix(".00")
