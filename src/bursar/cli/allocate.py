"""``bursar allocate``: split a label budget between tasks."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.options import JsonOption
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.allocation.advice import SplitAdvice
    from bursar.allocation.split import SplitProblem

PATIENCE = 2.0  # seconds without progress lines: most answers are quicker


CampaignArgument = Annotated[
    Path | None,
    typer.Argument(
        help="A campaign, whose seed items are measured, or the folder of a run, with all its labels so far.",
        metavar="CAMPAIGN.toml|RUN",
    ),
]
TableOption = Annotated[
    Path | None,
    typer.Option(
        "--table",
        "-t",
        metavar="FILE",
        help="Your own estimates: a TOML, JSON or CSV file with the price and reduction rate of each task, and how "
        "much its labels help the other tasks. See docs/allocation.md.",
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", "-b", metavar="B", help="Budget, in the currency of the prices.")
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="exact: largest gain by the estimates. robust: least regret if one estimate is wrong. greedy: label by "
        "label, best gain per price first. together: as exact, but may label items for all tasks where that saves "
        "reading them again. Default: exact for a table; for a campaign its \\[allocation] section, or together.",
    ),
]
InformerOption = Annotated[
    str | None,
    typer.Option(
        "--informer",
        metavar="NAME",
        help="How to measure how much tasks help each other: lookahead, alignment or probe. Default: the campaign's "
        "setting, or lookahead (probe for learners without training steps).",
    ),
]
RaterOption = Annotated[
    str | None,
    typer.Option(
        "--rater",
        metavar="NAME",
        help="How to measure how fast tasks saturate: pseudo-labels, ledger, or law and given with the campaign's "
        "allocation.rater_settings. Default: the campaign's setting; otherwise ledger for a run or if every item has "
        "a label, and pseudo-labels if not.",
    ),
]
PageOption = Annotated[
    Path | None, typer.Option("--page", metavar="FILE.html", help="Also write an HTML page with figures.")
]


def allocate(
    campaign: CampaignArgument = None,
    table: TableOption = None,
    budget: BudgetOption = None,
    method: MethodOption = None,
    informer: InformerOption = None,
    rater: RaterOption = None,
    page: PageOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of measurements, intervals and random splits.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Split a label budget between tasks.

    Shows how many labels to buy for each task, why, and how certain that is.

    [bold]bursar allocate campaign.toml --budget 6000 --page split.html[/bold]
    [bold]bursar allocate --table tasks.toml --budget 6000[/bold]
    [bold]bursar allocate --table tasks.csv --budget 6000 --method robust --json[/bold]

    Gains are in labels: 100 is what the first 100 labels of a task are worth to it.
    """
    _check_given(campaign, table, measures="informer" if informer else "rater" if rater else None)
    if budget is None:
        raise ConfigError("no budget given", fix="pass one, such as --budget 6000")
    money = _money(budget)

    from bursar.allocation.advice import advise
    from bursar.allocation.robust import METHODS
    from bursar.cli.progress import ProgressBar

    if method is not None and method not in METHODS:
        raise ConfigError(f"--method {method}: unknown method", fix=f"use {', '.join(METHODS)}")
    if page is not None:
        _check_page(page, table or campaign)
    about: dict[str, str] = {}
    if table is not None:
        from bursar.allocation.tables import read_estimate_table

        known = read_estimate_table(table)
        problem = known.problem(money)
        _print_rounding(money, problem, quiet=as_json)
        with ProgressBar(quiet=as_json, patience=PATIENCE) as bar:
            found = advise(problem, known.context, method=method or "exact", seed=seed, progress=bar.update)
    else:
        assert campaign is not None
        found, about = _measured(campaign, money, _Measurement(method, informer, rater, seed), quiet=as_json)
    if page is not None:  # before printing: a closed pipe must not lose the page
        from bursar.report.allocation import write_allocation_page

        write_allocation_page(found, (table or campaign or page).stem, page, about)
    if as_json:
        typer.echo(json.dumps({**found.describe(), **({"measured": about} if about else {})}, ensure_ascii=False))
    else:
        from bursar.cli.splits import print_advice

        print_advice(found)
    if page is not None:
        typer.echo(f"Page: {page}", err=as_json)


def _check_given(campaign: Path | None, table: Path | None, measures: str | None) -> None:
    """Require a campaign, or a table without options about measuring."""
    if table is None and campaign is None:
        raise ConfigError(
            "no campaign and no table given",
            fix="name a campaign, or pass your own estimates with --table FILE",
        )
    if table is not None and campaign is not None:
        raise ConfigError("both a campaign and a table given", fix="pass only one of the two")
    if table is not None and measures:
        raise ConfigError(f"--{measures} has no effect with a table: nothing is measured", fix=f"remove --{measures}")


def _check_page(page: Path, given: Path | None) -> None:
    """Refuse a path where the page would replace something else."""
    if page.is_dir() or not page.parent.is_dir():
        wrong = f"{page} is a folder" if page.is_dir() else f"the folder {page.parent} does not exist"
    elif page.exists() and not page.is_file():
        wrong = f"{page} is not a regular file"
    elif page.exists() and given is not None and given.exists() and page.samefile(given):
        wrong = f"{page} is the input file and would be overwritten"
    else:
        return
    raise ConfigError(f"--page: {wrong}", fix="name another file in an existing folder")


@dataclass(frozen=True)
class _Measurement:
    """How to measure a campaign and split its budget; None stands for the campaign's own setting."""

    method: str | None
    informer: str | None
    rater: str | None
    seed: int


def _measured(campaign: Path, money: Decimal, how: _Measurement, *, quiet: bool) -> tuple[SplitAdvice, dict[str, str]]:
    """Measure a campaign's labels, with progress, and split the budget by the estimates."""
    from bursar.allocation.advice import advise
    from bursar.allocation.split_inputs import inputs_of, inputs_of_run, measure
    from bursar.campaign import load_config
    from bursar.cli.progress import ProgressBar
    from bursar.report.allocation import described

    if _is_table(campaign):
        raise ConfigError(f"{campaign} is a table of estimates, not a campaign", fix=f"use --table {campaign}")
    material = inputs_of_run(campaign) if campaign.is_dir() else inputs_of(load_config(campaign))
    method, seed = how.method or material.method, how.seed
    _print_rounding(money, material.check(money, method), quiet=quiet)
    with ProgressBar(quiet=quiet, patience=PATIENCE) as bar:
        found = measure(material, informer=how.informer, rater=how.rater, seed=seed, progress=bar.update)
        about = described(found.estimates.informativeness.about) | {"rates from": found.rater}
        return advise(found.problem(money), found.context, method=method, seed=seed, progress=bar.update), about


def _print_rounding(money: Decimal, problem: SplitProblem, *, quiet: bool) -> None:
    """Say if the budget had to be rounded down."""
    if not quiet and problem.costs.money(problem.budget) != money:
        unit, counted = problem.show(1), problem.show(problem.budget)
        typer.echo(f"Prices are in units of {unit}, so {counted} of {money} are split.", err=True)


def _is_table(file: Path) -> bool:
    """Whether a file holds estimates: JSON, CSV, or TOML with a table of tasks."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        return file.suffix in (".json", ".csv") or isinstance(tomllib.loads(text).get("tasks"), dict)
    except (OSError, ValueError, RecursionError):  # load_config reports what is wrong
        return False


def _money(text: str) -> Decimal:
    from bursar.allocation.tables import MOST, number_in

    found = number_in(text)
    if found is None or found < 0:
        raise ConfigError(
            f"--budget: {text!r} is not a valid amount", fix="use a number of at least 0, such as 6000 or 199.50"
        )
    if found > MOST:
        raise ConfigError(f"--budget {found} is too large", fix=f"use an amount from 0 to {MOST:,}")
    return found
