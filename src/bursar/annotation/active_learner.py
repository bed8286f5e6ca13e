"""Active learning from Python: ask for items, tell their labels, predict the rest; settings are a few arguments."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bursar.annotation.labelled import evidence_of, who_gave
from bursar.annotation.projects import (
    DATA_FILE,
    UNIT,
    Draft,
    begin_with_given,
    create_project,
    in_parts,
    mean_price,
    parts_by_labels,
    usual_rounds,
    usual_seed_items,
)
from bursar.campaign.campaign import Campaign
from bursar.campaign.checks import check_served, fallback_notice
from bursar.campaign.config import CONFIG_FILE, parse_config
from bursar.campaign.runs import Run, differences
from bursar.campaign.splits import load_parts
from bursar.campaign.state import ItemRequest
from bursar.corpus import Corpus
from bursar.corpus.corpus import Item
from bursar.errors import ConfigError, LabelError
from bursar.learners import Learner
from bursar.learners.chosen import ChosenLearner, choose_learner
from bursar.learners.learner import Scores, no_progress
from bursar.ledger import Skip
from bursar.predictions import Predictions
from bursar.selection import Strategy
from bursar.selection.strategy import Choose, name_of_strategy
from bursar.tasks import AnyBeliefs


@dataclass(frozen=True, eq=False)
class AskedItem(Item):
    """An item to label, with the tasks to label it for."""

    tasks: tuple[str, ...] = ()


class ActiveLearner:
    """Chooses the items to label, learns from the labels that you tell, and predicts those of the other items.

    ``corpus`` holds the items and the tasks, as ``bursar.read`` returns them. Labels that it has already are used at no
    cost; labelled items of its splits ``dev`` and ``test`` are kept for scores. ``budget`` is a number of items, or
    money if there are ``prices``, by task and for ``reading``: ``{"reading": {"per_word": 0.01}, "intent": 0.05}``.

    ``strategy`` is a name, a ``Strategy``, or a function of (pool, budget, rng) that returns positions in the pool.
    ``learner`` is a name, settings with a name, a ``Learner``, a scikit-learn estimator, an encoder with
    ``encode(texts)``, or ``bursar.from_function`` and ``bursar.from_transformers``; the default is a probe on a frozen
    encoder, fitted within a second. ``audit`` is the share of each batch that is drawn at random, for unbiased scores.

    Without a ``folder`` everything is in memory. With one, each answer is on disk when ``tell`` returns; the same call
    in another process goes on where this one stopped, and ``bursar serve FOLDER`` opens it in the browser.

    >>> import bursar
    >>> corpus = bursar.assistant_corpus(200, seed=1).with_tasks(["intent"])
    >>> learner = bursar.ActiveLearner(corpus.unlabelled(), budget=30, batch_size=10)
    >>> gold = bursar.GoldAnnotator(corpus)
    >>> while batch := learner.ask():
    ...     learner.tell({item.id: gold.annotate(item.id, item.tasks) for item in batch})
    >>> learner.spent, learner.ended
    (30, 'the budget is spent')
    >>> learner.predict_proba(corpus)["intent"].dense().shape  # (passes, items, labels)
    (1, 200, 36)
    """

    def __init__(
        self,
        corpus: Corpus,
        *,
        strategy: str | Strategy | Choose = "auto",
        budget: float,
        learner: Any = None,
        tasks: Sequence[str] | None = None,
        prices: Mapping[str, Any] | None = None,
        currency: str = "",
        batch_size: int | None = None,
        seed_items: int | None = None,
        audit: float = 0.0,
        seed: int = 0,
        folder: str | Path | None = None,
    ) -> None:
        self._params = {key: value for key, value in locals().items() if key not in ("self", "__class__")}
        wishes = LoopWishes(budget, strategy, prices or {}, currency, batch_size, seed_items, audit, seed)
        corpus = corpus if tasks is None else corpus.with_tasks(list(tasks))
        chosen = choose_learner(learner, corpus.schema, corpus.images is not None)
        draft = draft_of(corpus, wishes, chosen.settings)
        if notice := fallback_notice(draft.config):
            warnings.warn(notice, stacklevel=2)
        self._remove: Callable[[], object] = lambda: None  # what is in memory has a folder of its own
        self._model = None if chosen.maker is None else chosen.make(draft.corpus.schema)
        self._campaign = self._in_memory(draft) if folder is None else self._durable(Path(folder), draft, chosen)
        if self._model is not None and hasattr(self._model, "expect"):
            self._model.expect(self._campaign.corpus)
        self._campaign.begin()

    def _in_memory(self, draft: Draft) -> Campaign:
        folder = Path(tempfile.mkdtemp(prefix="bursar-"))
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        parts = load_parts(draft.config, draft.corpus)
        campaign = Campaign(draft.config, folder, parts=parts, learner=self._model, trust=True)
        begin_with_given(campaign, draft.given, "the corpus as it came")
        return campaign

    def _durable(self, folder: Path, draft: Draft, chosen: ChosenLearner) -> Campaign:
        if chosen.unnamed is not None:
            raise ConfigError(
                f"learner: the {chosen.unnamed} is an object that cannot be described in {folder}, so a later process "
                "could not tell whether it is given the same one",
                fix="leave folder out; or give it a name, as in bursar.from_function(f, name='my model 1'), "
                "and another name whenever it changes",
            )
        if not (folder / CONFIG_FILE).exists():
            create_project(folder, draft, learner=self._model)
        run = Run.open(folder)
        if changed := differences(run.config.model_dump(mode="json"), draft.config.model_dump(mode="json")):
            raise ConfigError(
                f"{folder} was started with other settings: {', '.join(changed)}",
                fix="pass the same arguments, or choose another folder",
            )
        if not same_contents(run.parts.corpus, draft.corpus):
            raise ConfigError(
                f"{folder} was started on another corpus", fix="pass the same one, or choose another folder"
            )
        return Campaign(run.config, folder, parts=run.parts, learner=self._model)

    # -- the loop ------------------------------------------------------------------------------------------------------
    def ask(self) -> list[AskedItem]:
        """The items to label next: those of the open batch without an answer, or a new batch; empty at the end."""
        round = self._campaign.ask()
        return [] if round is None else [self._asked(want) for want in round.items]

    def tell(self, labels: Mapping[str, Any], annotator: str = "annotator") -> None:
        """Give labels by item id: those of all tasks that were asked for, ``{"u1": {"intent": "alarm"}}``.

        If only one task was asked for, its label alone will do: ``{"u1": "alarm"}``. All labels are checked before the
        first is stored. The same answer may be told twice; a different one for the same item is an error.
        """
        if not isinstance(labels, Mapping):
            raise ConfigError(f"the labels are {labels!r}", fix='give a mapping by item id, such as {"u1": "alarm"}')
        self._campaign.tell({id: self._by_task(id, given) for id, given in labels.items()}, annotator)

    def skip(self, ids: Iterable[str], reason: str = "skipped", annotator: str = "annotator") -> None:
        """Leave items of the open batch unlabelled; they cost nothing and are not asked for again."""
        pending = {want.id: want for want in self._campaign.state.open()}
        wanted = [ids] if isinstance(ids, str) else list(ids)
        for id in wanted:
            if id not in pending:
                raise ConfigError(f"no open batch asks about item {id!r}", fix="skip items that ask() returned")
        for id in wanted:
            want = pending[id]
            self._campaign.ledger.skip(Skip(f"{want.key}: skipped", id, reason, None, want.round, annotator))

    def _asked(self, want: ItemRequest) -> AskedItem:
        corpus = self._campaign.corpus
        item = corpus[int(corpus.positions([want.id])[0])]
        return AskedItem(**{**vars(item), "tasks": want.tasks})

    def _by_task(self, id: str, given: Any) -> Mapping[str, Any]:
        if isinstance(given, Mapping):
            return given
        tasks = {want.tasks for want in self._campaign.state.open() if want.id == id} or {tuple(self.tasks)}
        if any(len(names) != 1 for names in tasks):
            raise LabelError(
                f"item {id!r}: {given!r:.100} does not say for which task",
                fix=f"give labels by task, as in {{{id!r}: {dict.fromkeys(self.tasks, '…')}}}",
            )
        return {names[0]: given for names in tasks}

    # -- the model -----------------------------------------------------------------------------------------------------
    def fit(self) -> ActiveLearner:
        """Train on all labels so far, unless that has been done. ``predict`` and the others do it by themselves."""
        self._fitted()
        return self

    def predict(self, items: Corpus | None = None) -> Predictions:
        """The labels of all items, of the own corpus by default: those that were told, and the model's for the rest.

        ``.to_frame()`` is a pandas DataFrame with how sure the model is, ``.write("labelled.xlsx")`` a file.
        """
        learner, campaign = self._fitted(), self._campaign
        people, dev = who_gave(campaign.ledger), campaign.known().dev
        measured = evidence_of(campaign.ledger, campaign.parts, dev, learner, no_progress)
        return Predictions.of(learner, self._with_known(self._items(items)), people=people, held_out=measured)

    def predict_proba(self, items: Corpus | None = None) -> dict[str, AnyBeliefs]:
        """The probabilities of all labels, by task; of the own corpus by default."""
        return self._fitted().predict_proba(self._items(items).unlabelled())

    def evaluate(self, items: Corpus) -> Scores:
        """The scores on labelled items, by task and metric."""
        return self._fitted().evaluate(items)

    def _fitted(self) -> Learner:
        campaign, known = self._campaign, self._campaign.known()
        return campaign.models.fitted(known.annotated, known.dev, no_progress)[0]

    def _with_known(self, items: Corpus) -> Corpus:
        """The items with the labels that were told or came with the corpus, and no others."""
        known = self.labelled
        place = {id: at for at, id in enumerate(known.ids.tolist())}
        rows = np.array([place.get(id, -1) for id in items.ids.tolist()], dtype=np.int64)
        labels = {name: column.take_or_none(rows) for name, column in known.labels.items()}
        return replace(items, labels=labels, schema=dict(known.schema))

    def _items(self, items: Corpus | None) -> Corpus:
        return self._campaign.corpus if items is None else items

    # -- what is known -------------------------------------------------------------------------------------------------
    @property
    def tasks(self) -> list[str]:
        """The names of the tasks."""
        return list(self._campaign.corpus.schema)

    @property
    def labelled(self) -> Corpus:
        """The labelled items with their labels, those that came with the corpus included."""
        return self._campaign.ledger.view()

    @property
    def spent(self) -> float:
        """The items labelled so far, or the money paid for them if there are prices."""
        spent = self._campaign.state.spent()
        by_item = self._campaign.config.budget.counts == "items"
        return spent if by_item else float(self._campaign.terms.costs.money(spent))

    @property
    def left(self) -> float:
        """What is left of the budget."""
        total = self._campaign.config.budget.total or 0.0
        if self._campaign.config.budget.counts == "items":
            return int(total) - self.spent
        return float(Decimal(str(total)) - Decimal(str(self.spent)))

    @property
    def ended(self) -> str | None:
        """Why there is nothing more to ask; ``None`` while there is."""
        reason = self._campaign.state.ended
        return "the budget is spent" if reason == "the money is spent" else reason

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that it was made with, as scikit-learn names them."""
        return dict(self._params)

    # -- closing -------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Release the folder. What is in memory is gone."""
        self._campaign.close()
        self._remove()

    def __enter__(self) -> ActiveLearner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        budget = self._campaign.config.budget
        what = "items" if budget.counts == "items" else "money"
        return f"<ActiveLearner of {', '.join(self.tasks)}: {self.spent:g} of {budget.total:g} {what}>"


# -- settings ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LoopWishes:
    """How to spend a budget; see ``ActiveLearner``."""

    budget: float
    strategy: str | Strategy | Choose = "auto"
    prices: Mapping[str, Any] | None = None
    currency: str = ""
    batch_size: int | None = None
    seed_items: int | None = None
    audit: float = 0.0
    seed: int = 0


def draft_of(corpus: Corpus, wishes: LoopWishes, learner: Mapping[str, Any]) -> Draft:
    """The corpus in the splits of a loop, and its settings, checked."""
    if not corpus.schema:
        raise ConfigError(
            "the corpus has no tasks", fix='describe them: bursar.read(…, tasks={"intent": ["refund", "order"]})'
        )
    for name, task in corpus.schema.items():
        if "labels" in task.vocabularies and not task.labels:
            raise ConfigError(
                f"task {name!r} has no labels", fix=f'list them: bursar.read(…, tasks={{"{name}": ["a", "b"]}})'
            )
    corpus = _parted(corpus)
    config = parse_config(_table(corpus, wishes, learner), "ActiveLearner")
    check_served(config)
    return Draft(corpus, config)


def _parted(corpus: Corpus) -> Corpus:
    """The corpus in four splits: train (to choose from), dev and test (fully labelled), given (labelled already)."""
    parts = parts_by_labels(corpus).tolist()
    free = parts.count("train")
    if free < 2:
        what = "no item is" if not free else "only one item is"
        raise ConfigError(
            f"{what} left to label: {len(parts) - free:,} of {len(corpus):,} items are labelled for all tasks",
            fix="compare strategies on labelled items with bursar.simulate, or label them anew: corpus.unlabelled()",
        )
    return in_parts(corpus, parts)


def same_contents(stored: Corpus, given: Corpus) -> bool:
    """Whether two corpora have the same items in the same parts, in whatever order their splits are listed."""
    one, other = (in_parts(part, [part.splits[code] for code in part.split_codes]) for part in (stored, given))
    return len(stored) == len(given) and one.digest() == other.digest()


def _table(corpus: Corpus, wishes: LoopWishes, learner: Mapping[str, Any]) -> dict[str, Any]:
    costs: dict[str, Any] = {"pricing": "predicted"}
    price = None
    if wishes.prices:
        costs |= {"unit": UNIT, "currency": wishes.currency} | prices_table(corpus, wishes.prices)
        price = typical_price(corpus, costs)
    pool = len(corpus.in_split("train"))
    plan = plan_loop(wishes.budget, price, pool, batch_size=wishes.batch_size, seed_items=wishes.seed_items)
    audit: dict[str, Any] = {"share": wishes.audit}
    if wishes.audit:
        audit["rounds"] = plan.rounds
    return {
        "seed": wishes.seed,
        "corpus": {"source": DATA_FILE, "format": "jsonl"},
        "costs": costs,
        "budget": plan.budget,
        "strategy": {"name": name_of_strategy(wishes.strategy)},
        "learner": dict(learner),
        "audit": audit,
    }


def prices_table(corpus: Corpus, prices: Mapping[str, Any]) -> dict[str, Any]:
    """Prices as in the [costs] table; a plain number is the price of an item. What is not named is free."""
    free = {name: {"per_item": 0, f"per_{task.counted}": 0} for name, task in corpus.schema.items()}
    table: dict[str, Any] = {"reading": {"per_item": 0, "per_word": 0}, **free}
    for name, price in prices.items():
        if name not in table:
            raise ConfigError(f"prices: there is no task {name!r}", fix=f"use reading, {', '.join(corpus.schema)}")
        table[name] = table[name] | (dict(price) if isinstance(price, Mapping) else {"per_item": price})
    return table


def typical_price(corpus: Corpus, costs: Mapping[str, Any]) -> float:
    """The mean price of an unlabelled item for all tasks, before there is a model."""
    model = parse_config({"costs": dict(costs)}, "prices").costs.model(list(corpus.schema.values()))
    if (mean := mean_price(corpus, model)) <= 0:
        raise ConfigError("prices: all items are free", fix="name a price, or leave prices out to count items")
    return mean


class LoopPlan(NamedTuple):
    """The plan of a loop: the [budget] table, and the number of rounds that it should take."""

    budget: dict[str, Any]
    rounds: int


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(0 < value < 1e12)


def plan_loop(
    budget: float, price: float | None, pool: int, *, batch_size: int | None = None, seed_items: int | None = None
) -> LoopPlan:
    """Plan a loop that spends a budget: a number of items, or money if an item has a ``price``.

    The first batch is as large as the others if ``batch_size`` is given. There may be more rounds than planned, because
    skipped items free money for others.
    """
    for what, value in (("budget", budget), ("batch_size", batch_size), ("seed_items", seed_items)):
        if value is not None and not _is_amount(value):
            raise ConfigError(f"{what} = {value!r} is not a positive number", fix=f"for instance {what}=100")
    if price is None and budget != int(budget):
        raise ConfigError(f"budget = {budget!r} is not a whole number of items", fix="or give prices=, to count money")
    each = 1.0 if price is None else price
    affordable = budget / each
    usual = batch_size if seed_items is None else seed_items
    if affordable < 1:
        raise ConfigError(f"a budget of {budget:g} buys no item, as one costs about {each:.2g}", fix="raise the budget")
    wanted = usual_seed_items(affordable, pool) if usual is None else min(usual, max(1, pool - 1))
    seed = min(wanted, int(affordable))
    most = int(min(affordable - seed, pool - seed))
    size = batch_size or -(-max(1, most) // usual_rounds(most))
    rounds = -(-most // size)
    per_round = float(size) if price is None else round(size * price, 4)
    table = {"counts": "items" if price is None else "money", "total": float(budget), "seed_items": seed}
    return LoopPlan(table | {"per_round": per_round, "rounds": 2 * rounds + 1}, max(1, rounds))
