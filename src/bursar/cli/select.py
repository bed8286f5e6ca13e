"""``bursar select``: spend a budget on the confidences of your own model."""

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


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(select)


ScoresArgument = Annotated[
    Path,
    typer.Argument(
        help="CSV or Parquet with the columns id and confidence:TASK (0 to 1) for each task; perhaps cost:TASK "
        "(1 if not given), cost:reading (0; paid once an item), group, hours:WHO:TASK.",
        metavar="SCORES",
    ),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", "-b", metavar="B", help="What may be spent, in the units of the costs.")
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="What may be bought together. joint: an item for all tasks or not at all. disjoint: an item for any "
        "of the tasks. equal: each task from its own share of the budget. single:TASK: as joint, but only the "
        "confidence in that task counts.",
    ),
]
CombineOption = Annotated[
    str | None,
    typer.Option(
        "--combine",
        metavar="HOW",
        help="In joint mode, how the confidences of an item become one: avg, max or min; rrf: by reciprocal ranks; "
        "par: by Pareto fronts; ind: each task names its own. avg if not given.",
    ),
]
SpendOption = Annotated[
    str | None,
    typer.Option(
        "--spend",
        metavar="HOW",
        help="exact: the best there is for the money. greedy: the least confident first. ratio: the most doubt "
        "for the money first. exact if not given; greedy for par and ind.",
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="TASK=W,…",
        help="How much each task counts, as in intent=0.7,slots=0.3; a task that is not named does not. For avg, "
        "rrf, par and ind.",
    ),
]
AtMostOption = Annotated[
    list[str] | None,
    typer.Option("--at-most", metavar="TASK=N", help="No more labels than this for a task. Repeat for others."),
]
AtLeastOption = Annotated[
    list[str] | None,
    typer.Option("--at-least", metavar="TASK=N", help="No fewer labels than this for a task. Repeat for others."),
]
PerGroupOption = Annotated[
    int | None,
    typer.Option("--per-group", min=1, metavar="N", help="No more items than this of a group."),
]
HoursOption = Annotated[
    list[str] | None,
    typer.Option("--hours", metavar="WHO=H", help="No more hours than this of an annotator. Repeat for others."),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="CHOSEN", help="CSV or Parquet to write; CSV on the screen if not given."),
]
AsJsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON line: objective, bound, optimal, cost, items, seconds.")
]


def select(
    scores: ScoresArgument,
    budget: BudgetOption,
    mode: ModeOption = "joint",
    combine: CombineOption = None,
    spend: SpendOption = None,
    weights: WeightsOption = None,
    in_items: Annotated[bool, typer.Option("--items", help="The budget is a number of items, whatever they cost.")] = (
        False
    ),
    at_most: AtMostOption = None,
    at_least: AtLeastOption = None,
    per_group: PerGroupOption = None,
    hours: HoursOption = None,
    out: OutOption = None,
    as_json: AsJsonOption = False,
) -> None:
    """Choose what to label next by the confidences of your own model: one file in, one file out.

    [bold]bursar select scores.csv --budget 20000 --mode disjoint --out chosen.csv[/bold]

    CHOSEN has the columns id, tasks (joined by ;) and cost, the best item first. The command also prints how far the
    selection is from the optimum, at most.
    """
    recipe = _recipe(mode, combine, spend, weights)
    money = _number("--budget", budget, whole=in_items)
    most, least = _named("--at-most", at_most, whole=True), _named("--at-least", at_least, whole=True)
    time_of = _named("--hours", hours)
    if recipe.value is None and (most or least or time_of or per_group):
        raise ConfigError(
            f"{recipe.name} gives no scores, so it cannot keep to limits",
            fix="use --combine avg, max, min or rrf, or take the limits away",
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
    typer.echo(summary if out is None else f"{summary}. Written to {out}", err=out is None)
    if table.ignored:
        typer.echo(f"Columns that were not looked at: {', '.join(table.ignored)}", err=True)


# -- options ----------------------------------------------------------------------------------------------
def _recipe(mode: str, combine: str | None, spend: str | None, weights: str | None) -> Strategy:
    """The strategy by the library's name for it."""
    from bursar.selection import Strategy, make_strategy
    from bursar.selection.strategy import one_task

    kind, _, task = mode.partition(":")
    if kind not in ("joint", "single", *LABEL_BY_LABEL) or (kind == "single") != bool(task):
        raise ConfigError(f"--mode {mode}: there is no such mode", fix="use joint, disjoint, equal or single:TASK")
    if kind != "joint":
        for option, given in (("--combine", combine), ("--weights", weights)):
            if given is not None:
                raise ConfigError(f"{option} means nothing to --mode {kind}", fix="leave it out, or use --mode joint")
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
            f"MT-{combine.upper()} gives no scores, so --spend {spend} cannot spend by them",
            fix="use --spend greedy, or --combine avg, max, min or rrf",
        )
    if combine in UNWEIGHTED and weights is not None:  # errata 16
        raise ConfigError(
            f"--weights mean nothing to --combine {combine}: one task alone decides",
            fix="use --combine avg, rrf, par or ind, or leave them out",
        )
    counts = {name: float(weight) for name, weight in _named("--weights", weights and weights.split(",")).items()}
    name = f"MT-{combine.upper()}"
    return make_strategy(name if combine in SCORELESS else f"{name}+{SPENDING[spend]}", weights=counts)


def _one_of(option: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise ConfigError(f"{option} {given}: there is no such way", fix=f"use {', '.join(known)}")
    return given


def _named(option: str, given: Sequence[str] | None, *, whole: bool = False) -> dict[str, Decimal]:
    """``NAME=NUMBER``, each name once."""
    found: dict[str, Decimal] = {}
    for entry in given or ():
        name, equals, number = entry.strip().rpartition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {entry!r} names nothing", fix="write NAME=NUMBER")
        if name in found:
            raise ConfigError(f"{option} is given twice for {name!r}", fix="give it once")
        found[name] = _number(f"{option} {name}", number, whole=whole)
    return found


def _number(option: str, text: str, *, whole: bool = False) -> Decimal:
    """A number from 0 up, exactly as it was typed."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0 or (whole and found != found.to_integral_value()):
        fix = "use a whole number from 0 up" if whole else "use a number from 0 up, such as 20000 or 199.50"
        raise ConfigError(f"{option}: {text!r} will not do", fix=fix)
    return found


def _known(option: str, task: str | None, tasks: Sequence[str]) -> None:
    if task is not None and task not in tasks:
        raise ConfigError(f"{option}: there is no task {task!r}", fix=f"the tasks are {', '.join(tasks)}")


def _limits(
    table: Scores,
    most: Mapping[str, Decimal],
    least: Mapping[str, Decimal],
    per_group: int | None,
    hours: Mapping[str, Decimal],
) -> Limits:
    """What the selection must keep to beside its budget."""
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
            there = f"those with hours are {', '.join(table.hours)}" if table.hours else "add a column hours:WHO:TASK"
            raise ConfigError(f"--hours: no column tells the hours of {who!r}", fix=there)
        sums.append(Limit(f"hours of {who}", table.hours[who], float(time_of)))
    if per_group is None:
        return Limits(sums)
    if table.groups is None:
        raise ConfigError("--per-group: there is no column 'group'", fix="add one, or leave --per-group out")
    return Limits(sums, table.cap(per_group))


# -- results -------------------------------------------------------------------------------------------------
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
    """What was bought, and how much of the budget it took."""
    items, labels = _many(len(chosen), "item"), _many(int(chosen.tasks.sum()), "label")
    if in_items:
        return f"{items} of {_shown(budget)}, {labels}, {_shown(spent)} spent"
    return f"{items}, {labels}, {_shown(spent)} of {_shown(budget)} spent"


def _quality(recipe: Strategy, certificate: Certificate | None) -> str:
    """How far from the best possible, at most."""
    if certificate is None:
        return f"{recipe.name} gives no scores that could be compared"
    if certificate.optimal:
        return "proven optimal"
    if certificate.gap is None:
        return "equal shares are a procedure, so nothing is proven"
    gap = 100 * certificate.gap
    return f"at most {gap:.2f} % below the best possible" if gap >= 0.01 else "less than 0.01 % below the best possible"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _shown(number: Decimal) -> str:
    """With commas between thousands and no zeros at the end.

    >>> _shown(Decimal("20000.50")), _shown(Decimal("2E+3"))
    ('20,000.5', '2,000')
    """
    if number.adjusted() > 20:  # too many zeros to show
        return str(number)
    shown = f"{number:,f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
