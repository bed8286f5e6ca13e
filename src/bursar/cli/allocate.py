"""``bursar allocate``: split a label budget between tasks."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import bursar
from bursar.cli.options import JsonOption, check_output_file, grouped, one_of, parse_number
from bursar.cli.output import ProgressBar, print_json, print_table
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.allocation.advice import SplitAdvice
    from bursar.allocation.split import SplitProblem

MOST_CASES = 8
ON_PAGE = ("Price", "Reduction rate")  # columns that only the page has room for
PATIENCE = 2.0  # seconds without progress lines: most answers are quicker


@dataclass(frozen=True)
class SplitSettings:
    """How to split, and what to measure. None stands for the campaign's own setting."""

    method: str | None = Option(
        None,
        metavar="NAME",
        help="exact: largest gain by the estimates. robust: least regret if one estimate is wrong. greedy: label by "
        "label, best gain per price first. together: as exact, but may label items for all tasks where that saves "
        "reading them again. Default: exact for a table; for a campaign its \\[allocation] section, or together.",
    )
    informer: str | None = Option(
        None,
        metavar="NAME",
        help="How to measure how much tasks help each other: lookahead, alignment or probe. Default: the campaign's "
        "setting, or lookahead (probe for learners without training steps).",
    )
    rater: str | None = Option(
        None,
        metavar="NAME",
        help="How to measure how fast tasks saturate: pseudo-labels, ledger, or law and given with the campaign's "
        "allocation.rater_settings. Default: the campaign's setting; otherwise ledger for a run or if every item has "
        "a label, and pseudo-labels if not.",
    )
    page: Path | None = Option(None, metavar="FILE.html", help="Also write an HTML page with figures.")
    seed: int = Option(0, min=0, help="Seed of measurements, intervals and random splits.")
    as_json: JsonOption = False


@grouped
def allocate(
    *,
    campaign: Annotated[
        Path | None,
        Argument(
            help="A campaign, whose seed items are measured, or the folder of a run, with all its labels so far.",
            metavar="CAMPAIGN.toml|RUN",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        Option(
            "--table",
            "-t",
            metavar="FILE",
            help="Your own estimates: a TOML, JSON or CSV file with the price and reduction rate of each task, and how "
            "much its labels help the other tasks. See docs/guides/allocation.md.",
        ),
    ] = None,
    budget: Annotated[
        str | None, Option("--budget", "-b", metavar="B", help="Budget, in the currency of the prices.")
    ] = None,
    settings: SplitSettings,
) -> None:
    """Split a label budget between tasks.

    Shows how many labels to buy for each task, why, and how certain that is.

    [bold]bursar allocate campaign.toml --budget 6000 --page split.html[/bold]
    [bold]bursar allocate --table tasks.toml --budget 6000[/bold]
    [bold]bursar allocate --table tasks.csv --budget 6000 --method robust --json[/bold]

    Gains are in labels: 100 is what the first 100 labels of a task are worth to it.
    """
    from bursar.allocation.robust import METHODS
    from bursar.allocation.tables import MOST

    _check_given(campaign, table, settings)
    if budget is None:
        raise ConfigError("no budget given", fix="pass one, such as --budget 6000")
    money = parse_number("--budget", budget, most=MOST)
    page = settings.page
    if settings.method is not None:
        one_of("--method", settings.method, METHODS)
    if page is not None:
        check_output_file("--page", page, given=table or campaign)
    if table is not None:
        found, about = _advise_on_table(table, money, settings), dict[str, str]()
    else:
        assert campaign is not None
        found, about = _advise_on_campaign(campaign, money, settings)
    if page is not None:  # before printing: a closed pipe must not lose the page
        from bursar.report.allocation import render_allocation
        from bursar.report.page import write_page

        write_page(render_allocation(found, (table or campaign or page).stem, about), page)
    if settings.as_json:
        print_json(found.describe() | ({"measured": about} if about else {}))
    else:
        _print_advice(found)
    if page is not None:
        typer.echo(f"Page: {page}", err=settings.as_json)


def _check_given(campaign: Path | None, table: Path | None, settings: SplitSettings) -> None:
    """Require a campaign, or a table without options about measuring."""
    if table is None and campaign is None:
        fix = "name a campaign, or pass your own estimates with --table FILE"
        raise ConfigError("no campaign and no table given", fix=fix)
    if table is not None and campaign is not None:
        raise ConfigError("both a campaign and a table given", fix="pass only one of the two")
    for option, given in (("--informer", settings.informer), ("--rater", settings.rater)):
        if table is not None and given:
            raise ConfigError(f"{option} has no effect with a table: nothing is measured", fix=f"remove {option}")


def _advise_on_table(table: Path, money: Decimal, settings: SplitSettings) -> SplitAdvice:
    from bursar.allocation.advice import advise
    from bursar.allocation.tables import read_estimate_table

    known, method = read_estimate_table(table), settings.method or "exact"
    problem = known.problem(money)
    _print_rounding(money, problem, settings)
    with ProgressBar(quiet=settings.as_json, patience=PATIENCE) as bar:
        return advise(problem, known.context, method=method, seed=settings.seed, progress=bar.update)


def _advise_on_campaign(campaign: Path, money: Decimal, settings: SplitSettings) -> tuple[SplitAdvice, dict[str, str]]:
    """Measure a campaign's labels and split the budget by the estimates; also say what was measured."""
    from bursar.allocation.advice import advise
    from bursar.allocation.split_inputs import inputs_of, inputs_of_run, measure
    from bursar.report.allocation import described

    if _is_table(campaign):
        raise ConfigError(f"{campaign} is a table of estimates, not a campaign", fix=f"use --table {campaign}")
    material = inputs_of_run(campaign) if campaign.is_dir() else inputs_of(bursar.load_config(campaign))
    method, seed = settings.method or material.method, settings.seed
    _print_rounding(money, material.check(money, method), settings)
    with ProgressBar(quiet=settings.as_json, patience=PATIENCE) as bar:
        found = measure(material, informer=settings.informer, rater=settings.rater, seed=seed, progress=bar.update)
        about = described(found.estimates.informativeness.about) | {"rates from": found.rater}
        return advise(found.problem(money), found.context, method=method, seed=seed, progress=bar.update), about


def _print_rounding(money: Decimal, problem: SplitProblem, settings: SplitSettings) -> None:
    """Say if the budget had to be rounded down."""
    if not settings.as_json and problem.costs.money(problem.budget) != money:
        unit, counted = problem.show(1), problem.show(problem.budget)
        typer.echo(f"Prices are in units of {unit}, so {counted} of {money} are split.", err=True)


def _is_table(file: Path) -> bool:
    """Whether a file holds estimates: JSON, CSV, or TOML with a table of tasks."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        return file.suffix in (".json", ".csv") or isinstance(tomllib.loads(text).get("tasks"), dict)
    except (OSError, ValueError, RecursionError):  # load_config reports what is wrong
        return False


def _print_advice(advice: SplitAdvice) -> None:
    from bursar.report.allocation import moves_table, others_table, split_table
    from bursar.report.wording import amount, sentence

    split, problem = advice.split, advice.split.problem
    table = split_table(advice).without(*ON_PAGE)
    title = f"{split.method} split of {problem.show(problem.budget)}: {problem.show(split.unspent)} left"
    print_table(sentence(title), table.columns, table.rows)
    typer.echo("First label: its value to all tasks. Half after: number of labels after which a label is worth half of")
    typer.echo("the first. Gain: what the task gains from all labels, in labels of its own.\n")
    for reason in advice.reasons:
        typer.echo(f"- {reason}")
    typer.echo()
    if (kept := advice.robust) is not None and advice.outcomes:
        typer.echo(
            f"If any one estimate is wrong, this split loses at most {amount(kept.regret)} against the best split.\n"
            f"No split can guarantee less than {amount(kept.bound)}. "
            f"The exact split loses up to {amount(kept.nominal)}.\n"
        )
    cases = f"{len(advice.outcomes)} cases"
    if not advice.outcomes:
        typer.echo("The estimates have no standard errors or intervals, so their effect on the split is not known.\n")
    elif not advice.regretted:
        typer.echo(f"If any one estimate is wrong ({cases}), this split is still the best.\n")
    else:
        table = moves_table(advice, MOST_CASES)
        print_table(f"If one estimate is wrong ({cases}, worst first)", table.columns, table.rows, numbers=False)
    table = others_table(advice)
    print_table("Other splits, with the same estimates", table.columns, table.rows)
    for said in advice.left_out:
        typer.echo(f"Not shown: {said}.")
