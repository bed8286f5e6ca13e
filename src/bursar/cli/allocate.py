"""``bursar allocate``: how to split a label budget between tasks."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from bursar.allocation.answers import Answer
    from bursar.allocation.split import Problem

PATIENCE = 2.0  # seconds before somebody who sees no bar is told what is going on


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(allocate)


CampaignArgument = Annotated[
    Path | None,
    typer.Argument(
        help="A campaign whose seed items are measured, or the folder of a run with what it was told so far.",
        metavar="CAMPAIGN.toml|RUN",
    ),
]
TableOption = Annotated[
    Path | None,
    typer.Option(
        "--table",
        "-t",
        metavar="FILE",
        help="Estimates of your own: TOML, JSON or CSV with each task's price and reduction rate, and what labels "
        "of a task are worth to the others. docs/allocation.md describes it.",
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", "-b", metavar="B", help="What may be spent, in the money of the prices.")
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="HOW",
        help="exact: the most gain by the estimates. robust: the least to regret when one of them is off. "
        "greedy: label by label, the most gain for its price first. together: exact, with items that are labelled "
        "for all tasks where reading them once is cheaper. If not given, of a table exact, of a campaign that of "
        "its [allocation] section, or else together.",
    ),
]
InformerOption = Annotated[
    str | None,
    typer.Option(
        "--informer",
        metavar="NAME",
        help="How to measure who informs whom: lookahead, alignment, probe. If not given, the campaign's, or "
        "lookahead (probe where the learner has no training steps).",
    ),
]
RaterOption = Annotated[
    str | None,
    typer.Option(
        "--rater",
        metavar="NAME",
        help="How to measure how fast tasks saturate: pseudo-labels, ledger, or what the campaign's "
        "allocation.rater_settings say (law, given). If not given, the campaign's, or ledger of a run and where "
        "every item has some label, otherwise pseudo-labels.",
    ),
]
PageOption = Annotated[Path | None, typer.Option("--page", metavar="FILE.html", help="Write a page with figures, too.")]


def allocate(
    campaign: CampaignArgument = None,
    table: TableOption = None,
    budget: BudgetOption = None,
    method: MethodOption = None,
    informer: InformerOption = None,
    rater: RaterOption = None,
    page: PageOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of measurements, intervals and random splits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Split a label budget between tasks: how many labels of each, why, and how sure that is.

    [bold]bursar allocate campaign.toml --budget 6000 --page split.html[/bold]
    [bold]bursar allocate --table tasks.toml --budget 6000[/bold]
    [bold]bursar allocate --table tasks.csv --budget 6000 --method robust --json[/bold]

    Gains are counted in labels: 100 is what the first block of 100 labels of a task is worth to itself.
    """
    _check_given(campaign, table, measures="informer" if informer else "rater" if rater else None)
    if budget is None:
        raise ConfigError("there is no budget", fix="add --budget and an amount of money, such as --budget 6000")
    money = _money(budget)

    from bursar.allocation.answers import answer
    from bursar.allocation.methods import METHODS

    if method is not None and method not in METHODS:
        raise ConfigError(f"--method {method}", fix=f"use {', '.join(METHODS)}")
    if page is not None:
        _check_page(page, table or campaign)
    about: dict[str, str] = {}
    if table is not None:
        from bursar.allocation.tables import read_table

        known = read_table(table)
        problem = known.problem(money)
        _tell_rounding(money, problem, quiet=as_json)
        with _watching(quiet=as_json) as progress:
            found = answer(problem, known.context, method=method or "exact", seed=seed, progress=progress)
    else:
        assert campaign is not None
        found, about = _measured(campaign, money, method, informer, rater, seed, quiet=as_json)
    if page is not None:  # before anything is printed: who reads that may stop reading
        from bursar.report.allocation import write_allocation_page

        write_allocation_page(found, (table or campaign or page).stem, page, about)
    if as_json:
        typer.echo(json.dumps({**found.describe(), **({"measured": about} if about else {})}, ensure_ascii=False))
    else:
        from bursar.cli.splits import print_answer

        print_answer(found)
    if page is not None:
        typer.echo(f"Page: {page}", err=as_json)


def _check_given(campaign: Path | None, table: Path | None, measures: str | None) -> None:
    """Refuse anything but a campaign, or a table without options about measuring."""
    if table is None and campaign is None:
        raise ConfigError(
            "there are no estimates to split by",
            fix="name a campaign, or give --table FILE with prices, reduction rates and informativeness",
        )
    if table is not None and campaign is not None:
        raise ConfigError("a campaign and a table were given", fix="give one of them")
    if table is not None and measures:
        raise ConfigError(f"--{measures} with a table: nothing is measured then", fix="leave it out")


def _check_page(page: Path, given: Path | None) -> None:
    """Refuse to write a page where something else is."""
    if page.is_dir() or not page.parent.is_dir():
        wrong = f"{page} is a folder" if page.is_dir() else f"there is no folder {page.parent}"
    elif page.exists() and not page.is_file():
        wrong = f"{page} is no file"
    elif page.exists() and given is not None and given.exists() and page.samefile(given):
        wrong = f"{page} is what is asked about, and would be lost"
    else:
        return
    raise ConfigError(f"--page: {wrong}", fix="name another file, in a folder that is there")


@contextmanager
def _watching(*, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Progress on standard error: a bar, of which nothing is left behind, or a line a stage where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console, told, begun = Console(stderr=True), set[str](), time.monotonic()
    if quiet or not console.is_terminal:

        def tell(what: str, done: float) -> None:
            if not quiet and what not in told and time.monotonic() - begun > PATIENCE:
                typer.echo(f"{what} …", err=True)
                told.add(what)

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        jobs: dict[str, TaskID] = {}

        def show(what: str, done: float) -> None:  # a bar a stage, for each takes a time of its own
            if what not in jobs:
                jobs[what] = bar.add_task(what, total=1.0)
            bar.update(jobs[what], completed=done)

        yield show


def _measured(
    campaign: Path,
    money: Decimal,
    method: str | None,
    informer: str | None,
    rater: str | None,
    seed: int,
    *,
    quiet: bool,
) -> tuple[Answer, dict[str, str]]:
    """Measure a campaign's seed labels, with progress, and split by what comes out."""
    from bursar.allocation.answers import answer
    from bursar.allocation.split_inputs import material_of, material_of_run, measure
    from bursar.campaign import load_config
    from bursar.report.allocation import described

    if _is_table(campaign):
        raise ConfigError(f"{campaign} is no campaign but a table of estimates", fix=f"use --table {campaign}")
    material = material_of_run(campaign) if campaign.is_dir() else material_of(load_config(campaign))
    method = method or material.method
    _tell_rounding(money, material.check(money, method), quiet=quiet)
    with _watching(quiet=quiet) as progress:
        found = measure(material, informer=informer, rater=rater, seed=seed, progress=progress)
        about = described(found.estimates.informativeness.about) | {"rates from": found.rater}
        return answer(found.problem(money), found.context, method=method, seed=seed, progress=progress), about


def _tell_rounding(money: Decimal, problem: Problem, *, quiet: bool) -> None:
    """Say where less is split than was given."""
    if not quiet and problem.costs.money(problem.budget) != money:
        unit, counted = problem.show(1), problem.show(problem.budget)
        typer.echo(f"Money is counted in units of {unit} here: {counted} of {money} are split.", err=True)


def _is_table(file: Path) -> bool:
    """Whether a file holds estimates: it ends like a table that no campaign is, or has a table of tasks."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        return file.suffix in (".json", ".csv") or isinstance(tomllib.loads(text).get("tasks"), dict)
    except (OSError, ValueError, RecursionError):  # whoever reads it as a campaign says what is wrong
        return False


def _money(text: str) -> Decimal:
    from bursar.allocation.table_files import MOST, number_in

    found = number_in(text)
    if found is None or found < 0:
        raise ConfigError(f"--budget: {text!r} will not do", fix="use a number from 0 up, such as 6000 or 199.50")
    if found > MOST:
        raise ConfigError(f"a budget of {found}", fix=f"give an amount of money from 0 to {MOST:,}")
    return found
