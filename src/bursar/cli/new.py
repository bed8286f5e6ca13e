"""``bursar new``: make a project that people annotate, from a file and a few answers."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bursar.cli.data import FormatOption, SetOption
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.annotation.projects import Draft, Wishes
    from bursar.corpus import Corpus

T = TypeVar("T")

FromOption = Annotated[
    str, typer.Option("--from", help="The data: a file or folder in any format of 'bursar data list', or 'builtin'.")
]
TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks",
        help="A task as NAME:KIND:LABEL,LABEL, such as intent:classification:alarm,music; or the name of one in the "
        "data. Say it once for each task, or part them with ';'. All tasks of the data if not given.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command()(new)


PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price", help="A price in money, such as intent.per_item=0.02 or reading.per_word=0.001; guessed if not."
    ),
]
StrategyOption = Annotated[
    str | None, typer.Option("--strategy", help="How items are chosen: auto, or any strategy by name.")
]
SeedItemsOption = Annotated[
    int | None, typer.Option("--seed-items", min=1, help="Random items before the first model.")
]
DevItemsOption = Annotated[
    int | None,
    typer.Option("--dev-items", min=0, help="Random items that decide when training is over, without any in the data."),
]
LearnerOption = Annotated[
    str | None, typer.Option("--learner", help="What is trained; a transformer, or a network for images, if not.")
]
ForgetLabelsOption = Annotated[
    bool, typer.Option("--forget-labels", help="Have items labelled anew; only dev and test labels are kept.")
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", help="Where a team's ledger is: postgresql://name@host/db?schema=name; else a file."),
]


def new(
    project: Annotated[Path, typer.Argument(help="The folder to make.")],
    source: FromOption,
    tasks: TasksOption = None,
    budget: Annotated[float | None, typer.Option("--budget", help="All that may be spent, in money.")] = None,
    hourly: Annotated[float | None, typer.Option("--hourly", help="What an hour of annotation costs.")] = None,
    currency: Annotated[str | None, typer.Option("--currency", help="The sign before amounts.")] = None,
    price: PriceOption = None,
    strategy: StrategyOption = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="So many rounds; worked out if not.")] = None,
    seed_items: SeedItemsOption = None,
    dev_items: DevItemsOption = None,
    learner: LearnerOption = None,
    name: Annotated[str | None, typer.Option("--name", help="The project's name; that of its folder if not.")] = None,
    forget_labels: ForgetLabelsOption = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every draw.")] = 0,
    ledger: LedgerOption = None,
    format: FormatOption = None,
    set: SetOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: what is not given has its default.")] = False,
) -> None:
    """Make a project that people annotate.

    Asks what it needs to know; every question has an option, for those who cannot be asked. The data is copied into the
    project. Nothing is written unless everything is right.

        bursar new reviews --from reviews.jsonl --tasks 'mood:classification:good,bad' --budget 200 --yes
    """
    from bursar.annotation.projects import Wishes, create_project, draft_project, with_wished_tasks
    from bursar.cli.data import _read

    if project.exists() and (not project.is_dir() or any(project.iterdir())):
        raise ConfigError(f"{project} is there already", fix="choose another folder")
    corpus = _read(source, format, set)
    ask = _Questions(yes)
    corpus = with_wished_tasks(corpus, _split(tasks)) if tasks else _with_tasks(corpus, ask)
    prices = _prices(price)
    usual = Wishes("", 0.0)
    if hourly is None and not prices:
        hourly = ask("What does an hour of annotation cost?", "--hourly", usual.hourly, _amount)
    wishes = Wishes(
        name=name or _name_of(project),
        hourly=hourly,
        currency=currency if currency is not None else ask("In which currency?", "--currency", usual.currency, str),
        budget=budget if budget is not None else ask("How much may be spent in all?", "--budget", None, _amount),
        strategy=strategy or ask("Strategy", "--strategy", usual.strategy.lower(), _strategy),
        prices=prices,
        rounds=rounds,
        seed_items=seed_items,
        dev_items=dev_items,
        learner=learner,
        forget_labels=forget_labels,
        seed=seed,
        ledger=ledger,
    )
    draft = draft_project(corpus, wishes)
    create_project(project, draft)
    _tell(project, draft, wishes)


class _Questions:
    """Asks a person at a terminal; everybody else has to have said it."""

    def __init__(self, yes: bool) -> None:
        self.yes = yes

    def __call__(self, question: str, flag: str, default: T | None, read: Callable[[str], T]) -> T:
        if self.yes and default is not None:
            return default
        if self.yes or not sys.stdin.isatty():
            fix = f"say it with {flag}" + ("" if default is None else f", or take {default} with --yes")
            raise ConfigError(f"nobody is here to be asked: {question}", fix=fix)
        while True:
            answer = typer.prompt(question, default=None if default is None else str(default), err=True)
            try:
                return read(answer)
            except ConfigError as wrong:
                typer.echo(str(wrong), err=True)


def _with_tasks(corpus: Corpus, ask: _Questions) -> Corpus:
    """The data with its own tasks, or those that a person names where it has none, or one without labels."""
    from bursar.annotation.projects import with_wished_tasks

    lacking = [name for name, task in corpus.schema.items() if "labels" in task.vocabularies and not task.labels]
    if corpus.schema and not lacking:
        return corpus
    about = f"The data has no labels for {', '.join(lacking)}." if lacking else "The data has no tasks."
    question = f"{about} Which are wanted? (NAME:KIND:LABEL,LABEL; …)"

    def read(answer: str) -> Corpus:
        return with_wished_tasks(corpus, _split([answer]))

    return ask(question, "--tasks", None, read)


def _split(tasks: Sequence[str]) -> list[str]:
    return [part.strip() for text in tasks for part in text.split(";") if part.strip()]


def _amount(answer: str) -> float:
    try:
        amount = float(answer)
    except ValueError:
        amount = -1.0
    if not 0 < amount < 1e12:
        raise ConfigError(f"{answer!r} is no amount of money", fix="write a number, such as 200")
    return amount


def _strategy(answer: str) -> str:
    from bursar.selection import make_strategy

    return make_strategy(answer).name


def _prices(given: Sequence[str] | None) -> dict[str, dict[str, float]]:
    prices: dict[str, dict[str, float]] = {}
    for text in given or ():
        place, _, amount = text.partition("=")
        task, _, key = place.rpartition(".")
        if not task or not amount:
            raise ConfigError(f"{text!r} is no price", fix="write TASK.per_item=AMOUNT")
        prices.setdefault(task, {})[key] = _number(text, amount)
    return prices


def _number(text: str, amount: str) -> float:
    try:
        return float(amount)
    except ValueError:
        raise ConfigError(f"{text!r} is no price", fix="write TASK.per_item=AMOUNT") from None


def _name_of(project: Path) -> str:
    """A folder's name as a project's, which has letters, digits and a few marks only."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in " ._-") else "-" for c in project.absolute().name)
    return name.strip(" ._-") or "project"


def _tell(project: Path, draft: Draft, wishes: Wishes) -> None:
    """What was made, and what comes next."""
    from bursar.campaign.checks import fallback_notice

    config, corpus, say = draft.config, draft.corpus, typer.echo
    costs = config.costs.model(corpus.schema.values())
    budget, sign = config.budget, config.costs.currency

    def priced(prices: Mapping[str, int]) -> str:
        return ", ".join(
            f"{sign}{costs.money(units).normalize():f} {key.replace('_', ' ')}"
            for key, units in prices.items()
            if units
        )

    say(f"{project}: " + ", ".join(f"{count:,} {part}" for part, count in draft.counts().items() if count))
    for name, task in corpus.schema.items():
        labels = ": " + ", ".join(task.labels[:8]) + (", …" if len(task.labels) > 8 else "") if task.labels else ""
        say(f"  {name} ({task.kind}{labels}), {priced(costs.own[name])}")
    say(f"  reading, {priced(costs.reading)}")
    if config.costs.measured:
        say("Prices are guesses; from the first round on they follow the pace of your annotators.")
    first = f"about {budget.seed_items} items before the first model" + (
        f" and {budget.dev_items} to measure by" if budget.dev_items else ""
    )
    say(f"Budget {sign}{wishes.budget:,g}: {first}, then up to {budget.rounds} rounds of {sign}{budget.per_round:,g}.")
    say(f"Strategy {config.strategy.name.lower()}, learner {config.learner.name}.")
    if notice := fallback_notice(config):
        say(notice)
    if not len(corpus.in_split("test")):
        say("There are no test items: scores come from random items that every round sets aside.")
    say("")
    say(f"Next: bursar serve {shlex.quote(str(project))}")
