"""``bursar new``: create an annotation project from a dataset and a few settings."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
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
    str,
    typer.Option(
        "--from",
        metavar="DATA",
        help="The dataset: a file or folder in any format of 'bursar data list', or 'builtin'.",
    ),
]
TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks",
        metavar="TASK",
        help="A task as NAME:KIND:LABEL,LABEL, such as intent:classification:alarm,music, or the name of a task in the "
        "dataset. Repeat for more tasks, or separate them with ';'. Default: all tasks of the dataset.",
    ),
]


PriceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="PRICE",
        help="A price, such as intent.per_item=0.02 or reading.per_word=0.001. Default: estimated from --hourly.",
    ),
]
StrategyOption = Annotated[
    str | None, typer.Option("--strategy", metavar="NAME", help="How to select items: auto or the name of a strategy.")
]
SeedItemsOption = Annotated[
    int | None, typer.Option("--seed-items", metavar="N", min=1, help="Random items to label before the first model.")
]
DevItemsOption = Annotated[
    int | None,
    typer.Option(
        "--dev-items", metavar="N", min=0, help="Random items to label for early stopping, if the dataset has none."
    ),
]
LearnerOption = Annotated[
    str | None,
    typer.Option("--learner", metavar="NAME", help="The model to train. Default: a transformer; for images, a CNN."),
]
ForgetLabelsOption = Annotated[
    bool, typer.Option("--forget-labels", help="Drop all labels but those of dev and test items.")
]
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="PostgreSQL ledger of a team: postgresql://host/db?schema=name. Default: a file.",
    ),
]


def new(
    project: Annotated[Path, typer.Argument(help="Folder to create.")],
    source: FromOption,
    tasks: TasksOption = None,
    budget: Annotated[float | None, typer.Option("--budget", metavar="B", help="Total budget.")] = None,
    hourly: Annotated[
        float | None, typer.Option("--hourly", metavar="B", help="Cost of an hour of annotation.")
    ] = None,
    currency: Annotated[str | None, typer.Option("--currency", metavar="SIGN", help="Currency sign.")] = None,
    price: PriceOption = None,
    strategy: StrategyOption = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", metavar="N", min=1, help="Number of rounds. Default: computed from the budget."),
    ] = None,
    seed_items: SeedItemsOption = None,
    dev_items: DevItemsOption = None,
    learner: LearnerOption = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the project. Default: name of the folder.")
    ] = None,
    forget_labels: ForgetLabelsOption = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Random seed.")] = 0,
    ledger: LedgerOption = None,
    format: FormatOption = None,
    set: SetOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not prompt; use the defaults.")] = False,
) -> None:
    """Create a project for people to annotate.

    Prompts for settings that are not given as options.
    The dataset is copied into the project. Nothing is written if a setting is invalid.

    [bold]bursar new reviews --from reviews.jsonl --tasks 'mood:classification:good,bad' --budget 200 --yes[/bold]
    """
    from bursar.annotation.projects import Wishes, create_project, draft_project, with_wished_tasks
    from bursar.cli.data import read_data

    if project.exists() and (not project.is_dir() or any(project.iterdir())):
        raise ConfigError(f"{project} already exists", fix="choose another folder")
    corpus = read_data(source, format, set)
    ask = _Prompt(yes)
    corpus = with_wished_tasks(corpus, _split(tasks)) if tasks else _with_tasks(corpus, ask)
    prices = _prices(price)
    usual = Wishes("", 0.0)
    if hourly is None and not prices:
        hourly = ask("Cost of an hour of annotation", "--hourly", usual.hourly, _amount)
    wishes = Wishes(
        name=name or _name_of(project),
        hourly=hourly,
        currency=currency if currency is not None else ask("Currency", "--currency", usual.currency, str),
        budget=budget if budget is not None else ask("Total budget", "--budget", None, _amount),
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
    _print_summary(project, draft, wishes)


class _Prompt:
    """Prompts for a setting at a terminal; elsewhere, or with ``--yes``, uses its default."""

    def __init__(self, yes: bool) -> None:
        self.yes = yes

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


def _with_tasks(corpus: Corpus, ask: _Prompt) -> Corpus:
    """Keep the tasks of the dataset; prompt for them if it has none, or one without labels."""
    from bursar.annotation.projects import with_wished_tasks

    lacking = [name for name, task in corpus.schema.items() if "labels" in task.vocabularies and not task.labels]
    if corpus.schema and not lacking:
        return corpus
    about = f"no label names for {', '.join(lacking)}" if lacking else "no tasks"
    question = f"The dataset has {about}. Tasks to annotate (NAME:KIND:LABEL,LABEL; …)"

    def read(answer: str) -> Corpus:
        return with_wished_tasks(corpus, _split([answer]))

    return ask(question, "--tasks", None, read, f"the dataset has {about}: ")


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


def _strategy(answer: str) -> str:
    from bursar.selection import make_strategy

    return make_strategy(answer).name


def _prices(given: Sequence[str] | None) -> dict[str, dict[str, float]]:
    prices: dict[str, dict[str, float]] = {}
    for text in given or ():
        place, _, amount = text.partition("=")
        task, _, key = place.rpartition(".")
        try:
            value = float(amount)
        except ValueError:
            task = ""
        if not task:
            raise ConfigError(f"{text!r} is not a price", fix="write TASK.per_item=AMOUNT")
        prices.setdefault(task, {})[key] = value
    return prices


def _name_of(project: Path) -> str:
    """Make a project name from a folder name: letters, digits and a few marks only."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in " ._-") else "-" for c in project.absolute().name)
    return name.strip(" ._-") or "project"


def _print_summary(project: Path, draft: Draft, wishes: Wishes) -> None:
    """Print the settings of a new project and the next command."""
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
    first = f"about {budget.seed_items} items before the first model" + (
        f" and {budget.dev_items} for early stopping" if budget.dev_items else ""
    )
    total, each = _amount_text(sign, wishes.budget), _amount_text(sign, budget.per_round)
    say(f"Budget {total}: {first}, then up to {budget.rounds} rounds of {each}.")
    say(f"Strategy {config.strategy.name.lower()}, learner {config.learner.name}.")
    if notice := fallback_notice(config):
        say(notice)
    if not len(corpus.in_split("test")):
        say("The dataset has no test items. Scores are estimated on a random audit slice of each round.")
    say("")
    say(f"Next: bursar serve {shlex.quote(str(project))}")


def _price(sign: str, price: Decimal, key: str) -> str:
    """A price with two decimals; a small one for 100 units.

    >>> _price("€", Decimal("0.0167"), "per_item"), _price("€", Decimal("0.25"), "per_span")
    ('€1.67 per 100 items', '€0.25 per span')
    """
    unit = key.replace("_", " ")
    if price < Decimal("0.1"):
        return f"{_amount_text(sign, 100 * price)} {unit.replace('per ', 'per 100 ')}s"
    return f"{_amount_text(sign, price)} {unit}"


def _amount_text(sign: str, amount: float | Decimal) -> str:
    """An amount with two decimals, or none if it is whole."""
    return f"{sign}{amount:,.2f}".removesuffix(".00")
