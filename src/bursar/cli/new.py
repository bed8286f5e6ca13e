"""``bursar new``: create an annotation project from a table or another dataset, and a few settings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Argument, Option

import bursar
from bursar.cli.data import FormatOption, SetOption, read_data
from bursar.cli.options import grouped
from bursar.cli.output import ProgressBar
from bursar.cli.serve import serve_locally
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.annotation.projects import Draft, Wishes

T = TypeVar("T")


@dataclass(frozen=True)
class DataSettings:
    """The dataset and the tasks to annotate."""

    source: str = Option(
        ...,
        "--from",
        metavar="DATA",
        help="The dataset: a table (.csv, .xlsx, .parquet, .json), a text file, anything in a format of 'bursar data "
        "list', or 'builtin'.",
    )
    text_column: str | None = Option(
        None, metavar="COLUMN", help="Column of the texts. Default: found by its name or its long texts."
    )
    id_column: str | None = Option(
        None, metavar="COLUMN", help="Column of the ids. Default: found by its name; else rows are numbered."
    )
    label_columns: list[str] | None = Option(
        None,
        metavar="TASK=COLUMN",
        help="Column of the labels that are known for a task, such as intent=Category. Repeatable.",
    )
    tasks: list[str] | None = Option(
        None,
        metavar="TASK",
        help="A task as NAME:KIND:LABEL,LABEL, such as intent:classification:alarm,music, or the name of a task in the "
        "dataset. Repeat for more tasks, or separate them with ';'. Default: all tasks of the dataset.",
    )
    format: FormatOption = None
    set: SetOption = None

    def read(self, ask: Prompt) -> bursar.Corpus:
        """Read the dataset. Prompt for its tasks if it has none, or one without labels."""
        from bursar.annotation.projects import task_of, with_wished_tasks

        wished, labels = _split(self.tasks or ()), self._label_columns()
        tasks = [task_of(text) for text in wished if ":" in text and text.partition(":")[0].strip() in labels]
        columns: dict[str, Any] = {"text": self.text_column, "id": self.id_column, "labels": labels or None}
        columns["tasks"] = {task.name: task for task in tasks} or None  # that the labels of columns must fit
        given = {role: value for role, value in columns.items() if value is not None}
        corpus = read_data(self.source, self.format, self.set, given)
        typer.echo(f"Read {'; '.join((f'{len(corpus):,} items', *corpus.notes))}.")
        if wished:
            named = {text.partition(":")[0].strip() for text in wished}
            return with_wished_tasks(corpus, [*wished, *(task for task in labels if task not in named)])
        lacking = [name for name, task in corpus.schema.items() if "labels" in task.vocabularies and not task.labels]
        if corpus.schema and not lacking:
            return corpus
        about = f"no label names for {', '.join(lacking)}" if lacking else "no tasks"
        question = f"The dataset has {about}. Tasks to annotate (NAME:KIND:LABEL,LABEL; …)"
        read = partial(with_wished_tasks, corpus)
        return ask(question, "--tasks", None, lambda answer: read(_split([answer])), f"the dataset has {about}: ")

    def _label_columns(self) -> dict[str, str]:
        columns = {}
        for text in _split(self.label_columns or ()):
            task, _, column = (part.strip() for part in text.partition("="))
            if not task or not column:
                fix = "write TASK=COLUMN, as in intent=Category"
                raise ConfigError(f"--label-columns: {text!r} names no task and column", fix=fix)
            columns[task] = column
        return columns


@dataclass(frozen=True)
class ProjectSettings:
    """Money, strategy and model of the project. What is not given here may be prompted for."""

    budget: float | None = Option(None, metavar="B", help="Total budget.")
    hourly: float | None = Option(None, metavar="B", help="Cost of an hour of annotation.")
    currency: str | None = Option(None, metavar="SIGN", help="Currency sign.")
    price: list[str] | None = Option(
        None,
        metavar="PRICE",
        help="A price, such as intent.per_item=0.02 or reading.per_word=0.001. Default: estimated from --hourly.",
    )
    strategy: str | None = Option(None, metavar="NAME", help="How to select items: auto or the name of a strategy.")
    rounds: int | None = Option(None, metavar="N", min=1, help="Number of rounds. Default: computed from the budget.")
    seed_items: int | None = Option(None, metavar="N", min=1, help="Random items to label before the first model.")
    dev_items: int | None = Option(
        None, metavar="N", min=0, help="Random items to label for early stopping, if the dataset has none."
    )
    learner: str | None = Option(
        None, metavar="NAME", help="The model to train. Default: a transformer; for images, a CNN."
    )
    name: str | None = Option(None, metavar="NAME", help="Name of the project. Default: name of the folder.")
    forget_labels: bool = Option(False, "--forget-labels", help="Drop all labels but those of dev and test items.")
    seed: int = Option(0, metavar="N", min=0, help="Random seed.")
    ledger: str | None = Option(
        None, metavar="URL", help="PostgreSQL ledger of a team: postgresql://host/db?schema=name. Default: a file."
    )

    def wishes(self, project: Path, corpus: bursar.Corpus, ask: Prompt) -> Wishes:
        """The options, with answers for those that are not given."""
        from bursar.annotation.projects import Wishes, check_budget, full_cost, money_text

        prices, hourly, usual = _prices(self.price), self.hourly, Wishes("", 0.0)
        if hourly is None and not prices:
            hourly = ask("Cost of an hour of annotation", "--hourly", usual.hourly, _amount)
        currency = self.currency if self.currency is not None else ask("Currency", "--currency", usual.currency, str)
        same = ("rounds", "seed_items", "dev_items", "learner", "forget_labels", "seed", "ledger")
        wishes = Wishes(
            name=self.name or _name_of(project),
            hourly=hourly,
            currency=currency,
            budget=self.budget if self.budget is not None else 0.0,
            prices=prices,
            **{name: getattr(self, name) for name in same},
        )
        if self.budget is None:
            everything = full_cost(corpus, wishes)
            cost = f"labelling all {everything.items:,} items costs about {money_text(currency, everything.total)}"

            def budget(answer: str) -> float:
                amount = _amount(answer)
                check_budget(replace(wishes, budget=amount), everything)
                return amount

            wishes = replace(wishes, budget=ask(f"Total budget ({cost})", "--budget", None, budget, f"{cost}: "))
        strategy = self.strategy or ask("Strategy", "--strategy", "auto", lambda name: bursar.make_strategy(name).name)
        return replace(wishes, strategy=strategy)


@grouped
def new(
    project: Annotated[Path, Argument(help="Folder to create.")],
    data: DataSettings,
    settings: ProjectSettings,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not prompt; use the defaults.")] = False,
    serve: Annotated[
        bool, Option("--serve", help="Open the project in your browser as soon as it is created, as 'bursar serve'.")
    ] = False,
) -> None:
    """Create a project for people to annotate.

    Prompts for settings that are not given as options.
    The dataset is copied into the project, with all columns of a table: they are shown beside the item and exported
    again. Nothing is written if a row or a setting is invalid.

    [bold]bursar new support --from messages.xlsx --tasks 'intent:classification:order,refund' --budget 50 --yes \
--serve[/bold]
    """
    from bursar.annotation.projects import create_project, draft_project
    from bursar.cli.show import FirstSelection

    if project.exists() and (not project.is_dir() or any(project.iterdir())):
        raise ConfigError(f"{project} already exists", fix="choose another folder")
    ask = Prompt(yes)
    corpus = data.read(ask)
    wishes = settings.wishes(project, corpus, ask)
    draft = draft_project(corpus, wishes)
    with ProgressBar(first="creating the project", patience=2.0) as bar:
        create_project(project, draft, watcher=FirstSelection(bar))
    _print_summary(project, draft, wishes)
    if serve:
        serve_locally(project)
    else:
        typer.echo(f"\nNext: bursar serve {shlex.quote(str(project))}")


@dataclass(frozen=True)
class Prompt:
    """Prompts for a setting at a terminal; elsewhere, or with ``--yes``, uses its default."""

    yes: bool

    def __call__(self, question: str, flag: str, default: T | None, read: Callable[[str], T], why: str = "") -> T:
        if self.yes and default is not None:
            return default
        if self.yes or not sys.stdin.isatty():
            missing = f"{flag} has no default" if self.yes else f"{flag} is not given, and stdin is not a terminal"
            also = "" if default is None else f", or --yes for the default ({default})"
            raise ConfigError(f"{why}{missing}", fix=f"pass {flag}{also}")
        while True:
            answer = typer.prompt(question, default=None if default is None else str(default), err=True)
            try:
                return read(answer)
            except ConfigError as wrong:
                typer.echo(str(wrong), err=True)


def _split(tasks: Sequence[str]) -> list[str]:
    return [part.strip() for text in tasks for part in text.split(";") if part.strip()]


def _amount(answer: str) -> float:
    try:
        amount = float(answer)
    except ValueError:
        amount = -1.0
    if not 0 < amount < 1e12:
        raise ConfigError(f"{answer!r} is not an amount", fix="enter a number above 0, such as 200")
    return amount


def _prices(given: Sequence[str] | None) -> dict[str, dict[str, float]]:
    prices: dict[str, dict[str, float]] = {}
    for text in given or ():
        place, _, amount = text.partition("=")
        task, _, key = place.rpartition(".")
        try:
            prices.setdefault(task, {})[key] = float(amount)
        except ValueError:
            task = ""
        if not task:
            raise ConfigError(f"{text!r} is not a price", fix="write TASK.per_item=AMOUNT")
    return prices


def _name_of(project: Path) -> str:
    """Make a project name from a folder name: letters, digits and a few marks only."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in " ._-") else "-" for c in project.absolute().name)
    return name.strip(" ._-") or "project"


def _print_summary(project: Path, draft: Draft, wishes: Wishes) -> None:
    from bursar.annotation.projects import money_text
    from bursar.campaign.checks import fallback_notice

    config, corpus, say = draft.config, draft.corpus, typer.echo
    costs = config.costs.model(corpus.schema.values())
    budget, sign = config.budget, config.costs.currency

    def priced(prices: Mapping[str, int]) -> str:
        return " and ".join(_price(sign, costs.money(units), key) for key, units in prices.items() if units) or "free"

    say(f"Created {project}: " + ", ".join(f"{count:,} {part}" for part, count in draft.counts().items() if count))
    for name, task in corpus.schema.items():
        labels = ": " + ", ".join(task.labels[:8]) + (", …" if len(task.labels) > 8 else "") if task.labels else ""
        say(f"  {name} ({task.kind}{labels}): {priced(costs.own[name])}")
    say(f"  reading: {priced(costs.reading)}")
    if config.costs.measured:
        say("These prices are estimates. After the first round they follow the measured speed of your annotators.")
    dev = f" and {budget.dev_items} for early stopping" if budget.dev_items else ""
    everything = draft.everything
    assert everything is not None
    say(
        f"Labelling everything costs about {money_text(sign, everything.total)}. You have "
        f"{money_text(sign, wishes.budget)}, which buys about {everything.affordable(wishes.budget):,} of the "
        f"{everything.items:,} items."
    )
    say(
        f"Budget {money_text(sign, wishes.budget)}: about {budget.seed_items} items before the first model{dev}, "
        f"then up to {budget.rounds} rounds of {money_text(sign, budget.per_round)}."
    )
    say(f"Strategy {config.strategy.name.lower()}, learner {config.learner.name}.")
    if notice := fallback_notice(config):
        say(notice)
    if not len(corpus.in_split("test")):
        say("The dataset has no test items. Scores are estimated on a random audit slice of each round.")


def _price(sign: str, price: Decimal, key: str) -> str:
    """A price with two decimals; a small one for 100 units."""
    from bursar.annotation.projects import money_text

    unit = key.replace("_", " ")
    if price < Decimal("0.1"):
        return f"{money_text(sign, 100 * price)} {unit.replace('per ', 'per 100 ')}s"
    return f"{money_text(sign, price)} {unit}"
