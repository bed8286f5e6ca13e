"""``bursar laws advise`` and ``check``: should tasks be trained together? A prediction, and a measurement."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.data import FormatOption
from bursar.cli.options import JsonOption
from bursar.errors import ConfigError, DataError

if TYPE_CHECKING:
    from bursar.campaign import CampaignConfig, Run
    from bursar.laws.joint_vs_single import Subject

WhatArgument = Annotated[
    Path,
    typer.Argument(
        help="Folder of a run, TOML file of a campaign, or a labelled dataset.",
        metavar="RUN|CAMPAIGN.toml|DATA",
    ),
]
LawsOption = Annotated[
    Path | None,
    typer.Option(
        "--laws",
        metavar="FOLDER",
        help="Folder with your own balanced.json and single.json. Default: the packaged laws.",
    ),
]
ItemsOption = Annotated[
    int | None, typer.Option("--items", min=20, metavar="N", help="For a dataset: use this many random items.")
]


def advise(
    what: WhatArgument,
    laws: LawsOption = None,
    data_format: FormatOption = None,
    items: ItemsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict by a law whether training the tasks together helps each of them, before buying labels.

    [bold]bursar laws advise spring.toml[/bold]
    [bold]bursar laws advise utterances.jsonl[/bold]
    [bold]bursar laws advise runs/spring[/bold]

    How related two tasks are is measured on items labelled for both: at least 20.

    For a run, the answer is saved in its folder and shown in its report.
    For a campaign it is saved in runs/NAME-together; after the run,
    bursar laws check says whether it was right.
    """
    from bursar.laws.advice import Laws
    from bursar.laws.joint_vs_single import advice_on, keep, keep_before, place_of

    known = Laws.load(laws)
    run, subject = _subject(what, data_format, items)
    advice = advice_on(subject, known)
    page = None
    if run is not None:
        keep(run.folder, advice=advice)
        page = _page(run)
    kept = keep_before(subject.config, advice, place_of(subject.config)) if what.suffix == ".toml" else None
    if as_json:
        typer.echo(json.dumps(advice | {"page": page, "kept": kept and str(kept)}, ensure_ascii=False))
        return
    _print({"advice": advice}, page)
    if kept is not None:
        typer.echo(f"Saved for bursar laws check: {kept}")


def check(
    what: WhatArgument,
    laws: LawsOption = None,
    data_format: FormatOption = None,
    items: ItemsOption = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Number of trainings with each set of tasks.")
    ] = 3,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Folder for the trainings. Default: that of the run, or runs/NAME-together."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train the tasks together and separately on the same labels, and compare with the prediction.

    [bold]bursar laws check runs/spring[/bold]
    [bold]bursar laws check utterances.jsonl --items 300 --seeds 2[/bold]

    Uses the learner of the campaign. You can interrupt it at any time:
    the same command resumes.

    For a run, the result is saved in its folder and shown in its report.
    If bursar laws advise was run on the campaign before it bought labels,
    that prediction is checked; otherwise one is made from the labels bought.
    """
    from bursar.cli.progress import ProgressBar
    from bursar.laws.joint_vs_single import advice_before, keep, place_of
    from bursar.laws.joint_vs_single import check as train_both

    run, subject = _subject(what, data_format, items)
    place = folder or (run.folder if run is not None else place_of(subject.config))
    if place.exists() and not place.is_dir():
        raise ConfigError(f"--folder {place} is a file", fix="name a folder")
    before = advice_before(run) if run is not None and laws is None else None
    advice, why = (before, "") if before is not None else _advice(subject, laws)
    with run.locked() if run is not None else nullcontext(), ProgressBar(quiet=as_json, first="reading") as bar:
        own = run.folder / "models" if run is not None else None
        measured = train_both(subject, place, seeds=seeds, own_models=own, progress=bar.update)
    parts = {"check": measured} | ({"advice": advice} if advice is not None else {})
    keep(place, **parts)
    page = _page(run) if run is not None else None
    if as_json:
        typer.echo(json.dumps(parts | {"page": page, "no_advice": why}, ensure_ascii=False))
        return
    if why:
        typer.echo(f"No prediction by the law: {why}", err=True)
    _print(parts, page)


# -- input -------------------------------------------------------------------------------------------------------------
def _subject(what: Path, data_format: str | None, items: int | None) -> tuple[Run | None, Subject]:
    """Open the run, if it is one, and find the tasks and labels in question."""
    from bursar.campaign import Run, load_config
    from bursar.campaign.config import CONFIG_FILE
    from bursar.campaign.splits import load_parts
    from bursar.laws.joint_vs_single import subject_of_campaign, subject_of_corpus, subject_of_run

    is_run, is_campaign = (what / CONFIG_FILE).exists(), what.suffix == ".toml"
    for option, given in (("--items", items), ("--format", data_format)):
        if given is not None and (is_run or is_campaign):
            raise ConfigError(f"{option} is for datasets, but {what} is not one", fix=f"remove {option}")
    if is_run:
        run = Run.open(what)
        return run, subject_of_run(run)
    if is_campaign:
        config = load_config(what)
        return None, subject_of_campaign(config, load_parts(config))
    config = _config_of(what, data_format)
    return None, subject_of_corpus(config, load_parts(config), items)


def _config_of(data: Path, data_format: str | None) -> CampaignConfig:
    """Make a campaign on a dataset with default settings."""
    from bursar.campaign.config import parse_config
    from bursar.campaign.sections import BUILTIN

    if not data.exists() and str(data) != BUILTIN:
        raise DataError("there is no such file or folder", path=data)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", data.stem).lstrip("._-") or "data"
    corpus: dict[str, Any] = {"source": str(data)} | ({"format": data_format} if data_format else {})
    return parse_config({"name": name, "corpus": corpus}, str(data))


def _advice(subject: Subject, laws: Path | None) -> tuple[dict[str, Any] | None, str]:
    """Give the law's prediction, or the reason why there is none: a check needs no law."""
    from bursar.laws.advice import Laws
    from bursar.laws.joint_vs_single import advice_on

    try:
        return advice_on(subject, Laws.load(laws)), ""
    except ConfigError as wrong:
        if laws is not None:
            raise
        return None, wrong.message


def _page(run: Run) -> str:
    """Rewrite the report of the run."""
    from bursar.report import write_report

    return str(write_report(run))


# -- output ------------------------------------------------------------------------------------------------------------
def _print(parts: dict[str, Any], page: str | None) -> None:
    from bursar.cli.show import print_table
    from bursar.report.together import measured_table, predicted_table, section_of

    section, advice = section_of(parts), parts.get("advice")
    if advice is not None:
        table = predicted_table(advice)
        when = f", {advice['when']}" if "when" in advice else ""
        print_table(f"Should these tasks be trained together? Predicted by the law{when}", table.columns, table.rows)
    if "check" in parts:
        table = measured_table(parts["check"], advice)
        print_table("Should these tasks be trained together? Measured", table.columns, table.rows)
    for words in (" ".join(section.words), section.note):
        typer.echo(f"{words}\n")
    for warning in section.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if page is not None:
        typer.echo(f"Report: {page}")
