"""The labels of a whole project: those of people, those that came with the data, and the newest model's for the rest.

Reads the ledger and writes nothing to it, so it may run beside a server. If the newest model is no longer saved, it is
trained again, in a folder of its own.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bursar.annotation.round_worker import SUGGESTIONS
from bursar.annotation.suggestions import left_for
from bursar.campaign.audit import audited
from bursar.campaign.campaign import Campaign
from bursar.campaign.decisions import RoundRecord
from bursar.campaign.folder import Lock
from bursar.campaign.models import Models
from bursar.campaign.participants import GoldAnnotator
from bursar.campaign.runs import Run
from bursar.campaign.splits import DataSplits
from bursar.campaign.state import GIVEN as CAME_WITH_DATA
from bursar.corpus import Corpus, Labels
from bursar.errors import ConfigError
from bursar.learners import Learner
from bursar.learners.learner import Progress, no_progress
from bursar.ledger import Answer, Ledger
from bursar.ledger.ledger import current_labels
from bursar.predictions import HeldOut, ModelDescription, Predictions, TrainedModel, export_model, held_out
from bursar.predictions.acceptance import Thresholds, thresholds_by_task
from bursar.predictions.predictions import GIVEN

OWN_MODELS = "predicting"  # the folder of a model that had to be trained again
SIMULATED = "simulated"


@dataclass(frozen=True, eq=False)
class NewestModel(TrainedModel):
    """The newest model of a project, which was trained after this round."""

    round: int

    def __str__(self) -> str:
        return f"the model of round {self.round}, trained on {self.about.items:,} items"


def predict_project(
    folder: Path, thresholds: float | Thresholds | None = None, *, trust: bool = False, progress: Progress = no_progress
) -> tuple[Predictions, NewestModel]:
    """Label every item of a project or run, with the newest model where there is no other label.

    ``thresholds`` are only checked, before the model is loaded: ``Predictions.above`` applies them.
    """
    with _reading(folder, trust) as campaign:
        thresholds_by_task(list(campaign.corpus.schema), thresholds)
        model = newest_model(campaign, progress)
        items, people = known_labels(campaign.parts, campaign.ledger, campaign.config.corpus.pool)
        found = Predictions.of(model.learner, items, people=people, held_out=model.about.held_out, progress=progress)
    return found, model


def export_project_model(
    project: Path, folder: Path, *, trust: bool = False, progress: Progress = no_progress
) -> list[str]:
    """Write the newest model of a project or run to a folder, with a model card; returns the files written."""
    with _reading(project, trust) as campaign:
        model = newest_model(campaign, progress)
        return export_model(model.learner, folder, model.about)


def _reading(folder: Path, trust: bool) -> closing[Campaign]:
    """The campaign of a project, which a server may have open."""
    run = Run.open(folder, trust=trust)
    return closing(Campaign(run.config, folder, parts=run.parts, lock=False, trust=trust))


def newest_model(campaign: Campaign, progress: Progress = no_progress) -> NewestModel:
    """Load the model of the newest trained round, or train it again if it is no longer on disk."""
    records, round = campaign.ledger.decisions(RoundRecord), campaign.state.rounds_opened
    if not records:
        waiting = len(campaign.state.pending(round))
        raise ConfigError(
            f"{campaign.folder} has no model yet: its first round is not annotated"
            + (f" ({waiting} items are open)" if waiting else ""),
            fix=f"annotate it: bursar serve {campaign.folder}",
        )
    record, known = records[-1], campaign.known()
    models = campaign.models.under(campaign.state.terms().config)
    names = [models.known(known.annotated, known.dev), left_for(campaign.folder / SUGGESTIONS, round).model]
    learner = next((found for name in names if name and (found := models.named(name)) is not None), None)
    items, labels = record.items, dict(record.labels)
    if learner is None:
        learner = _trained_again(campaign, models, progress)
        items = len(known.annotated)
        labels = {name: int(column.present.sum()) for name, column in known.annotated.labels.items()}
    measured, config = evidence_of(campaign.ledger, campaign.parts, known.dev, learner, progress), campaign.config
    trained = config.name, config.learner.name, models.options, items, labels
    return NewestModel(learner, ModelDescription(*trained, dict(record.test), measured), record.round)


def _trained_again(campaign: Campaign, models: Models, progress: Progress) -> Learner:
    """Train on all labels, in a folder of its own: a server may be training in the project's."""
    place, known = campaign.folder / OWN_MODELS, campaign.known()
    if known.unlabelled_tasks:
        raise ConfigError(
            f"there is no model: no item is labelled for {', '.join(known.unlabelled_tasks)}",
            fix="label at least one item for every task",
        )
    lock = Lock(place / "lock", patience=0.5)
    try:
        own = Models(place, models.config, models.tasks, trust=models.trust, pool=models.pool)
        return own.fitted(known.annotated, known.dev, progress)[0]
    finally:
        lock.release()


def evidence_of(
    ledger: Ledger, parts: DataSplits, dev: Corpus | None, learner: Learner, progress: Progress
) -> dict[str, HeldOut]:
    """What errors are counted on, by task: test items, else audit items, else development items."""
    found = {}
    if dev is not None and len(dev):  # training stopped by them: a little optimistic, but better than nothing
        found = held_out(learner, dev, "development items", progress)
    found |= audited(ledger, learner.tasks)
    if len(parts.test):
        found |= held_out(learner, parts.corpus.take(parts.test), "test items", progress)
    return found


def known_labels(parts: DataSplits, ledger: Ledger, pool: str) -> tuple[Corpus, dict[tuple[str, str], str]]:
    """All items with the labels of the ledger, and those that came with the data; and who gave which.

    Labels that the pool came with do not count: in a simulation they are what is bought.
    """
    corpus, bought = parts.corpus, ledger.view()
    in_pool = np.isin(corpus.split_codes, [corpus.splits.index(pool)] if pool in corpus.splits else [])
    at = corpus.positions(bought.ids.tolist())
    labels = {}
    for name, own in corpus.labels.items():
        source = np.where(in_pool, -1, np.arange(len(corpus)))
        known = np.flatnonzero(bought.labels[name].present)
        source[at[known]] = len(corpus) + known
        labels[name] = Labels.concatenate([own, bought.labels[name]]).take_or_none(source)
    return replace(_without_split(corpus, CAME_WITH_DATA, pool), labels=labels), who_gave(ledger)


def _without_split(corpus: Corpus, split: str, into: str) -> Corpus:
    """The corpus with the items of one split in another one: other programs know only train, dev and test."""
    if split not in corpus.splits or into not in corpus.splits:
        return corpus
    kept = [name for name in corpus.splits if name != split]
    codes = np.array([kept.index(into if name == split else name) for name in corpus.splits], dtype=np.int16)
    return replace(corpus, splits=tuple(kept), split_codes=codes[corpus.split_codes])


def who_gave(ledger: Ledger) -> dict[tuple[str, str], str]:
    """Who gave the current label of each item and task."""

    def who(answer: Answer) -> str:
        if answer.annotator == GoldAnnotator.name:
            return SIMULATED
        return GIVEN if answer.purpose == CAME_WITH_DATA else f"person {answer.annotator}"

    return current_labels(
        (answer.item, task, None if label is None else who(answer), answer.role)
        for answer in ledger.answers()
        for task, label in answer.labels.items()
    )
