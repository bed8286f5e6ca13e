"""``bursar laws``: fit, show and apply scaling laws of multi-task learning."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import bursar
from bursar.cli.data import FormatOption
from bursar.cli.options import JsonOption, check_output_file, grouped, one_of
from bursar.cli.output import ProgressBar, print_json, print_table, print_warnings
from bursar.errors import ConfigError, DataError

if TYPE_CHECKING:
    from bursar.laws import Law, Observations
    from bursar.laws.joint_vs_single import Subject

app = typer.Typer(
    help="Scaling laws of multi-task learning: fit one to a table of trained models, show it, predict with it.",
    no_args_is_help=True,
)

SeedOption = Annotated[int, Option("--seed", min=0, help="Seed of the split, the folds and the search.")]
ArchitectureOption = Annotated[
    str | None, Option("--architecture", metavar="NAME", help="Use only the rows of this architecture. Default: all.")
]
TableArgument = Annotated[list[Path], Argument(help="Tables of trained models: Parquet files.", metavar="TABLE")]
LawArgument = Annotated[
    str | None, Argument(help="File of a law, or the name of a packaged one, such as balanced.", metavar="[LAW]")
]


@dataclass(frozen=True)
class FitOptions:
    """Which rows to fit a law to, and how to search for its formula."""

    engine: str = Option(
        "operon", metavar="NAME", help="Symbolic regression: operon, or gplearn as in paper 2, which is much slower."
    )
    variables: str = Option("n,tasks,ami", metavar="NAMES", help="Variables of the formula.")
    architecture: ArchitectureOption = None
    single: bool = Option(False, "--single", help="Use only single-task models, for a law of n.")
    by_seed: bool = Option(
        False, "--by-seed", help="Fit to each model instead of the mean over seeds; useful with few settings."
    )
    restarts: int | None = Option(None, min=1, metavar="N", help="Number of restarts of the search.")
    seed: SeedOption = 0

    def fit(self, tables: list[Path]) -> Law:
        from bursar.laws import FitSettings, fit_law
        from bursar.laws.regression import EFFORTS

        effort = EFFORTS[one_of("--engine", self.engine, EFFORTS)]
        if self.restarts is not None:
            effort = replace(effort, restarts=self.restarts)
        rows = _read(tables, self.architecture)
        rows = rows.of_single_tasks() if self.single else rows
        return fit_law(
            rows.averaged(by_seed=self.by_seed),
            [name.strip() for name in self.variables.split(",") if name.strip()],
            FitSettings(self.engine, effort, self.seed),
            about=_provenance(tables, rows),
        )


@dataclass(frozen=True)
class Setting:
    """The variables of a law."""

    tokens: float | None = Option(None, min=0, help="Labelled tokens of the task of interest.")
    tasks: float | None = Option(None, min=1, help="Number of tasks, including that one.")
    ami: float | None = Option(None, min=0, max=1, help="How related the tasks are: adjusted mutual information.")
    other_tokens: float | None = Option(None, min=0, help="Labelled tokens of each other task.")
    alpha: float | None = Option(None, min=0, max=1, help="Share of the real labels that simulated tasks keep.")


# Options of bursar laws predict, by variable.
OPTION_OF = {"n": "tokens", "n_other": "other_tokens", "tasks": "tasks", "ami": "ami", "alpha": "alpha"}


@app.command()
@grouped
def fit(
    tables: TableArgument,
    *,
    out: Annotated[Path | None, Option("--out", "-o", metavar="LAW.json", help="File to write the law to.")] = None,
    options: FitOptions,
    as_json: JsonOption = False,
) -> None:
    """Fit a formula for the score to a table of trained models.

    [bold]bursar laws fit balanced.parquet --out law.json[/bold]
    [bold]bursar laws fit balanced.parquet --variables n[/bold]
    [bold]bursar laws fit balanced.parquet --single --variables n --by-seed --out single.json[/bold]

    At least a tenth of the settings is held out to measure the error and the interval.
    """
    from bursar.report.law import front_table

    if out is not None:
        check_output_file("--out", out, ".json")
    law = options.fit(tables)
    if out is not None:
        law.save(out)
    if as_json:
        print_json({"file": str(out) if out else None, **law.describe()})
        return
    _print_law(law)
    front = front_table(law)
    print_table("Candidate formulas, with cross-validated errors", front.columns, front.rows, numbers=False)
    typer.echo(f"Law: {out}" if out else "The law was not saved; pass --out LAW.json to save it.")


@app.command()
def show(
    law: LawArgument = None,
    page: Annotated[
        Path | None, Option("--page", metavar="OUT.html", help="Also write an HTML page with the residuals.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a law: its formula, range, error and growth.

    [bold]bursar laws show[/bold]
    [bold]bursar laws show law.json --page law.html[/bold]
    """
    _, found = _law(law)
    if page is not None:
        from bursar.report.law import render_law
        from bursar.report.page import write_page

        check_output_file("--page", page)
        write_page(render_law(found, Path(law or "balanced").stem), page)
    if as_json:
        print_json(found.describe() | ({"page": str(page)} if page else {}))
        return
    _print_law(found)
    if page is not None:
        typer.echo(f"Page: {page}")


@app.command()
@grouped
def predict(setting: Setting, law: LawArgument = None, as_json: JsonOption = False) -> None:
    """Predict the score of a setting, with an interval.

    [bold]bursar laws predict --tokens 5000 --tasks 3 --ami 0.4[/bold]
    [bold]bursar laws predict law.json --tokens 5000 --tasks 3 --ami 0.4[/bold]

    Default law: unbalanced with --other-tokens, single with --tasks 1,
    otherwise balanced.
    """
    usual = "unbalanced" if setting.other_tokens is not None else "single" if setting.tasks == 1 else "balanced"
    name, found = _law(law, usual)
    given = {variable: getattr(setting, option) for variable, option in OPTION_OF.items()}
    missing = ["--" + OPTION_OF[name].replace("_", "-") for name in found.variables if given.get(name) is None]
    if missing:
        raise ConfigError(f"{name} needs {' and '.join(missing)}", fix=f"pass {missing[0]} NUMBER")
    answer = found.predict(**{name: value for name, value in given.items() if value is not None})
    print_warnings(answer.warnings)
    if as_json:
        print_json(asdict(answer))
        return
    typer.echo(f"{answer.value:.3f} ({100 * answer.level:.0f} % interval {answer.low:.3f} to {answer.high:.3f})")


@app.command("list")
def list_forms(
    table: Annotated[
        Path | None, Argument(help="Table of trained models to refit the formulas to.", metavar="TABLE")
    ] = None,
    architecture: ArchitectureOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """List the packaged laws and the formulas of paper 2.

    With a table, refit the formulas of paper 2 and show their error on held-out rows:

    [bold]bursar laws list balanced.parquet[/bold]
    """
    from bursar.laws import compare_forms

    if table is None:
        _list_known(as_json)
        return
    found = compare_forms(_read([table], architecture).averaged(), seed=seed)
    if as_json:
        numbers = ("error", "doubt", "monotone", "constant", "rows")
        print_json({c.name: {"text": c.formula.text} | {key: getattr(c, key) for key in numbers} for c in found})
        return
    columns = ["name", "squared error", "monotone model", "constant", "settings", "refitted formula"]
    errors = [(f"{c.error:.2e} ± {c.doubt:.0e}", f"{c.monotone:.2e}", f"{c.constant:.2e}") for c in found]
    lines = [(c.name, *shown, f"{c.rows:,}", c.formula.text) for c, shown in zip(found, errors, strict=True)]
    print_table("Formulas of paper 2, refitted", columns, lines, numbers=False)
    typer.echo(
        "squared error: mean over held-out folds, ± its standard error. monotone model, constant: the error of a\n"
        "free-form increasing function and of the mean score, on the same folds."
    )


def _read(files: list[Path], architecture: str | None) -> Observations:
    from bursar.laws import Observations

    first, *others = [Observations.read(file) for file in files]
    rows = first.merged(*others)
    return rows if architecture is None else rows.of_architecture(architecture)


def _law(given: str | None, usual: str = "balanced") -> tuple[str, Law]:
    """Load a law from a file or by the name of a packaged one; also give its name for messages."""
    from bursar.laws import Law

    if given is None:
        return f"the packaged law {usual!r}", Law.packaged(usual)
    if Path(given).suffix or "/" in given or Path(given).exists():
        return given, Law.load(given)
    return f"the packaged law {given!r}", Law.packaged(given)


def _provenance(files: list[Path], rows: Observations) -> dict[str, Any]:
    """Describe what a law was fitted to, for its file."""
    from importlib.metadata import version

    def names(column: str) -> list[str]:
        return sorted(set(rows.column(column)) - {""})

    return {
        "tables": [file.name for file in files],
        "models": len(rows),
        "architectures": names("architecture"),
        "sources": names("source"),
        "settings": names("settings"),
        "version": version("bursar"),
    }


def _list_known(as_json: bool) -> None:
    """List the packaged laws and the formulas of paper 2."""
    from bursar.laws import PAPER_FORMS, Law, packaged_laws

    laws = {name: Law.packaged(name) for name in packaged_laws()}
    if as_json:
        packaged = {name: {"text": law.formula.text, "variables": list(law.variables)} for name, law in laws.items()}
        forms = {name: {"printed": f.printed, "variables": list(f.variables)} for name, f in PAPER_FORMS.items()}
        print_json({"packaged": packaged, "forms": forms})
        return

    def plain(value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3g}"

    def ranges(law: Law) -> str:
        return ", ".join(f"{name} {plain(r.low)} to {plain(r.high)}" for name, r in law.ranges.items())

    if laws:
        lines = [(name, law.formula.text, ranges(law)) for name, law in laws.items()]
        print_table("Packaged laws (for the score)", ["name", "formula", "range"], lines, numbers=False)
    else:
        typer.echo("This installation has no packaged laws.\n")
    lines = [(name, known.printed, ", ".join(known.variables)) for name, known in PAPER_FORMS.items()]
    print_table("Formulas of paper 2 (for a scaled score)", ["name", "formula", "variables"], lines, numbers=False)


def _print_law(law: Law) -> None:
    from bursar.report.law import error_tiles, origin_words, variables_table

    typer.echo(f"score = {law.formula.text}\n")
    table = variables_table(law)
    print_table("Variables", table.columns, table.rows, numbers=False)
    typer.echo("Exponent: local exponent in the middle of the range, and at its top. Power law: exponent of a plain")
    typer.echo("power law fitted to the same rows, with its 95 % interval.\n")
    print_table("Errors on held-out settings", ("error", "value", "meaning"), error_tiles(law), numbers=False)
    typer.echo(f"{origin_words(law)}\n")
    print_warnings(law.warnings)


# -- should tasks be trained together? A prediction, and a measurement -------------------------------------------------
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


@app.command()
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
    _print_answers({"advice": advice}, page)
    if kept is not None:
        typer.echo(f"Saved for bursar laws check: {kept}")


@app.command()
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
    _print_answers(parts, page)


def _print_answers(parts: dict[str, Any], page: str | None) -> None:
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
    print_warnings(section.warnings)
    if page is not None:
        typer.echo(f"Report: {page}")
