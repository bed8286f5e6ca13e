"""Trains and scores the models of a round: the campaign's own, and a shadow trained on random items only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bursar.campaign.audit import AuditPlan
from bursar.campaign.config import CampaignConfig
from bursar.campaign.curves import RANDOM
from bursar.campaign.decisions import AuditPredictions, ReliabilityRecord, RoundRecord, ShadowScores, WatchedPredictions
from bursar.campaign.models import Fitted, Models
from bursar.campaign.participants import Observer
from bursar.campaign.round_planner import Known, bought_for, round_to
from bursar.campaign.savings import LEAST_SHARE
from bursar.campaign.splits import DataSplits
from bursar.campaign.state import AT_RANDOM
from bursar.campaign.stopping import agreement
from bursar.corpus import Corpus
from bursar.learners import Learner
from bursar.learners.learner import Scores, evaluate
from bursar.ledger import Decision, Ledger
from bursar.ragged import IntArray, Ragged
from bursar.uncertainty import MEASURES, confidence_of, confidences
from bursar.uncertainty.calibration import calibration_summary


def judged(learner: Learner, test: Corpus) -> tuple[Scores, dict[str, ReliabilityRecord]]:
    """The scores on test items, and the reliability of the model's confidence, by task."""
    if not len(test):
        return {}, {}
    beliefs = learner.predict_proba(test.unlabelled())
    guesses = {name: learner.tasks[name].decode(found) for name, found in beliefs.items()}
    sure = confidences(learner.tasks, beliefs, MEASURES["entropy"])
    trust = {}
    for column, (name, task) in enumerate(learner.tasks.items()):
        known = np.flatnonzero(test.labels[name].present)
        if len(known):
            gold = test.labels[name].rows.take(known)
            right = task.accuracies(gold, guesses[name].take(known), test.words[known])
            trust[name] = ReliabilityRecord(**calibration_summary(sure[known, column], right))
    return evaluate(learner.tasks, test, guesses), trust


class Shadow(NamedTuple):
    """A model trained on random items only, and their cost and number."""

    learner: Learner
    spent: int
    items: int


@dataclass(eq=False)
class RoundModels:
    """The models of a campaign's rounds, their scores, and their predictions for unlabelled items."""

    config: CampaignConfig
    parts: DataSplits
    ledger: Ledger
    models: Callable[[], Models]  # under the settings in force
    audit: AuditPlan
    watched: IntArray  # items whose predictions are compared from round to round
    watcher: Observer
    logs: Path  # folder for the logs of training steps

    def __post_init__(self) -> None:
        self.corpus = self.parts.corpus

    def conclude(self, known: Known) -> None:
        """Train and score the model after the newest round, unless that has been done."""
        round = known.round
        if self.ledger.decision(RoundRecord, round) is not None:
            return
        learner, best = self.main(known)
        test, trust = judged(learner, self.corpus.take(self.parts.test))
        if not trust and known.dev is not None:  # optimistic, as training used them, but better than nothing
            trust = judged(learner, known.dev)[1]
        watched = self.corpus.take(self.watched).unlabelled()
        guesses = learner.predict(watched)
        earlier = self.ledger.decision(WatchedPredictions, round - 1) if round else None
        record = RoundRecord(
            round=round,
            spent=self.ledger.spent(),
            items=len(known.annotated),
            labels={name: int(column.present.sum()) for name, column in known.annotated.labels.items()},
            test={task: {k: round_to(v) for k, v in scores.items()} for task, scores in test.items()},
            dev=None if best is None else round_to(best),
            reliability=trust,
            agreement=None if earlier is None else agreement(watched, earlier.predictions, guesses),
        )
        decisions: list[Decision] = [WatchedPredictions(round=round, predictions=self._values(guesses)), record]
        if test and (shadow := self.shadow(known)) is not None:  # last, as it replaces the model in memory
            scores = shadow.learner.evaluate(self.corpus.take(self.parts.test))
            main = {task.name: round_to(scores[task.name][task.metric]) for task in self.corpus.schema.values()}
            decisions.append(ShadowScores(round=round, spent=shadow.spent, items=shadow.items, test=main))
        self.ledger.decide(*decisions)
        self.watcher.scored(record)

    def main(self, known: Known) -> Fitted:
        """The campaign's model, trained on all annotated items; its steps are logged."""
        log = self.logs / f"round-{known.round:02}.parquet" if self.config.learner.log_steps else None
        return self._fitted(known, known.annotated, log=log)

    def audit_predictions(self, learner: Learner, slice_: IntArray, known: Known) -> AuditPredictions:
        """Predict the next round's audit slice before its labels are bought."""
        asked = self.corpus.take(slice_).unlabelled()
        beliefs = learner.predict_proba(asked)
        mine = self._values({name: learner.tasks[name].decode(found) for name, found in beliefs.items()})
        sure = {name: confidence_of(learner.tasks, beliefs, name) for name in beliefs}
        shadow = self.shadow(known)
        return AuditPredictions(
            round=known.round + 1,
            ids=tuple(asked.ids.tolist()),
            model=mine,
            shadow=None if shadow is None else self._values(shadow.learner.predict(asked)),
            shadow_spent=None if shadow is None else shadow.spent,
            sure={name: [round_to(value) for value in values.tolist()] for name, values in sure.items()},
        )

    def shadow(self, known: Known) -> Shadow | None:
        """The shadow after the newest round; ``None`` if it is not needed or has too few items."""
        measured = len(self.parts.test) and RANDOM in map(str.upper, self.config.compare)  # by random's own curve
        if measured or not (self.config.audit.shadow and self.audit.count):
            return None
        items = bought_for(AT_RANDOM, known, self.ledger)
        spent = self.ledger.spent_on(items.ids.tolist()) + self.ledger.spent(purpose="dev")  # random pays for that, too
        labelled = all(column.present.any() for column in items.labels.values())
        if not labelled or spent < LEAST_SHARE * self.ledger.spent():
            return None
        learner, _ = self._fitted(known, items, "training on random items")
        return Shadow(learner, spent, len(items))

    def _fitted(self, known: Known, annotated: Corpus, what: str = "training", log: Path | None = None) -> Fitted:
        def progress(stage: str, done: float) -> None:
            self.watcher.stage(known.round, what if stage == "training" else stage, done)

        return self.models().fitted(annotated, known.dev, progress, log)

    def _values(self, guesses: Mapping[str, Ragged]) -> dict[str, list[Any]]:
        return {name: [self.corpus.schema[name].value(rows) for rows in column] for name, column in guesses.items()}
