"""``bursar laws advise`` and ``check``: should tasks be trained together? Before buying, and afterwards."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.errors import ConfigError, DataError

if TYPE_CHECKING:
    from bursar.campaign import CampaignConfig, Run
    from bursar.laws.joint_vs_single import Subject

WhatArgument = Annotated[
    Path,
    typer.Argument(
        help="The folder of a run, a campaign's TOML file, or labelled data: a file or folder.",
        metavar="RUN|CAMPAIGN.toml|DATA",
    ),
]
LawsOption = Annotated[
    Path | None,
    typer.Option(
        "--laws", metavar="FOLDER", help="Laws of your own: balanced.json, single.json. The packaged ones if not given."
    ),
]
FormatOption = Annotated[str | None, typer.Option("--format", "-f", help="Of the data; guessed if not given.")]
ItemsOption = Annotated[
    int | None, typer.Option("--items", min=20, metavar="N", help="Of data: as if so many were labelled, at random.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for machines; no progress.")]


def register(app: typer.Typer) -> None:
    """Add these commands to ``bursar laws``."""
    app.command()(advise)
    app.command()(check)


def advise(
    what: WhatArgument,
    laws: LawsOption = None,
    data_format: FormatOption = None,
    items: ItemsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say by a law whether training the tasks together should help each of them, before anything is bought.

    [bold]bursar laws advise spring.toml[/bold]
    [bold]bursar laws advise utterances.jsonl[/bold]
    [bold]bursar laws advise runs/spring[/bold]

    How related the tasks are is measured on items that are labelled for two of them: 20 or more. Of a run the answer is
    kept in its folder and stands on its page. Of a campaign that has bought nothing it is kept in runs/NAME-together:
    bursar laws check of its run says afterwards whether it was right.
    """
    from bursar.laws.advice import Laws
    from bursar.laws.joint_vs_single import advice_on, keep, keep_before, place_of

    known = Laws.load(laws)
    run, subject = _subject(what, data_format, items)
    told = advice_on(subject, known)
    page = None
    if run is not None:
        keep(run.folder, advice=told)
        page = _page(run)
    kept = keep_before(subject.config, told, place_of(subject.config)) if what.suffix == ".toml" else None
    if as_json:
        typer.echo(json.dumps(told | {"page": page, "kept": kept and str(kept)}, ensure_ascii=False))
        return
    _print({"advice": told}, page)
    if kept is not None:
        typer.echo(f"Kept for a check afterwards: {kept}")


def check(
    what: WhatArgument,
    laws: LawsOption = None,
    data_format: FormatOption = None,
    items: ItemsOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, metavar="N", help="Trainings of each kind.")] = 3,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Where trainings are kept: the run's own, or runs/NAME-together."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train the tasks together and alone on the same labels, and say whether the law was right.

    [bold]bursar laws check runs/spring[/bold]
    [bold]bursar laws check utterances.jsonl --items 300 --seeds 2[/bold]

    The learner is the campaign's own. Stop it whenever you like: the same command goes on where it was. Of a run the
    answer is kept in its folder and stands on its page. If bursar laws advise was asked about the campaign before it
    bought anything, that prediction is checked; else one that is made now, of what was bought.
    """
    from bursar.laws.joint_vs_single import advice_before, keep, place_of
    from bursar.laws.joint_vs_single import check as train_both

    run, subject = _subject(what, data_format, items)
    place = folder or (run.folder if run is not None else place_of(subject.config))
    if place.exists() and not place.is_dir():
        raise ConfigError(f"--folder {place} is a file", fix="name a folder")
    before = advice_before(run) if run is not None and laws is None else None
    advice, why = (before, "") if before is not None else _advice(subject, laws)
    with run.locked() if run is not None else nullcontext(), TrainingsDisplay(quiet=as_json) as display:
        own = run.folder / "models" if run is not None else None
        told = train_both(subject, place, seeds=seeds, own_models=own, progress=display.told)
    parts = {"check": told} | ({"advice": advice} if advice is not None else {})
    keep(place, **parts)
    page = _page(run) if run is not None else None
    if as_json:
        typer.echo(json.dumps(parts | {"page": page, "no_advice": why}, ensure_ascii=False))
        return
    if why:
        typer.echo(f"The law was not asked: {why}", err=True)
    _print(parts, page)


# -- what is asked about -----------------------------------------------------------------------------------------------
def _subject(what: Path, data_format: str | None, items: int | None) -> tuple[Run | None, Subject]:
    """The run, if it is one, and what is asked about."""
    from bursar.campaign import Run, load_config
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.splits import load_parts
    from bursar.laws.joint_vs_single import subject_of_campaign, subject_of_corpus, subject_of_run

    is_run, is_campaign = (what / CONFIG_FILE).exists(), what.suffix == ".toml"
    for option, given in (("--items", items), ("--format", data_format)):
        if given is not None and (is_run or is_campaign):
            raise ConfigError(f"{option} is for data, and {what} is none", fix="leave it out")
    if is_run:
        run = Run.open(what)
        return run, subject_of_run(run)
    if is_campaign:
        config = load_config(what)
        return None, subject_of_campaign(config, load_parts(config))
    config = _config_of(what, data_format)
    return None, subject_of_corpus(config, load_parts(config), items)


def _config_of(data: Path, data_format: str | None) -> CampaignConfig:
    """A campaign about some data with everything else as usual."""
    from bursar.campaign.config import parse_config
    from bursar.campaign.sections import BUILTIN

    if not data.exists() and str(data) != BUILTIN:
        raise DataError("there is no such file or folder", path=data)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", data.stem).lstrip("._-") or "data"
    corpus: dict[str, Any] = {"source": str(data)} | ({"format": data_format} if data_format else {})
    return parse_config({"name": name, "corpus": corpus}, str(data))


def _advice(subject: Subject, laws: Path | None) -> tuple[dict[str, Any] | None, str]:
    """What the law says, or why it was not asked: a check needs no law."""
    from bursar.laws.advice import Laws
    from bursar.laws.joint_vs_single import advice_on

    try:
        return advice_on(subject, Laws.load(laws)), ""
    except ConfigError as wrong:
        if laws is not None:
            raise
        return None, wrong.message


def _page(run: Run) -> str:
    """The run's page with what is known now."""
    from bursar.report import write_report

    return str(write_report(run))


# -- what people see ---------------------------------------------------------------------------------------------------
def _print(parts: dict[str, Any], page: str | None) -> None:
    from bursar.cli.show import print_table
    from bursar.report.together import expected_table, measured_table, section_of

    section, advice = section_of(parts), parts.get("advice")
    if advice is not None:
        table = expected_table(advice)
        when = f", {advice['when']}" if "when" in advice else ""
        print_table(f"Should these tasks be trained together? By the law{when}", table.columns, table.rows)
    if "check" in parts:
        table = measured_table(parts["check"], advice)
        print_table("Should these tasks be trained together? By training them", table.columns, table.rows)
    for words in (" ".join(section.words), section.note):
        typer.echo(f"{words}\n")
    for warning in section.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if page is not None:
        typer.echo(f"Report: {page}")


class TrainingsDisplay:
    """A bar over all trainings where there is a terminal, a line for each where there is none."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        self.console = Console(file=sys.stderr, quiet=quiet)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=None), TimeRemainingColumn())
        self.progress = Progress(*columns, console=self.console, transient=True)
        self.bar = self.progress.add_task("reading", total=1.0)
        self.last = ""

    def __enter__(self) -> TrainingsDisplay:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def told(self, what: str, done: float) -> None:
        """What goes on, and how far all of it is."""
        self.progress.update(self.bar, completed=done, description=what)
        if not self.console.is_terminal and what != self.last:
            self.console.print(f"{what} ({100 * done:.0f} %)", soft_wrap=True, markup=False, highlight=False)
        self.last = what
