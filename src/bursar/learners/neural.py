"""The multi-task learner: an encoder, a head a task, trained on whatever labels there are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bursar.corpus import Corpus
from bursar.curriculum import Course, Policy
from bursar.errors import ConfigError, LearnerError
from bursar.learners.calibration import fit_temperature, scaled_loss
from bursar.learners.embed import pretrained_embeddings
from bursar.learners.encoders import BUNDLED, load_encoder
from bursar.learners.encoders.encoder import Reading
from bursar.learners.examples import Examples, Objective, linkable_spans
from bursar.learners.learner import (
    Embeddings,
    FitReport,
    Learner,
    Progress,
    in_codes_of,
    main_scores,
    neural_gives,
    no_progress,
)
from bursar.learners.precision import PRECISIONS, chosen_precision
from bursar.learners.pretraining import can_pretrain, pretrained, read_pretrained, write_pretrained
from bursar.learners.rehearsal import Rehearsal
from bursar.learners.sharing import SHARING, SharedModel, head_styles, make_models, tasks_of_models
from bursar.learners.training import Checkpoint, Schedule, check_numbers, train
from bursar.ragged import IntArray, Ragged
from bursar.tasks import AnyBeliefs, Tagging, Task, make_task
from bursar.tasks.heads import Encoded, dropout_sample
from bursar.tasks.schemes import overlapping

# Readings and hidden states of frozen layers are kept up to here; what goes beyond is simply computed again.
CACHE_ITEMS = 20_000
CACHE_BYTES = 1_000_000_000
ROWS_A_BATCH = 1024  # of hidden states, in scoring


@dataclass(frozen=True)
class Settings(Schedule):
    """What to train, and how."""

    encoder: str = BUNDLED
    sharing: str = "shared"  # or single (a model for each task), or gated
    gated_layers: int | None = None  # how many top layers are copied for each task; a third of them if not said
    layers: int | None = None  # only the encoder's lowest so many: words are often served best by middle layers
    frozen_layers: int = 0  # how many of the encoder's lower layers stay as they are
    heads: Mapping[str, str] = field(default_factory=dict)  # task to the style of its head, such as slots = "crf"
    tag_head: str = "crf"  # the style of the heads of tagging tasks that ``heads`` does not name
    pretraining_steps: int = 0  # on masked words of the unlabelled items given to ``adapt``, before any training
    pretraining_rate: float = 3e-4  # the learning rate of those steps
    dropout: float = 0.1  # in the heads
    smoothing: float = 0.0  # label smoothing; 0.1 in paper 1, section 7.3
    temperature: bool = False  # fit a temperature for each task on development items
    precision: str = "auto"  # of the encoder's products with weights: float32, bfloat16, or the faster one here

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self, {"frozen_layers": (0, 1000), "dropout": (0, 0.99), "smoothing": (0, 1)})
        check_numbers(self, {"pretraining_steps": (0, 10_000_000), "pretraining_rate": (0, 1)})
        if self.sharing not in SHARING:
            raise ConfigError(f"learner.sharing = {self.sharing!r}", fix=f"use {', '.join(SHARING)}")
        for name in ("layers", "gated_layers"):
            if getattr(self, name) is not None:
                check_numbers(self, {name: (1, 1000)})
        for name in ("temperature", "decay"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"learner.{name} = {getattr(self, name)!r}", fix="use true or false")
        if not isinstance(self.heads, Mapping) or not all(isinstance(style, str) for style in self.heads.values()):
            raise ConfigError(f"learner.heads = {self.heads!r}", fix='name tasks and styles: { slots = "crf" }')
        if self.tag_head not in Tagging.styles:
            raise ConfigError(f"learner.tag_head = {self.tag_head!r}", fix=f"use {', '.join(Tagging.styles)}")
        if not isinstance(self.encoder, str):
            raise ConfigError(f"learner.encoder = {self.encoder!r}", fix="name an encoder or its folder")
        # What was computed in one precision is not found by a learner of another: the setting names the one in use.
        object.__setattr__(self, "precision", chosen_precision(self.precision))


class NeuralLearner(Learner):
    """An encoder with a head for each task.

    Options are those of ``Settings``; the encoder is the bundled one, another that is known by name, a folder, or a
    name on the hub.
    """

    @classmethod
    def gives(cls, options: Mapping[str, Any]) -> frozenset[str]:
        return neural_gives(options)

    def __init__(self, tasks: Mapping[str, Task], **options: object) -> None:
        super().__init__(tasks)
        known = [f.name for f in fields(Settings)]
        for name in options:
            if name not in known:
                raise ConfigError(f"learner.{name} is not a setting", fix=f"known: {', '.join(known)}")
        self.settings = Settings(**options)  # type: ignore[arg-type]
        for name in self.settings.heads:
            if name not in tasks:
                raise ConfigError(f"learner.heads names {name!r}", fix=f"the tasks are {', '.join(tasks)}")
        self.encoder = load_encoder(self.settings.encoder)
        self.encoder.compute_in(PRECISIONS[self.settings.precision])
        if self.settings.layers is not None:
            if self.settings.layers > self.encoder.depth:
                raise ConfigError(
                    f"learner.layers = {self.settings.layers}", fix=f"this encoder has {self.encoder.depth} layers"
                )
            self.encoder.shorten(self.settings.layers)
        if self.settings.frozen_layers > self.encoder.depth:
            raise ConfigError(
                f"learner.frozen_layers = {self.settings.frozen_layers}",
                fix=f"this encoder has {self.encoder.depth} layers that can be frozen",
            )
        self.encoder.requires_grad_(False)
        for parameter in self.encoder.trainable(self.settings.frozen_layers):
            parameter.requires_grad_(True)
        if self.settings.pretraining_steps:
            can_pretrain(self.encoder)
        self._start, self._adapted_to = self.encoder, ""  # what trainings begin from, and which items it has read
        with torch.random.fork_rng(devices=[]):
            models = self._make_models()  # what cannot be trained is refused at once, before any label is bought for it
        self._tagged = {name for model in models for name in model.tasks if model.head(name).tags_words}
        self._readings: dict[Hashable, Reading] = {}
        self._kept: set[int] = set()  # the identities of what ``_readings`` keeps alive
        self._hidden: dict[int, Tensor] = {}  # by those identities
        self._hidden_bytes = 0
        self.models: list[SharedModel] = []
        self.temperatures: dict[str, float] = {}

    def _make_models(self) -> list[SharedModel]:
        s = self.settings
        return make_models(
            self._start,
            self.tasks,
            sharing=s.sharing,
            frozen=s.frozen_layers,
            styles=head_styles(self.tasks, s.heads, s.tag_head),
            dropout=s.dropout,
            copied=s.gated_layers,
        )

    # -- training ----------------------------------------------------------------------------------------------------
    @property
    def adapts(self) -> bool:
        return self.settings.pretraining_steps > 0

    def adapt(
        self, items: Corpus, *, seed: int = 0, file: Path | None = None, progress: Progress = no_progress
    ) -> None:
        """See ``Learner``: trainings begin from an encoder that was pretrained on these items, from now on."""
        s = self.settings
        if not self.adapts or not len(items):
            return
        items = items.take(np.argsort(items.id_ranks))
        what = [s.encoder, s.layers, s.frozen_layers, s.precision, s.pretraining_steps, s.pretraining_rate, seed]
        about = hashlib.sha256(repr([what, self.encoder.keys(items)]).encode()).hexdigest()
        if about == self._adapted_to:
            return
        found = read_pretrained(self.encoder, file, about) if file is not None else None
        if found is None:
            kept = Checkpoint(Path(f"{file}.training"), about, s.checkpoint_seconds) if file is not None else None
            found = pretrained(
                self.encoder,
                self._read(items),
                steps=s.pretraining_steps,
                rate=s.pretraining_rate,
                seed=seed,
                checkpoint=kept,
                progress=progress,
            )
            if file is not None and kept is not None:
                write_pretrained(found, file, about)
                kept.clear()
        self._start, self._adapted_to = found, about

    def fit(
        self,
        annotated: Corpus,
        *,
        dev: Corpus | None = None,
        seed: int = 0,
        policy: Policy | None = None,
        checkpoint: Path | None = None,
        log: Path | None = None,
        progress: Progress = no_progress,
    ) -> FitReport:
        self.check_policy(policy, log is not None)
        for name in self.tasks:
            if not _is_labelled(annotated, name):
                raise LearnerError(
                    f"no item is labelled for task {name!r} yet",
                    fix="buy at least one label for every task before training on it",
                )
        annotated = in_codes_of(self.tasks, annotated)
        dev = in_codes_of(self.tasks, dev) if dev is not None and len(dev) else None
        missing = [name for name in self.tasks if dev is not None and not _is_labelled(dev, name)]
        if missing:
            raise LearnerError(f"no development item is labelled for task {missing[0]!r}")
        # A model depends on the set of items and the seed, never on the order they came in (errata 25).
        annotated = annotated.take(np.argsort(annotated.id_ranks))
        dev = dev.take(np.argsort(dev.id_ranks)) if dev is not None else None
        self.check(annotated)
        about = self._fingerprint(annotated, dev, seed, policy) if checkpoint is not None else ""
        reports: list[FitReport] = []
        files: list[Checkpoint] = []
        self.temperatures = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.models = self._make_models()
            for number, model in enumerate(self.models):

                def part(stage: str, done: float, number: int = number) -> None:
                    progress(stage, (number + done) / len(self.models))

                torch.manual_seed(seed)
                if checkpoint is not None:
                    path = checkpoint.with_name(f"{checkpoint.name}.{number}") if number else checkpoint
                    files.append(Checkpoint(path, f"{about} {number}", self.settings.checkpoint_seconds))
                kept = files[-1] if files else None
                reports.append(self._fit_model(model, annotated, dev, seed, policy, kept, log, part))
        if self.settings.temperature and dev is not None:
            self.temperatures = self.fit_temperatures(dev)
        for file in files:
            file.clear()
        return FitReport.together(reports, [len(model.tasks) for model in self.models])

    def _fit_model(
        self,
        model: SharedModel,
        annotated: Corpus,
        dev: Corpus | None,
        seed: int,
        policy: Policy | None,
        checkpoint: Checkpoint | None,
        log: Path | None,
        progress: Progress,
    ) -> FitReport:
        readings = self._read(annotated)
        model.encoder.settle(readings)

        def encode(items: IntArray, tasks: Sequence[str]) -> dict[str, Encoded]:
            return self._encode(model, [readings[i] for i in items], tasks)

        def score() -> tuple[float, float]:
            assert dev is not None
            guesses = {n: self.tasks[n].decode(b) for n, b in self._believe(model, dev).items()}
            return main_scores(model.tasks, dev, guesses)

        return train(
            model,
            Objective(model, Examples.of(annotated, model), encode, self.settings.smoothing),
            lengths=np.array([reading.size for reading in readings]),
            schedule=self.settings,
            seed=seed,
            score=score if dev is not None else None,
            policy=policy,
            checkpoint=checkpoint,
            log=log,
            progress=progress,
        )

    def rehearse(self, items: Corpus, *, trained: IntArray, known: IntArray, seed: int = 0) -> Rehearsal:
        """See ``Learner``. Nothing of the learner itself changes."""
        items = in_codes_of(self.tasks, items)
        self.check(items)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            models = self._make_models()
            if len(models) > 1:
                raise LearnerError(
                    f'learner.sharing = "{self.settings.sharing}": tasks have nothing in common to look at',
                    fix='use "shared" or "gated"',
                )
            model = models[0]
            torch.manual_seed(seed)
            readings = self._read(items)
            model.encoder.settle([readings[at] for at in known])
            random = torch.get_rng_state()

        def encode(places: IntArray, tasks: Sequence[str]) -> dict[str, Encoded]:
            return self._encode(model, [readings[at] for at in places], tasks)

        def guess(places: IntArray, task: str) -> Ragged:
            return self.tasks[task].decode(self._believe(model, items.take(places))[task])

        return Rehearsal(
            items,
            model,
            Objective(model, Examples.of(items, model), encode, self.settings.smoothing),
            guess,
            lengths=np.array([reading.size for reading in readings]),
            trained=trained,
            schedule=self.settings,
            seed=seed,
            random=random,
        )

    def fit_temperatures(self, dev: Corpus) -> dict[str, float]:
        """For each task, the temperature that makes its development labels likeliest; they are not put to use."""
        if not self.models:
            raise LearnerError("this learner has not learned anything yet", fix="call fit first")
        dev = in_codes_of(self.tasks, dev)
        found: dict[str, float] = {}
        for model in self.models:
            found |= self._fit_temperatures(model, dev)
        return found

    def _fit_temperatures(self, model: SharedModel, dev: Corpus) -> dict[str, float]:
        """For each task, the temperature that makes its development labels likeliest."""
        model.eval()
        readings, examples = self._read(dev), Examples.of(dev, model)
        found = {}
        with torch.inference_mode():
            for name in model.tasks:
                known, head = np.flatnonzero(examples.present[name]), model.head(name)
                outputs: list[tuple[Any, Ragged]] = []
                for batch in _by_length(np.array([readings[i].size for i in known])):
                    items = known[batch]
                    encoded = self._encode(model, [readings[i] for i in items], [name])[name]
                    output = head(encoded, examples.spans_of(name, items))
                    outputs.append((output, examples.targets[name].take(items)))
                found[name] = fit_temperature(partial(scaled_loss, head, outputs))
        return found

    def check(self, items: Corpus) -> None:
        """Spans that overlap cannot be tags."""
        for name in self._tagged & set(items.schema):
            clash = np.flatnonzero(overlapping(items.labels[name].rows, items.words))
            if len(clash):
                raise LearnerError(
                    f"item {items.ids[int(clash[0])]!r}: spans of task {name!r} overlap, which tags cannot say",
                    fix=f'train it over spans: learner.heads = {{ {name} = "spans" }}',
                )

    def check_policy(self, policy: Policy | None, logged: bool = False) -> None:
        """The policy must know the tasks of every model; and a log needs a choice of tasks to tell of."""
        if logged and policy is None:
            raise ConfigError(
                "there is no log of joint steps: joint steps choose no task", fix="name a policy, such as uniform"
            )
        if logged and self.settings.sharing == "single":
            raise ConfigError(
                'there is no log of steps where learner.sharing = "single": each task has a model and steps of its own',
                fix='use sharing = "shared" or "gated", or write no log',
            )
        if policy is not None:
            for group in tasks_of_models(self.tasks, self.settings.sharing):
                policy.begin(Course(tuple(group), (1,) * len(group), steps=1))

    # -- believing -----------------------------------------------------------------------------------------------------
    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        if not self.models:
            raise LearnerError("this learner has not learned anything yet", fix="call fit first")
        if passes < 1:
            raise LearnerError(f"{passes} passes", fix="ask for one pass, or for several thinned ones")
        found: dict[str, AnyBeliefs] = {}
        for number, model in enumerate(self.models):

            def part(stage: str, done: float, number: int = number) -> None:
                progress(stage, (number + done) / len(self.models))

            found |= self._believe(model, items, passes, seed, part)
        return {name: found[name] for name in self.tasks}

    def _believe(
        self, model: SharedModel, items: Corpus, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        """What one model believes, batch after batch of items of like length."""
        model.eval()
        readings = self._read(items)
        order: list[int] = []
        parts: dict[str, list[Any]] = {name: [] for name in model.tasks}
        with torch.inference_mode():
            for batch in _by_length(np.array([reading.size for reading in readings], dtype=np.int64)):
                for name, beliefs in self._believe_batch(model, [readings[i] for i in batch], passes, seed).items():
                    parts[name].append(beliefs)
                order += batch.tolist()
                progress("scoring", len(order) / len(readings))
            if not order:
                width, none = self.encoder.width, np.zeros(0, dtype=np.int64)
                nothing = Encoded(torch.zeros(0, width), torch.zeros(0, width), none)
                return self._beliefs(model, [dict.fromkeys(model.tasks, nothing)] * passes)
        back = np.argsort(np.array(order, dtype=np.int64))
        return {name: type(found[0]).concatenate(found).take(back) for name, found in parts.items()}

    def _believe_batch(
        self, model: SharedModel, readings: Sequence[Reading], passes: int, seed: int
    ) -> dict[str, AnyBeliefs]:
        """One batch, in one pass or in several thinned ones, which share all that comes before the first dropout."""
        encoder, tasks = model.encoder, list(model.tasks)
        batch = encoder.batch(readings)
        hidden = self._below(model, readings, batch)
        if passes == 1:
            return self._beliefs(model, [model.encode(hidden, batch, tasks)])
        begun = encoder.begin(hidden, batch, model.frozen)
        plain = None
        if any(partner is not None for partner in model.partners.values()):
            # Which pairs are asked about is decided by the model itself (errata 3).
            plain = self._beliefs(model, [model.encode(hidden, batch, tasks, begun)])
        return self._beliefs(model, _thinned(model, hidden, batch, tasks, begun, passes, seed), plain)

    def _beliefs(
        self, model: SharedModel, passes: Iterable[dict[str, Encoded]], plain: Mapping[str, AnyBeliefs] | None = None
    ) -> dict[str, AnyBeliefs]:
        """The heads' beliefs from what the encoder made of a batch in every pass."""
        outputs: dict[str, list[Any]] = {name: [] for name in model.tasks}
        found: dict[str, AnyBeliefs] = {}
        leaders = [name for name, partner in model.partners.items() if partner is None]
        followers = [name for name, partner in model.partners.items() if partner is not None]
        for encoded in passes:
            for name in leaders:
                outputs[name].append(self._output(model, name, encoded[name], None))
            if followers and plain is None:
                plain = {name: model.head(name).predict_proba(outputs[name]) for name in leaders}
            for name in followers:
                assert plain is not None
                spans = self._spans_believed(model, name, plain)
                outputs[name].append(self._output(model, name, encoded[name], spans))
        for name in model.tasks:
            found[name] = model.head(name).predict_proba(outputs[name])
        return found

    def _output(self, model: SharedModel, name: str, encoded: Encoded, spans: Ragged | None) -> Any:
        output = model.head(name)(encoded, spans)
        temperature = self.temperatures.get(name)
        return output if temperature is None else model.head(name).with_temperature(output, temperature)

    def _spans_believed(self, model: SharedModel, name: str, plain: Mapping[str, AnyBeliefs]) -> Ragged:
        partner = model.partners[name]
        assert partner is not None
        return linkable_spans(model.tasks, name, model.tasks[partner].decode(plain[partner]), None)

    def vectors(self, items: Corpus, *, progress: Progress = no_progress) -> NDArray[np.float32]:
        """The pooled vector of every item, averaged over the tasks where each has its own."""
        if not self.models:
            raise LearnerError("this learner has not learned anything yet", fix="call fit first")
        readings = self._read(items)
        found = np.zeros((len(items), self.encoder.width), dtype=np.float32)
        with torch.inference_mode():
            for number, model in enumerate(self.models):
                model.eval()
                done = 0
                for batch in _by_length(np.array([reading.size for reading in readings], dtype=np.int64)):
                    encoded = self._encode(model, [readings[i] for i in batch], list(model.tasks))
                    for part in encoded.values():
                        found[batch] += part.items.numpy() / len(self.tasks)
                    done += len(batch)
                    progress("reading", (number + done / len(readings)) / len(self.models))
        return found

    @property
    def pretrained(self) -> bool:
        return self.encoder.pretrained

    def embeddings(self, items: Corpus, *, progress: Progress = no_progress) -> Embeddings:
        if not self.encoder.pretrained:
            return super().embeddings(items, progress=progress)
        readings = self._read(items)
        batches = _by_length(np.array([reading.size for reading in readings], dtype=np.int64))
        return pretrained_embeddings(self.encoder, readings, items.words, batches, progress)

    # -- readings and frozen layers, each computed once -----------------------------------------------------------
    def _read(self, items: Corpus) -> list[Any]:
        keys = self.encoder.keys(items)
        new = [at for at, key in enumerate(keys) if key not in self._readings]
        if new:
            made = self.encoder.read(items.take(np.array(new)))
            fresh = {keys[at]: reading for at, reading in zip(new, made, strict=True)}
            if len(self._readings) + len(fresh) <= CACHE_ITEMS:
                self._readings |= fresh
                self._kept |= {id(reading) for reading in fresh.values()}
            return [fresh[key] if key in fresh else self._readings[key] for key in keys]
        return [self._readings[key] for key in keys]

    def _encode(self, model: SharedModel, readings: Sequence[Reading], tasks: Sequence[str]) -> dict[str, Encoded]:
        batch = model.encoder.batch(readings)
        return model.encode(self._below(model, readings, batch), batch, tasks)

    def _below(self, model: SharedModel, readings: Sequence[Reading], batch: Any) -> Tensor:
        """What the embeddings and the frozen layers make of the batch: remembered, since it never changes."""
        encoder, frozen = model.encoder, self.settings.frozen_layers
        if not frozen:
            return encoder.embed(batch)
        readings = [readings[i] for i in batch.order]  # as they lie in the batch
        known = [self._hidden.get(id(reading)) for reading in readings]
        if all(hidden is not None for hidden in known):
            return torch.cat([hidden for hidden in known if hidden is not None])
        training = encoder.training
        encoder.eval()
        with torch.no_grad():
            hidden = encoder.run(encoder.embed(batch), batch, 0, frozen)
        encoder.train(training)
        for reading, part in zip(readings, torch.split(hidden, [reading.size for reading in readings]), strict=True):
            if (
                id(reading) in self._kept
                and id(reading) not in self._hidden
                and self._hidden_bytes + part.nbytes < CACHE_BYTES
            ):
                self._hidden[id(reading)] = part.clone()
                self._hidden_bytes += part.nbytes
        return hidden

    # -- keeping ---------------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        """The weights that were trained, the tasks and the settings."""
        from safetensors.torch import save_file

        if not self.models:
            raise LearnerError("this learner has not learned anything yet", fix="call fit first")
        folder.mkdir(parents=True, exist_ok=True)
        kept = {f"{at}.{k}": v for at, model in enumerate(self.models) for k, v in _learned(model).items()}
        save_file(kept, folder / "weights.safetensors")
        found = {"temperatures": self.temperatures, "settled": [m.encoder.settled() for m in self.models]}
        (folder / "learner.json").write_text(json.dumps(self._about() | {"found": found}, indent=1))

    def restore(self, folder: Path) -> None:
        from safetensors.torch import load_file

        try:
            about = json.loads((folder / "learner.json").read_text())
            found = about.pop("found")
            if about != json.loads(json.dumps(self._about())):
                raise LearnerError("it is a learner of other tasks or settings")
            weights = load_file(folder / "weights.safetensors")
            with torch.random.fork_rng(devices=[]):
                models = self._make_models()
            for at, (model, settled) in enumerate(zip(models, found["settled"], strict=True)):
                model.encoder.resettle(settled)
                own = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith(f"{at}.")}
                if own.keys() != _learned(model).keys():
                    raise LearnerError("some weights are missing or belong to nothing")
                model.load_state_dict(own, strict=False)
                model.eval()
            temperatures = {str(name): float(t) for name, t in found["temperatures"].items()}
        except Exception as wrong:  # whatever a damaged file may raise
            raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None
        self.models, self.temperatures = models, temperatures

    @classmethod
    def load(cls, folder: Path) -> NeuralLearner:
        """A saved learner, tasks and settings and all."""
        try:
            about = json.loads((folder / "learner.json").read_text())
            tasks = {name: make_task(name, description) for name, description in about["tasks"].items()}
            learner = cls(tasks, **about["settings"])
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None
        learner.restore(folder)
        return learner

    def _about(self) -> dict[str, object]:
        tasks = {name: task.describe() for name, task in self.tasks.items()}
        return {"learner": "neural", "settings": asdict(self.settings), "tasks": tasks}

    def _fingerprint(self, annotated: Corpus, dev: Corpus | None, seed: int, policy: Policy | None) -> str:
        """Which training this is: the learner, the seed, and the items with all that is known of them."""
        steering = policy.describe() if policy is not None else []
        items = [corpus.with_tasks(list(self.tasks)).digest() for corpus in (annotated, dev) if corpus is not None]
        about = [self._about(), seed, steering, items, *([self._adapted_to] if self._adapted_to else [])]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _is_labelled(items: Corpus, task: str) -> bool:
    return task in items.schema and bool(items.labels[task].present.any())


def _thinned(
    model: SharedModel, hidden: Tensor, batch: Any, tasks: Sequence[str], begun: Tensor | None, passes: int, seed: int
) -> Iterator[dict[str, Encoded]]:
    """One batch through thinned versions of a model; while one is looked at, the heads are thinned too."""
    for number in range(passes):
        with dropout_sample(model, seed, number):
            yield model.encode(hidden, batch, tasks, begun)


def _learned(model: SharedModel) -> dict[str, Tensor]:
    """What of a model's state came from training and is to be kept: all but the frozen parameters."""
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    return {name: value.contiguous() for name, value in model.state_dict().items() if name not in frozen}


def _by_length(lengths: IntArray, rows_a_batch: int = ROWS_A_BATCH) -> Iterator[IntArray]:
    """Batches of about equally long items, so that attention has little to pad."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    at = 0
    while at < len(order):
        before = int(ends[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(ends, before + rows_a_batch, side="right")))
        yield order[at:stop]
        at = stop
