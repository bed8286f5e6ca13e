"""Stores trained models by their training set, so that no set is trained on twice."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bursar.campaign.config import CampaignConfig
from bursar.corpus import Corpus
from bursar.errors import CheckpointError, LabelError, LearnerError, UntrustedError
from bursar.learners import Learner, make_learner
from bursar.learners.learner import Progress, restore
from bursar.tasks import Task
from bursar.tasks.schemes import overlapping

SHARERS = ("transformer", "bilstm", "cnn", "aoe", "image-cnn")  # learners whose tasks share a model
TAGGERS = ("probe", "scikit")  # built-in learners that predict one tag per word
PRETRAINED = "pretrained.safetensors"  # the learner's encoder after pretraining on the pool
Fitted = tuple[Learner, float | None]  # a learner, and its best development score
KEPT = 3  # models on disk: enough for a resumed round and its shadow


@dataclass(eq=False)
class Models:
    """Trained models in a folder, each under a digest of the annotated set, the learner's settings and the seed.

    Models that could run code need ``trust``. ``pool`` gives the unlabelled items that learners may pretrain on.
    """

    folder: Path
    config: CampaignConfig
    tasks: Mapping[str, Task]
    learner: Learner | None = None
    trust: bool = field(default=False, kw_only=True)
    pool: Callable[[], Corpus] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.policy = self.config.learner.task_policy
        self._handed_in = self.learner is not None  # its maker is here, so it can always be trained again
        self._fitted: tuple[str, float | None] | None = None

    def under(self, config: CampaignConfig) -> Models:
        """The models of the campaign under changed settings; ``self`` if they make no difference."""
        if config.strategy.make().alone == self.config.strategy.make().alone:
            return self
        return Models(self.folder, config, self.tasks, trust=self.trust, pool=self.pool)

    def fitted(self, annotated: Corpus, dev: Corpus | None, progress: Progress, log: Path | None = None) -> Fitted:
        """A learner trained on these items, valid until the next call, and its best development score."""
        digest, learner = self._digest(annotated, dev), self.untrained()
        if self._fitted is not None and self._fitted[0] == digest:
            return learner, self._fitted[1]
        self._fitted = None  # in case training is interrupted
        place = self.folder / digest
        best = self._load(place, learner)
        if best is None:
            if self.pool is not None and learner.adapts:
                file = self.folder / PRETRAINED
                learner.adapt(self.pool().unlabelled(), seed=self.config.seed, file=file, progress=progress)
            checkpoint = self.folder / f"{digest}.training"
            settings: dict[str, Any] = {"seed": self.config.seed, "checkpoint": checkpoint, "progress": progress}
            if self.policy is not None:  # learners without training steps need not accept one
                settings |= {"policy": self.policy, "log": log}
            try:
                report = learner.fit(annotated, dev=dev, **settings)
            except CheckpointError:  # train from the beginning
                for file in checkpoint.parent.glob(f"{checkpoint.name}*"):
                    file.unlink()
                report = learner.fit(annotated, dev=dev, **settings)
            best = (report.best_score,)
            self._save(place, learner, report.best_score)
        self._fitted = digest, best[0]
        return learner, best[0]

    def check(self, items: Corpus) -> None:
        """Refuse a learner, tasks or labels that cannot be trained, before money is spent."""
        self.untrained().check(items)

    @cached_property
    def may_nest(self) -> frozenset[str]:
        """The tagging tasks whose spans may overlap, because the learner predicts spans rather than tags."""
        learner = self.config.learner
        tagging = {name for name, task in self.tasks.items() if task.kind == "tagging"}
        if learner.name in SHARERS:
            heads, usual = learner.options.get("heads", {}), learner.options.get("tag_head")
            linked = {task.partner(self.tasks) for task in self.tasks.values()}
            return frozenset(name for name in tagging if name in linked or heads.get(name, usual) == "spans")
        return frozenset() if learner.name in TAGGERS else frozenset(tagging)

    def check_label(self, items: Corpus) -> None:
        """Refuse labels that cannot be trained on, without loading a built-in learner."""
        for name in items.schema.keys() - self.may_nest:
            if items.schema[name].kind == "tagging" and overlapping(items.labels[name].rows, items.words).any():
                what = f"spans of task {name!r} overlap, and the learner predicts one tag per word"
                raise LabelError(f"item {items.ids[0]!r}: {what}", fix="mark spans that do not overlap")
        if self.config.learner.name not in (*SHARERS, *TAGGERS):
            self.check(items)

    def check_policy(self) -> None:
        """Refuse a policy or a log of steps that the learner cannot use, before money is spent."""
        if self.policy is not None:
            self.untrained().check_policy(self.policy, self.config.learner.log_steps)

    def untrained(self) -> Learner:
        """The learner as it was made, or as it was trained last."""
        if self.learner is None:
            self.learner = make_learner(self.config.learner.name, self.tasks, self.options)
        return self.learner

    @property
    def options(self) -> dict[str, Any]:
        """The options of the learner, as the strategy needs them."""
        options = self.config.learner.options
        if self.config.strategy.make().alone and self.config.learner.name in SHARERS:  # paper 1's ST-…
            return {**options, "sharing": "single"}
        return options

    @property
    def newest(self) -> str | None:
        return None if self._fitted is None else self._fitted[0]

    def saved(self) -> SavedModel:
        if self._fitted is None:
            raise LearnerError("no model has been fitted yet", fix="call fitted first")
        place = self.folder / self._fitted[0]
        if not (place / "fit.json").is_file():  # removed from disk
            self._save(place, self.untrained(), self._fitted[1])
        return SavedModel(self.config.learner.name, self.options, self.tasks, files_of(place), self.trust)

    def named(self, name: str) -> Learner | None:
        learner, self._fitted = self.untrained(), None
        found = self._load(self.folder / name, learner)
        if found is None:
            return None
        self._fitted = name, found[0]
        return learner

    def known(self, annotated: Corpus, dev: Corpus | None) -> str | None:
        """The name of the model of these items, if it is on disk."""
        name = self._digest(annotated, dev)
        return name if (self.folder / name / "fit.json").is_file() else None

    def _digest(self, annotated: Corpus, dev: Corpus | None = None) -> str:
        about = {
            "learner": self.config.learner.decisive,
            "alone": self.config.strategy.make().alone,
            "seed": self.config.seed,
            "corpus": self.config.corpus.model_dump(),
            "labels": _labels_of(annotated),
        }
        if self.config.budget.dev_items and dev is not None:  # annotated in this campaign, so they may be corrected
            about["dev"] = _labels_of(dev)
        return _digest_of(about)

    def _load(self, place: Path, learner: Learner) -> tuple[float | None] | None:
        """Restore the learner from disk; ``None`` if the model is missing or damaged, so that it is trained again."""
        try:
            best = json.loads((place / "fit.json").read_text())["best"]
            restore(learner, place, self.trust)
        except UntrustedError:
            if self._handed_in:
                return None
            raise
        except Exception:  # learners may raise anything over a damaged file
            return None
        return (best,)

    def _save(self, place: Path, learner: Learner, best: float | None) -> None:
        """Write a model atomically, and remove the oldest."""
        draft = place.with_name(f".{place.name}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        learner.save(draft)
        (draft / "fit.json").write_text(json.dumps({"best": best}))
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
        oldest_first = sorted((p for p in self.folder.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime_ns)
        for old in oldest_first[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def files_of(folder: Path) -> dict[str, bytes]:
    """The contents of the files of a folder, by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A trained model to send to a worker: its files, and how to make its learner."""

    learner: str
    options: Mapping[str, Any]
    tasks: Mapping[str, Task]
    files: Mapping[str, bytes]
    trust: bool = False

    @cached_property
    def kind(self) -> str:
        """A digest of how the learner is made."""
        tasks = {name: task.describe() for name, task in self.tasks.items()}
        return _digest_of([self.learner, dict(self.options), tasks])

    @cached_property
    def digest(self) -> str:
        """A digest of the model; models with equal predictions have the same."""
        found = hashlib.blake2b(self.kind.encode(), digest_size=12)
        for name, content in sorted(self.files.items()):
            found.update(f"{name} {len(content)} ".encode() + content)
        return found.hexdigest()

    def load(self) -> Learner:
        """The learner; the latest one stays loaded in this process."""
        digest, learner = _LOADED.pop(self.kind, ("", None))
        _LOADED.clear()  # one at a time, as each may hold a whole encoder
        learner = learner or make_learner(self.learner, self.tasks, self.options)
        if digest == self.digest:
            _LOADED[self.kind] = digest, learner
            return learner
        with tempfile.TemporaryDirectory(prefix="bursar-model-") as folder:
            for name, content in self.files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            try:
                restore(learner, Path(folder), self.trust)
            except LearnerError as wrong:
                fix = "every node needs the same versions, and the encoder where that is a folder; "
                fix += 'nodes with other processors need learner.precision = "float32"'
                raise LearnerError(f"a worker cannot load the model: {wrong.message}", fix=fix) from wrong
        _LOADED[self.kind] = self.digest, learner
        return learner


_LOADED: dict[str, tuple[str, Learner]] = {}  # in this process: the kind, digest and learner of the latest model


def _digest_of(about: Any) -> str:
    return hashlib.blake2b(json.dumps(about, sort_keys=True, default=str).encode(), digest_size=12).hexdigest()


def _labels_of(items: Corpus) -> list[Any]:
    return sorted((items.ids[i], items[i].labels) for i in range(len(items)))
