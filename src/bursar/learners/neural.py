"""The multi-task learner: an encoder with a head for each task, trained on whatever labels there are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bursar.corpus import Corpus
from bursar.curriculum import Course, Policy
from bursar.errors import ConfigError, LearnerError
from bursar.learners.catalog.builtin import neural_gives
from bursar.learners.encoders import load_encoder
from bursar.learners.encoders.encoder import Encoder
from bursar.learners.examples import Predictor, ReadingCache, TaskLosses, batches_by_length, in_batches, lengths_of
from bursar.learners.features import restoring
from bursar.learners.learner import (
    Embeddings,
    FitOptions,
    FitReport,
    Learner,
    Options,
    Progress,
    in_codes_of,
    must_be_trained,
    no_progress,
    part_of,
)
from bursar.learners.pretraining import PretrainedFile, PretrainingPlan, check_maskable, pretrain
from bursar.learners.rehearsal import Rehearsal
from bursar.learners.settings import PRECISIONS, NeuralSettings, TrainingPlan
from bursar.learners.sharing import SharedModel, make_models, tasks_of_models
from bursar.learners.training import Checkpoint, Training
from bursar.ragged import IntArray, Ragged, flat_positions, offsets_of
from bursar.tasks import AnyBeliefs, Task
from bursar.tasks.schemes import overlapping

WEIGHTS, DESCRIPTION = "weights.safetensors", "learner.json"


class NeuralLearner(Learner):
    """An encoder with a head for each task. Options are those of ``NeuralSettings``.

    ``settings`` say what is trained, ``cache`` keeps what the encoder reads, ``models`` are what was trained: one for
    all tasks or one for each group. ``start_encoder`` is where trainings start from: the encoder as it was loaded, or
    as ``adapt`` pretrained it.
    """

    @classmethod
    def gives(cls, options: Options) -> frozenset[str]:
        return neural_gives(options)

    def __init__(self, tasks: Mapping[str, Task], **options: Any) -> None:
        super().__init__(tasks)
        self.settings = NeuralSettings.of(options)
        for name in self.settings.heads:
            if name not in tasks:
                raise ConfigError(f"learner.heads names {name!r}", fix=f"the tasks are {', '.join(tasks)}")
        self.encoder = prepared_encoder(self.settings)
        self.start_encoder, self._adapted_to = self.encoder, ""
        with torch.random.fork_rng(devices=[]):
            models = self.make_models()  # refuses tasks that cannot be trained before any label is bought
        self._tagged = {name for model in models for name in model.tasks if model.head(name).tags_words}
        self.cache = ReadingCache(self.encoder, self.settings.frozen_layers)
        self.models: list[SharedModel] = []
        self.temperatures: dict[str, float] = {}

    def make_models(self) -> list[SharedModel]:
        return make_models(self.start_encoder, self.tasks, self.settings)

    # -- training ------------------------------------------------------------------------------------------------------
    def train(self, annotated: Corpus, options: FitOptions) -> FitReport:
        dev = None if options.dev is None else options.dev.take(np.argsort(options.dev.id_ranks))
        plan = TrainingPlan(self.settings, options.seed, options.policy)
        about = self._fingerprint(annotated, dev, plan) if options.checkpoint is not None else ""
        reports: list[FitReport] = []
        checkpoints: list[Checkpoint] = []
        self.temperatures = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)
            self.models = self.make_models()
            for number, model in enumerate(self.models):
                torch.manual_seed(plan.seed)
                checkpoint = None
                if (file := options.checkpoint) is not None:
                    path = file.with_name(f"{file.name}.{number}") if number else file
                    checkpoint = Checkpoint(path, f"{about} {number}", self.settings.checkpoint_seconds)
                    checkpoints.append(checkpoint)
                losses = TaskLosses.of(model, self.cache, annotated, self.settings.smoothing)
                model.encoder.settle(losses.readings)
                score = None if dev is None else partial(Predictor(model, self.cache).main_scores, dev)
                training = Training(losses, lengths_of(losses.readings), plan, checkpoint)
                reports.append(training.run(score, part_of(options.progress, number, len(self.models))))
                if options.log is not None:
                    training.write_log(options.log)
        if self.settings.temperature and dev is not None:
            self.temperatures = self.fit_temperatures(dev)
        for checkpoint in checkpoints:
            checkpoint.clear()
        return FitReport.together(reports, [len(model.tasks) for model in self.models])

    def _fingerprint(self, annotated: Corpus, dev: Corpus | None, plan: TrainingPlan) -> str:
        """Identifies a training: the learner, the seed, the policy, and the items with their labels."""
        steering = plan.policy.describe() if plan.policy is not None else []
        items = [corpus.with_tasks(list(self.tasks)).digest() for corpus in (annotated, dev) if corpus is not None]
        about = [self._about(), plan.seed, steering, items, *([self._adapted_to] if self._adapted_to else [])]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def rehearse(self, items: Corpus, *, trained: IntArray, known: IntArray, seed: int = 0) -> Rehearsal:
        items = in_codes_of(self.tasks, items)
        self.check(items)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            models = self.make_models()
            if len(models) > 1:
                raise LearnerError(
                    f'learner.sharing = "{self.settings.sharing}": the tasks share no layers to compare',
                    fix='use "shared" or "gated"',
                )
            model = models[0]
            losses = TaskLosses.of(model, self.cache, items, self.settings.smoothing)
            torch.manual_seed(seed)
            model.encoder.settle([losses.readings[at] for at in known])
            random = torch.get_rng_state()

        def predict(places: IntArray, task: str) -> Ragged:
            return self.tasks[task].decode(Predictor(model, self.cache).predict_proba(items.take(places))[task])

        training = Training(losses, lengths_of(losses.readings)[trained], TrainingPlan(self.settings, seed))
        return Rehearsal(items, training, trained, predict, random)

    def check(self, items: Corpus) -> None:
        """Refuse overlapping spans where the head tags words."""
        for name in self._tagged & set(items.schema):
            clash = np.flatnonzero(overlapping(items.labels[name].rows, items.words))
            if len(clash):
                raise LearnerError(
                    f"item {items.ids[int(clash[0])]!r}: spans of task {name!r} overlap, which tags cannot represent",
                    fix=f'use a head that scores spans: learner.heads = {{ {name} = "spans" }}',
                )

    def check_policy(self, policy: Policy | None, logged: bool = False) -> None:
        """Refuse a policy that does not know the tasks of every model, and a log where no task is chosen."""
        if logged and policy is None:
            raise ConfigError("joint steps have no log: they choose no task", fix="name a policy, such as uniform")
        if logged and self.settings.sharing == "single":
            raise ConfigError(
                'learner.sharing = "single" has no log of steps: each task has a model and steps of its own',
                fix='use sharing = "shared" or "gated", or write no log',
            )
        if policy is not None:
            for group in tasks_of_models(self.tasks, self.settings.sharing):
                policy.begin(Course(tuple(group), (1,) * len(group), steps=1))

    # -- further pretraining -------------------------------------------------------------------------------------------
    @property
    def adapts(self) -> bool:
        return self.settings.pretraining_steps > 0

    def adapt(
        self, items: Corpus, *, seed: int = 0, file: Path | None = None, progress: Progress = no_progress
    ) -> None:
        """See ``Learner``: pretrain the encoder on these items; later trainings start from it."""
        s = self.settings
        if not self.adapts or not len(items):
            return
        items = items.take(np.argsort(items.id_ranks))
        what = [s.encoder, s.layers, s.frozen_layers, s.precision, s.pretraining_steps, s.pretraining_rate, seed]
        about = hashlib.sha256(repr([what, self.encoder.keys(items)]).encode()).hexdigest()
        if about == self._adapted_to:
            return
        kept = PretrainedFile(file, about, s.checkpoint_seconds) if file is not None else None
        found = kept.read(self.encoder) if kept is not None else None
        if found is None:
            plan = PretrainingPlan(s.pretraining_steps, s.pretraining_rate, seed)
            found = pretrain(self.encoder, self.cache.read(items), plan, kept, progress)
        self.start_encoder, self._adapted_to = found, about

    # -- prediction ----------------------------------------------------------------------------------------------------
    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        must_be_trained(self.models)
        if passes < 1:
            raise LearnerError(f"{passes} passes", fix="ask for one pass, or for several dropout passes")
        found: dict[str, AnyBeliefs] = {}
        for number, model in enumerate(self.models):
            part = part_of(progress, number, len(self.models))
            found |= Predictor(model, self.cache, self.temperatures).predict_proba(items, passes, seed, part)
        return {name: found[name] for name in self.tasks}

    def fit_temperatures(self, dev: Corpus) -> dict[str, float]:
        """For each task, the temperature that maximises the likelihood of its development labels. Not applied here."""
        must_be_trained(self.models)
        dev, found = in_codes_of(self.tasks, dev), {}
        for model in self.models:
            losses = TaskLosses.of(model.eval(), self.cache, dev)
            lengths = lengths_of(losses.readings)
            for name in model.tasks:
                known = np.flatnonzero(losses.present[name])
                found[name], _ = losses.temperature((known[batch] for batch in batches_by_length(lengths[known])), name)
        return found

    def vectors(self, items: Corpus, *, progress: Progress = no_progress) -> NDArray[np.float32]:
        """The pooled vector of every item, averaged over tasks where they differ."""
        must_be_trained(self.models)
        readings = self.cache.read(items)
        found = np.zeros((len(items), self.encoder.width), dtype=np.float32)
        with torch.inference_mode():
            for number, model in enumerate(self.models):
                model.eval()
                for batch in in_batches(readings, "reading", part_of(progress, number, len(self.models))):
                    encoded = self.cache.encode(model, [readings[i] for i in batch], list(model.tasks))
                    for vectors in encoded.values():
                        found[batch] += vectors.items.numpy() / len(self.tasks)
        return found

    @property
    def pretrained(self) -> bool:
        return self.encoder.pretrained

    def embeddings(self, items: Corpus, *, progress: Progress = no_progress) -> Embeddings:
        """Vectors by a pretrained encoder: items from its last layer, words from the layer at two thirds.

        The top layers of a sentence encoder represent whole sentences; a word's own meaning is clearer below them.
        """
        encoder = self.encoder
        if not encoder.pretrained:
            return super().embeddings(items, progress=progress)
        readings, offsets, middle = self.cache.read(items), offsets_of(items.words), -(-2 * encoder.depth // 3)
        found = np.zeros((len(items), encoder.width), dtype=np.float32)
        words = np.zeros((int(offsets[-1]), encoder.width), dtype=np.float32)
        training = encoder.training
        encoder.eval()
        with torch.inference_mode():
            for places in in_batches(readings, "reading", progress):
                batch = encoder.batch([readings[at] for at in places])
                half = encoder.run(encoder.embed(batch), batch, range(middle))
                words[flat_positions(offsets, places)] = encoder.pool(half, batch).words.numpy()
                whole = encoder.run(half, batch, range(middle, encoder.depth))
                found[places] = encoder.pool(whole, batch).items.numpy()
        encoder.train(training)
        return Embeddings(found, words)

    # -- saved models: weights as safetensors, the rest as JSON --------------------------------------------------------
    def save(self, folder: Path) -> None:
        from safetensors.torch import save_file

        must_be_trained(self.models)
        folder.mkdir(parents=True, exist_ok=True)
        kept = {f"{at}.{k}": v for at, model in enumerate(self.models) for k, v in model.learned().items()}
        save_file(kept, folder / WEIGHTS)
        found = {"temperatures": self.temperatures, "settled": [model.encoder.settled() for model in self.models]}
        (folder / DESCRIPTION).write_text(json.dumps({**self._about(), "found": found}, indent=1))

    def restore(self, folder: Path) -> None:
        from safetensors.torch import load_file

        with restoring(folder):
            saved = json.loads((folder / DESCRIPTION).read_text())
            found = saved.pop("found")
            if saved != json.loads(json.dumps(self._about())):
                raise LearnerError("it is a learner of other tasks or settings")
            weights = load_file(folder / WEIGHTS)
            with torch.random.fork_rng(devices=[]):
                models = self.make_models()
            for at, (model, settled) in enumerate(zip(models, found["settled"], strict=True)):
                model.encoder.resettle(settled)
                own = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith(f"{at}.")}
                if own.keys() != model.learned().keys():
                    raise LearnerError("weights are missing, or there are too many")
                model.load_state_dict(own, strict=False)
                model.eval()
            self.temperatures = {str(name): float(t) for name, t in found["temperatures"].items()}
            self.models = models

    def _about(self) -> dict[str, object]:
        tasks = {name: task.describe() for name, task in self.tasks.items()}
        return {"learner": "neural", "settings": asdict(self.settings), "tasks": tasks}


def prepared_encoder(settings: NeuralSettings) -> Encoder:
    """The encoder as the settings describe it, with only its trained layers requiring gradients."""
    encoder = load_encoder(settings.encoder)
    encoder.compute_in(PRECISIONS[settings.precision])
    if settings.layers is not None:
        if settings.layers > encoder.depth:
            raise ConfigError(f"learner.layers = {settings.layers}", fix=f"this encoder has {encoder.depth} layers")
        encoder.shorten(settings.layers)
    if settings.frozen_layers > encoder.depth:
        raise ConfigError(
            f"learner.frozen_layers = {settings.frozen_layers}",
            fix=f"this encoder has {encoder.depth} layers that can be frozen",
        )
    encoder.requires_grad_(False)
    for parameter in encoder.trainable(settings.frozen_layers):
        parameter.requires_grad_(True)
    if settings.pretraining_steps:
        check_maskable(encoder)
    return encoder
