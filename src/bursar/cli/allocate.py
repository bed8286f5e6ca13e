"""``bursar allocate``: how to split a label budget between tasks."""

from __future__ import annotations

import json
import math
import tomllib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.allocation.answers import Answer
    from bursar.allocation.robust import Move, Predicted
    from bursar.allocation.split import Split

MOVES = 8  # that are shown
MOST = 10**12  # of a budget


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command()(allocate)


def allocate(
    campaign: Annotated[
        Path | None,
        typer.Argument(
            help="A campaign whose seed items are measured, or the folder of a run with what it was told so far.",
            metavar="CAMPAIGN.toml|RUN",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            "-t",
            metavar="FILE",
            help="Estimates of your own: TOML, JSON or CSV with each task's price and reduction rate, and what labels "
            "of a task are worth to the others. docs/allocation.md describes it.",
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", "-b", metavar="B", help="What may be spent, in the money of the prices.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="HOW",
            help="exact: the most gain by the estimates. robust: the least to regret when one of them is off. "
            "greedy: label by label, the most gain for its price first. together: exact, with items that are labelled "
            "for all tasks where reading them once is cheaper. Of a table exact, of a campaign together if not given.",
        ),
    ] = None,
    informer: Annotated[
        str | None,
        typer.Option(
            "--informer",
            metavar="NAME",
            help="How to measure who informs whom: lookahead, alignment, probe. The campaign's, or lookahead.",
        ),
    ] = None,
    rater: Annotated[
        str | None,
        typer.Option(
            "--rater",
            metavar="NAME",
            help="How to measure how fast tasks saturate: pseudo-labels, ledger, or what the campaign's "
            "allocation.rater_settings say (law, given). The campaign's, or pseudo-labels.",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE.html", help="Write a page with figures, too.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of measurements, intervals and random splits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")] = False,
) -> None:
    """Split a label budget between tasks: how many labels of each, why, and how sure that is.

    [bold]bursar allocate campaign.toml --budget 6000 --page split.html[/bold]
    [bold]bursar allocate --table tasks.toml --budget 6000[/bold]
    [bold]bursar allocate --table tasks.csv --budget 6000 --method robust --json[/bold]

    Gains are counted in labels: 100 is what the first block of 100 labels of a task is worth to itself.
    """
    if table is None and campaign is None:
        raise ConfigError(
            "there are no estimates to split by",
            fix="name a campaign, or give --table FILE with prices, reduction rates and informativeness",
        )
    if table is not None and campaign is not None:
        raise ConfigError("a campaign and a table were given", fix="give one of them")
    if table is not None and (informer or rater):
        raise ConfigError(
            f"--{'informer' if informer else 'rater'} with a table: nothing is measured then", fix="leave it out"
        )
    if budget is None:
        raise ConfigError("there is no budget", fix="add --budget and an amount of money, such as --budget 6000")
    money = _money(budget)

    from bursar.allocation.answers import METHODS, answer

    if method is not None and method not in METHODS:
        raise ConfigError(f"--method {method}", fix=f"use {', '.join(METHODS)}")
    if page is not None and (page.is_dir() or not page.parent.is_dir()):
        wrong = f"{page} is a folder" if page.is_dir() else f"there is no folder {page.parent}"
        raise ConfigError(f"--page: {wrong}", fix="name a file in a folder that is there")
    about: dict[str, str] = {}
    if table is not None:
        from bursar.allocation.tables import read_table

        known = read_table(table)
        found = answer(known.problem(money), known.context, method=method or "exact", seed=seed)
    else:
        assert campaign is not None
        found, about = _measured(campaign, money, method or "together", informer, rater, seed, quiet=as_json)
    if as_json:
        typer.echo(json.dumps({**found.describe(), **({"measured": about} if about else {})}, ensure_ascii=False))
    else:
        print_answer(found)
    if page is not None:
        from bursar.report.allocation import write_allocation_page

        written = write_allocation_page(found, (table or campaign or page).stem, page, about)
        typer.echo(f"Page: {written}", err=as_json)


def _measured(
    campaign: Path, money: Decimal, method: str, informer: str | None, rater: str | None, seed: int, *, quiet: bool
) -> tuple[Answer, dict[str, str]]:
    """Measure a campaign's seed labels, with progress, and split by what comes out."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from bursar.allocation.answers import answer
    from bursar.campaign import load_config
    from bursar.campaign.allocating import material_of, material_of_run, measure
    from bursar.report.allocation import described

    if _is_table(campaign):
        raise ConfigError(f"{campaign} is no campaign but a table of estimates", fix=f"use --table {campaign}")
    material = material_of_run(campaign) if campaign.is_dir() else material_of(load_config(campaign))
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
        job = bar.add_task("measuring", total=1.0)

        def progress(what: str, done: float) -> None:
            bar.update(job, description=what, completed=done)

        found = measure(material, informer=informer, rater=rater, seed=seed, progress=progress)
    section = material.config.allocation
    rated = rater or (section.rater if section else None) or "pseudo-labels"
    about = described(found.estimates.informativeness.about) | {"rates from": rated}
    return answer(found.problem(money), found.context, method=method, seed=seed), about


def _is_table(file: Path) -> bool:
    """Whether a file holds estimates: it ends like a table that no campaign is, or has a table of tasks."""
    try:
        text = file.read_text(encoding="utf-8")
        return file.suffix in (".json", ".csv") or isinstance(tomllib.loads(text).get("tasks"), dict)
    except (OSError, ValueError, RecursionError):  # whoever reads it as a campaign says what is wrong
        return False


def _money(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0:
        raise ConfigError(f"--budget: {text!r} will not do", fix="use a number from 0 up, such as 6000 or 199.50")
    if found > MOST:
        raise ConfigError(f"a budget of {found}", fix=f"give an amount of money from 0 to {MOST:,}")
    return found


# -- showing ---------------------------------------------------------------------------------------------------------
def print_answer(answer: Answer) -> None:
    """The split, why, what it hangs on, and what else could be done."""
    _print_split(answer)
    for reason in answer.reasons:
        typer.echo(f"- {reason}")
    typer.echo()
    if answer.robust is not None:
        kept = answer.robust
        typer.echo(
            f"Whichever one estimate is off, this gains at most {_amount(kept.regret)} less than the best split then.\n"
            f"No split keeps that below {_amount(kept.bound)}; the exact one loses up to {_amount(kept.nominal)}.\n"
        )
    _print_moves(answer)
    _print_others(answer)


def _print_split(answer: Answer) -> None:
    from bursar.allocation import half_life
    from bursar.cli.show import print_table

    split, problem = answer.split, answer.split.problem
    rows = []
    for at, task in enumerate(split.tasks):
        half = half_life(problem.rates[at])
        alone = split.counts[at] > split.together or not split.together  # or all of its labels are of items for all
        rows.append(
            [
                task,
                f"{split.counts[at]:,}",
                problem.show(split.spent[at]) if alone else "–",
                f"{100 * split.spent[at] / max(1, split.cost):.1f} %" if alone else "–",
                f"{problem.first[at]:.3g}",
                "never" if math.isinf(half) else f"{half:,.0f}",
                _interval(answer.gains[task]),
            ]
        )
    if split.together and problem.joint is not None:
        money = split.together * problem.joint
        share = f"{100 * money / max(1, split.cost):.1f} %"
        rows.append(["items for all tasks", f"{split.together:,}", problem.show(money), share, "", "", ""])
    rows.append(["all", f"{sum(split.counts):,}", problem.show(split.cost), "", "", "", _interval(answer.whole)])
    title = f"{split.method} split of {problem.show(problem.budget)}: {problem.show(split.unspent)} not spent"
    columns = ["task", "labels", "money", "share", "worth", "half after", "gains (9 in 10 cases)"]
    print_table(title[0].upper() + title[1:], columns, rows)
    typer.echo("worth: of a first label, to all tasks together. half after: so many labels, one is worth half of the")
    typer.echo("first. gains: of the task from all labels, in labels of its own.\n")


def _interval(gain: Predicted) -> str:
    return f"{_amount(gain.value)} ({_amount(gain.low)} to {_amount(gain.high)})"


def _print_moves(answer: Answer) -> None:
    from bursar.cli.show import print_table

    if not answer.moves:
        typer.echo("No estimate has a standard error or an interval, so nothing can be said of what they move.\n")
        return
    telling = [move for move in answer.moves if move.best.counts != answer.split.counts]
    if not telling:
        typer.echo(f"If one estimate is off ({len(answer.moves)} cases), this split is still the best.\n")
        return
    rows = [
        [
            move.scenario.what,
            _amount(move.regret),
            _share(move.regret, move.best.total),
            _changes(answer.split, move),
        ]
        for move in telling[:MOVES]
    ]
    title = f"If one estimate is off ({len(answer.moves)} cases, the worst first)"
    print_table(title, ["case", "lost", "of the gain", "better then"], rows, numbers=False)


def _changes(split: Split, move: Move) -> str:
    """What the best split then has more and less."""
    rows = zip(split.tasks, split.counts, move.best.counts, strict=True)
    return ", ".join(f"{task} {then - now:+,}" for task, now, then in rows if then != now)


def _print_others(answer: Answer) -> None:
    from bursar.cli.show import print_table

    rows = []
    for other in answer.others:
        counts = [f"{count:,}" for count in other.counts]
        rows.append([other.method, *counts, _amount(other.total), _share(other.total, answer.split.total)])
    columns = ["split", *answer.split.tasks, "gain", "of the above"]
    print_table("Other splits, by the same estimates", columns, rows)
    for said in answer.left_out:
        typer.echo(f"Not shown: {said}.")


def _amount(gain: float) -> str:
    return f"{gain:,.0f}" if abs(gain) >= 99.95 else f"{gain:.3g}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole > 0 else "–"
