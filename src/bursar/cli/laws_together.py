"""``bursar laws advise`` and ``check``: should tasks be trained together? A prediction, and a measurement."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import bursar
from bursar.cli.data import FormatOption
from bursar.cli.options import JsonOption, grouped
from bursar.cli.output import ProgressBar, print_json, print_table, print_warnings
from bursar.errors import ConfigError, DataError

if TYPE_CHECKING:
    from bursar.laws.joint_vs_single import Subject


@dataclass(frozen=True)
class Question:
    """Which tasks and labels the question is about, and which laws answer it."""

    what: Path = Argument(
        help="Folder of a run, TOML file of a campaign, or a labelled dataset.", metavar="RUN|CAMPAIGN.toml|DATA"
    )
    laws: Path | None = Option(
        None, metavar="FOLDER", help="Folder with your own balanced.json and single.json. Default: the packaged laws."
    )
    data_format: FormatOption = None
    items: int | None = Option(None, min=20, metavar="N", help="For a dataset: use this many random items.")

    def subject(self) -> tuple[bursar.Run | None, Subject]:
        """Open the run, if it is one, and find the tasks and labels in question."""
        from bursar.campaign.config import CONFIG_FILE
        from bursar.campaign.splits import load_parts
        from bursar.laws.joint_vs_single import subject_of_campaign, subject_of_corpus, subject_of_run

        what = self.what
        is_run, is_campaign = (what / CONFIG_FILE).exists(), what.suffix == ".toml"
        for option, given in (("--items", self.items), ("--format", self.data_format)):
            if given is not None and (is_run or is_campaign):
                raise ConfigError(f"{option} is for datasets, but {what} is not one", fix=f"remove {option}")
        if is_run:
            run = bursar.Run.open(what)
            return run, subject_of_run(run)
        if is_campaign:
            config = bursar.load_config(what)
            return None, subject_of_campaign(config, load_parts(config))
        config = self.default_campaign()
        return None, subject_of_corpus(config, load_parts(config), self.items)

    def default_campaign(self) -> bursar.CampaignConfig:
        """A campaign on the dataset with default settings."""
        from bursar.campaign.config import parse_config
        from bursar.campaign.sections import BUILTIN

        data = self.what
        if not data.exists() and str(data) != BUILTIN:
            raise DataError("there is no such file or folder", path=data)
        name = re.sub(r"[^A-Za-z0-9._-]", "-", data.stem).lstrip("._-") or "data"
        corpus = {"source": str(data)} | ({"format": self.data_format} if self.data_format else {})
        return parse_config({"name": name, "corpus": corpus}, str(data))

    def advice(self, subject: Subject) -> tuple[dict[str, Any] | None, str]:
        """The law's prediction, or the reason why there is none: a check needs no law."""
        from bursar.laws.advice import Laws
        from bursar.laws.joint_vs_single import advice_on

        try:
            return advice_on(subject, Laws.load(self.laws)), ""
        except ConfigError as wrong:
            if self.laws is not None:
                raise
            return None, wrong.message


@grouped
def advise(question: Question, as_json: JsonOption = False) -> None:
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

    known = Laws.load(question.laws)
    run, subject = question.subject()
    advice = advice_on(subject, known)
    page = None
    if run is not None:
        keep(run.folder, advice=advice)
        page = str(bursar.write_report(run))
    kept = keep_before(subject.config, advice, place_of(subject.config)) if question.what.suffix == ".toml" else None
    if as_json:
        print_json(advice | {"page": page, "kept": kept and str(kept)})
        return
    _print({"advice": advice}, page)
    if kept is not None:
        typer.echo(f"Saved for bursar laws check: {kept}")


@grouped
def check(
    question: Question,
    seeds: Annotated[
        int, Option("--seeds", min=1, metavar="N", help="Number of trainings with each set of tasks.")
    ] = 3,
    folder: Annotated[
        Path | None,
        Option("--folder", help="Folder for the trainings. Default: that of the run, or runs/NAME-together."),
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
    from bursar.laws.joint_vs_single import advice_before, keep, place_of
    from bursar.laws.joint_vs_single import check as train_both

    run, subject = question.subject()
    place = folder or (run.folder if run is not None else place_of(subject.config))
    if place.exists() and not place.is_dir():
        raise ConfigError(f"--folder {place} is a file", fix="name a folder")
    before = advice_before(run) if run is not None and question.laws is None else None
    advice, why = (before, "") if before is not None else question.advice(subject)
    with run.locked() if run is not None else nullcontext(), ProgressBar(quiet=as_json, first="reading") as bar:
        own = run.folder / "models" if run is not None else None
        measured = train_both(subject, place, seeds=seeds, own_models=own, progress=bar.update)
    parts = {"check": measured} | ({"advice": advice} if advice is not None else {})
    keep(place, **parts)
    page = str(bursar.write_report(run)) if run is not None else None
    if as_json:
        print_json(parts | {"page": page, "no_advice": why})
        return
    if why:
        typer.echo(f"No prediction by the law: {why}", err=True)
    _print(parts, page)


def _print(parts: dict[str, Any], page: str | None) -> None:
    from bursar.report.together import measured_table, predicted_table, section_of

    section, advice = section_of(parts), parts.get("advice")
    if advice is not None:
        table = predicted_table(advice)
        when = f", {advice['when']}" if "when" in advice else ""
        print_table(f"Should these tasks be trained together? Predicted by the law{when}", table.columns, table.rows)
    if "check" in parts:
        table = measured_table(parts["check"], advice)
        print_table("Should these tasks be trained together? Measured", table.columns, table.rows)
    for words in (" ".join(section["words"]), section["note"]):
        typer.echo(f"{words}\n")
    print_warnings(section["warnings"])
    if page is not None:
        typer.echo(f"Report: {page}")
