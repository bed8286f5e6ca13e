"""What trained models predict, in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from bursar.corpus import Corpus
from bursar.learners.encoders.encoder import ItemReading
from bursar.learners.examples import linkable_spans
from bursar.learners.learner import Progress, main_scores, no_progress
from bursar.learners.readings import ReadingCache, in_batches
from bursar.learners.sharing import SharedModel
from bursar.ragged import Ragged
from bursar.tasks import AnyBeliefs
from bursar.tasks.heads import Encoded, dropout_sample


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predicts with one model, once or in several dropout passes."""

    model: SharedModel
    cache: ReadingCache
    temperatures: Mapping[str, float] = field(default_factory=dict)

    def predict_proba(
        self, items: Corpus, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        """The probabilities of every task of the model, in the order of the items."""
        model = self.model.eval()
        readings = self.cache.read(items)
        order: list[int] = []
        parts: dict[str, list[Any]] = {name: [] for name in model.tasks}
        with torch.inference_mode():
            for batch in in_batches(readings, "scoring", progress):
                for name, beliefs in self._predict_batch([readings[i] for i in batch], passes, seed).items():
                    parts[name].append(beliefs)
                order += batch.tolist()
            if not order:
                width, none = model.encoder.width, np.zeros(0, dtype=np.int64)
                nothing = Encoded(torch.zeros(0, width), torch.zeros(0, width), none)
                return self._from_heads([dict.fromkeys(model.tasks, nothing)] * passes)
        back = np.argsort(np.array(order, dtype=np.int64))
        return {name: type(found[0]).concatenate(found).take(back) for name, found in parts.items()}

    def main_scores(self, dev: Corpus) -> tuple[float, float]:
        tasks, beliefs = self.model.tasks, self.predict_proba(dev)
        return main_scores(tasks, dev, {name: task.decode(beliefs[name]) for name, task in tasks.items()})

    def _predict_batch(self, readings: Sequence[ItemReading], passes: int, seed: int) -> dict[str, AnyBeliefs]:
        """One batch. Dropout passes share everything before the first dropout."""
        model, tasks = self.model, list(self.model.tasks)
        batch = model.encoder.batch(readings)
        hidden = self.cache.hidden(model, readings, batch)
        if passes == 1:
            return self._from_heads([model.encode(hidden, batch, tasks)])
        begun = model.encoder.begin(hidden, batch, model.frozen)
        plain = None
        if any(partner is not None for partner in model.partners.values()):
            # The model without dropout decides which pairs of spans are scored (errata 3).
            plain = self._from_heads([model.encode(hidden, batch, tasks, begun)])

        def dropout_passes() -> Iterator[dict[str, Encoded]]:
            for number in range(passes):
                with dropout_sample(model, seed, number):  # also while the heads read what is yielded
                    yield model.encode(hidden, batch, tasks, begun)

        return self._from_heads(dropout_passes(), plain)

    def _from_heads(
        self, passes: Iterable[dict[str, Encoded]], plain: Mapping[str, AnyBeliefs] | None = None
    ) -> dict[str, AnyBeliefs]:
        """The heads' probabilities from the encoder's output in every pass."""
        model = self.model
        outputs: dict[str, list[Any]] = {name: [] for name in model.tasks}
        leaders = [name for name, partner in model.partners.items() if partner is None]
        followers = [name for name, partner in model.partners.items() if partner is not None]
        for encoded in passes:
            for name in leaders:
                outputs[name].append(self._output(name, encoded[name], None))
            if followers and plain is None:
                plain = {name: model.head(name).predict_proba(outputs[name]) for name in leaders}
            for name in followers:
                assert plain is not None
                partner = model.partners[name]
                assert partner is not None
                spans = linkable_spans(model.tasks, name, model.tasks[partner].decode(plain[partner]), None)
                outputs[name].append(self._output(name, encoded[name], spans))
        return {name: model.head(name).predict_proba(outputs[name]) for name in model.tasks}

    def _output(self, name: str, encoded: Encoded, spans: Ragged | None) -> Any:
        output = self.model.head(name)(encoded, spans)
        temperature = self.temperatures.get(name)
        return output if temperature is None else self.model.head(name).with_temperature(output, temperature)


def with_progress(models: Sequence[SharedModel], progress: Progress) -> Iterator[tuple[SharedModel, Progress]]:
    """Each model with a callback for its share of the work."""
    for number, model in enumerate(models):

        def part(stage: str, done: float, number: int = number) -> None:
            progress(stage, (number + done) / len(models))

        yield model, part
