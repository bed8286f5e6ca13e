"""``bursar select``: select items by the confidences of your own model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer import Argument, Option

import bursar
from bursar.cli.options import grouped, one_of, parse_number
from bursar.cli.output import print_json
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.selection import Certificate, Limits
    from bursar.selection.scores import Scores
    from bursar.selection.spend import Spend

LABEL_BY_LABEL = {"disjoint": "UDJS", "equal": "EQB-DJS"}
COMBINERS = ("avg", "max", "min", "rrf", "par", "ind")
SPENDING = {"exact": "BLP_AL", "greedy": "GRD_AL", "ratio": "RATIO_AL"}
SCORELESS = ("par", "ind")
UNWEIGHTED = ("max", "min")


@dataclass(frozen=True)
class StrategySettings:
    """How to choose items and tasks."""

    mode: str = Option(
        "joint",
        metavar="MODE",
        help="joint: label an item for all tasks or none. disjoint: label an item for any of its tasks. equal: as "
        "disjoint, with an equal share of the budget per task. single:TASK: as joint, but by one task's confidence.",
    )
    combine: str | None = Option(
        None,
        metavar="HOW",
        help="Joint mode: how to combine the confidences of an item. avg, max, min; rrf: reciprocal rank fusion; "
        "par: Pareto fronts; ind: each task picks its share of items. Default: avg.",
    )
    spend: str | None = Option(
        None,
        metavar="HOW",
        help="exact: the optimal selection. greedy: least confident first. ratio: most uncertainty per cost first. "
        "Default: exact; greedy for par and ind.",
    )
    weights: str | None = Option(
        None,
        metavar="TASK=W,…",
        help="Weights of the tasks, such as intent=0.7,slots=0.3. Other tasks get weight 0. For avg, rrf, par and ind.",
    )

    def strategy(self) -> bursar.Strategy:
        from bursar.selection.strategy import one_task

        kind, _, task = self.mode.partition(":")
        if kind not in ("joint", "single", *LABEL_BY_LABEL) or (kind == "single") != bool(task):
            raise ConfigError(f"--mode {self.mode}: unknown mode", fix="use joint, disjoint, equal or single:TASK")
        for option, given in (("--combine", self.combine), ("--weights", self.weights)):
            if kind != "joint" and given is not None:
                fix = f"remove {option}, or use --mode joint"
                raise ConfigError(f"{option} has no effect in --mode {kind}", fix=fix)
        combine = one_of("--combine", self.combine or "avg", COMBINERS)
        spend = one_of("--spend", self.spend or ("greedy" if combine in SCORELESS else "exact"), SPENDING)
        if kind == "single":
            value, how = one_task(task), cast("Spend", spend)
            return bursar.Strategy(f"STCS-{task}", f"lowest confidence in {task}", value=value, task=task, spend=how)
        if kind in LABEL_BY_LABEL:
            return bursar.make_strategy(f"{LABEL_BY_LABEL[kind]}+{SPENDING[spend]}")
        if combine in SCORELESS and spend != "greedy":  # errata 8
            fix = "use --spend greedy, or --combine avg, max, min or rrf"
            raise ConfigError(f"MT-{combine.upper()} has no scores, so it does not support --spend {spend}", fix=fix)
        if combine in UNWEIGHTED and self.weights is not None:  # errata 16
            fix = "use --combine avg, rrf, par or ind, or remove --weights"
            raise ConfigError(f"--weights have no effect with --combine {combine}", fix=fix)
        counts = _numbers_of("--weights", self.weights and self.weights.split(","))
        name = f"MT-{combine.upper()}" + ("" if combine in SCORELESS else f"+{SPENDING[spend]}")
        return bursar.make_strategy(name, weights={task: float(weight) for task, weight in counts.items()})


@dataclass(frozen=True)
class LimitSettings:
    """Limits of the selection beside its budget."""

    at_most: list[str] | None = Option(None, metavar="TASK=N", help="Maximum number of labels for a task. Repeatable.")
    at_least: list[str] | None = Option(None, metavar="TASK=N", help="Minimum number of labels for a task. Repeatable.")
    per_group: int | None = Option(None, min=1, metavar="N", help="Maximum number of items per group.")
    hours: list[str] | None = Option(None, metavar="ANNOTATOR=H", help="Maximum hours of an annotator. Repeatable.")

    @cached_property
    def numbers(self) -> dict[str, dict[str, Decimal]]:
        """The numbers by option, and by task or annotator."""
        given = {"--at-most": self.at_most, "--at-least": self.at_least, "--hours": self.hours}
        return {option: _numbers_of(option, each, whole=option != "--hours") for option, each in given.items()}

    def check(self, recipe: bursar.Strategy) -> None:
        if recipe.value is None and (any(self.numbers.values()) or self.per_group):
            fix = "use --combine avg, max, min or rrf, or remove the limits"
            raise ConfigError(f"{recipe.name} has no scores, so it does not support limits", fix=fix)

    def on(self, table: Scores) -> Limits:
        import numpy as np

        from bursar.selection import Limit, Limits

        most, least, hours = self.numbers.values()
        for option in ("--at-most", "--at-least"):
            _check_tasks(option, self.numbers[option], table)
        sums = []
        for task in table.tasks:
            if task in most or task in least:
                use = np.tile(np.array(table.tasks) == task, (len(table.own), 1)).astype(float)
                sums.append(Limit(f"labels of {task}", use, float(most.get(task, "inf")), float(least.get(task, 0))))
        for who, limit in hours.items():
            if who not in table.hours:
                there = f"use {', '.join(table.hours)}" if table.hours else "add a column hours:ANNOTATOR:TASK"
                raise ConfigError(f"--hours: no column has the hours of {who!r}", fix=there)
            sums.append(Limit(f"hours of {who}", table.hours[who], float(limit)))
        if self.per_group is None:
            return Limits(sums)
        if table.groups is None:
            raise ConfigError("--per-group: there is no column 'group'", fix="add one, or remove --per-group")
        return Limits(sums, table.cap(self.per_group))


@grouped
def select(
    scores: Annotated[
        Path,
        Argument(
            help="CSV or Parquet file with columns id and confidence:TASK (0 to 1) for each task. Optional columns: "
            "cost:TASK (default 1), cost:reading (default 0, paid once per item), group, hours:ANNOTATOR:TASK.",
            metavar="SCORES",
        ),
    ],
    budget: Annotated[str, Option("--budget", "-b", metavar="B", help="Budget, in the units of the costs.")],
    *,
    how: StrategySettings,
    in_items: Annotated[bool, Option("--items", help="Count the budget in items instead of costs.")] = False,
    limits: LimitSettings,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="CHOSEN", help="CSV or Parquet file to write. Default: CSV on standard output."),
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="Print one JSON object: objective, bound, optimal, cost, items, seconds.")
    ] = False,
) -> None:
    """Select the items to label next, by the confidences of your own model.

    [bold]bursar select scores.csv --budget 20000 --mode disjoint --out chosen.csv[/bold]

    CHOSEN has the columns id, tasks (separated by ;) and cost, best item first.
    The command also prints how far the selection is from the optimum, at most.
    """
    recipe, money = how.strategy(), parse_number("--budget", budget, whole=in_items)
    if not money:
        raise ConfigError(f"--budget {budget} buys nothing", fix="give an amount above 0, in the units of the costs")
    limits.check(recipe)

    from bursar.selection.scores import CostUnits, check_target, csv_text, read_scores, selection_table, write_selection

    if out is not None:
        check_target(out, scores)
    table = read_scores(scores)
    _check_tasks("--mode single", [recipe.task] if recipe.task else [], table)
    _check_tasks("--weights", recipe.weights, table)
    pool = table.pool(limits.on(table))
    units = CostUnits(0) if in_items else table.units
    started = time.perf_counter()
    chosen = recipe.select(pool, units.floor(money), in_items=in_items)
    seconds = time.perf_counter() - started

    rows = selection_table(table, chosen)
    if out is not None:
        write_selection(rows, out)
    spent = table.units.money(chosen.total)
    if as_json:
        print_json(_as_json(chosen, spent, seconds))
        return
    if out is None:
        typer.echo(csv_text(rows).encode(), nl=False)
    summary = f"{_bought(chosen, spent, money, in_items)}; {_quality(recipe, chosen.certificate)}"
    typer.echo(summary if out is None else f"{summary}. Saved to {out}", err=out is None)
    if table.ignored:
        typer.echo(f"Ignored columns: {', '.join(table.ignored)}", err=True)


def _numbers_of(option: str, given: Sequence[str] | None, *, whole: bool = False) -> dict[str, Decimal]:
    """Parse ``NAME=NUMBER`` options, each name once."""
    found: dict[str, Decimal] = {}
    for entry in given or ():
        name, equals, number = entry.strip().rpartition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {entry!r} has no name", fix="write NAME=NUMBER")
        if name in found:
            raise ConfigError(f"{option} is given twice for {name!r}", fix="pass it once")
        found[name] = parse_number(f"{option} {name}", number, whole=whole)
    return found


def _check_tasks(option: str, tasks: Iterable[str], table: Scores) -> None:
    for task in tasks:
        if task not in table.tasks:
            raise ConfigError(f"{option}: unknown task {task!r}", fix=f"the tasks are {', '.join(table.tasks)}")


def _as_json(chosen: bursar.Selection, spent: Decimal, seconds: float) -> dict[str, Any]:
    certificate = chosen.certificate
    return {
        "objective": certificate and certificate.objective,
        "bound": certificate and certificate.bound,
        "optimal": certificate is not None and certificate.optimal,
        "cost": int(spent) if spent == int(spent) else float(spent),
        "items": len(chosen),
        "seconds": round(seconds, 6),
    }


def _bought(chosen: bursar.Selection, spent: Decimal, budget: Decimal, in_items: bool) -> str:
    from bursar.report.wording import counted

    items, labels = counted(len(chosen), "item"), counted(int(chosen.tasks.sum()), "label")
    if in_items:
        return f"{items} of {_shown(budget)}, {labels}, {_shown(spent)} spent"
    return f"{items}, {labels}, {_shown(spent)} of {_shown(budget)} spent"


def _quality(recipe: bursar.Strategy, certificate: Certificate | None) -> str:
    if certificate is None or certificate.optimal:
        return "proven optimal" if certificate else f"{recipe.name} has no scores to compare"
    if certificate.gap is None:
        return "no guarantee for equal shares"
    gap = 100 * certificate.gap
    return f"at most {gap:.2f} % below the optimum" if gap >= 0.01 else "less than 0.01 % below the optimum"


def _shown(number: Decimal) -> str:
    """Format an amount with two decimals, or none if it is whole; smaller amounts than 0.01 are exact."""
    if number.adjusted() > 20:
        return str(number)
    return f"{number:f}" if 0 < number < Decimal("0.01") else f"{number:,.2f}".removesuffix(".00")
