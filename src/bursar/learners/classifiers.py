"""Hugging Face classifiers as learners: one for sequences or for tokens per task, fine-tuned on what is labelled."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bursar.corpus import Corpus
from bursar.errors import ConfigError, LearnerError
from bursar.learners.features import TaskwiseLearner, classes_of, restoring
from bursar.learners.function import texts_of
from bursar.learners.learner import FitOptions, FitReport, Progress, check_number, must_be_trained, no_progress, part_of
from bursar.ragged import FloatArray, IntArray
from bursar.tasks import AnyBeliefs, Beliefs, Task

ENDINGS = {"classification": "ForSequenceClassification", "tagging": "ForTokenClassification"}  # by kind of task
WARMUP = 0.1  # share of the steps
IGNORED = -100  # the target of word pieces that have none


class HuggingFaceLearner(TaskwiseLearner):
    """``AutoModelForSequenceClassification`` for classification, ``AutoModelForTokenClassification`` for tagging.

    ``model`` is a loaded model or a folder in Hugging Face's layout, or a dict of them by task; a folder serves tasks
    of both kinds. Every training starts from its weights. The head is kept if its labels are those of the task,
    otherwise it is new. Training takes ``epochs``, and at least ``least_steps`` updates.
    """

    name = "huggingface"

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        model: Any = None,
        tokenizer: Any = None,
        epochs: int = 4,
        least_steps: int = 60,
        batch_size: int = 16,
        learning_rate: float = 5e-5,
        max_length: int = 256,
    ) -> None:
        super().__init__(tasks)
        for name, value in (("epochs", epochs), ("batch_size", batch_size), ("max_length", max_length)):
            check_number(name, value, 1, 100_000, whole=True)
        check_number("least_steps", least_steps, 0, 10_000_000, whole=True)
        check_number("learning_rate", learning_rate, 0, 1)
        self.epochs, self.least_steps, self.batch_size = epochs, least_steps, batch_size
        self.learning_rate, self.max_length = learning_rate, max_length
        by_task = model if isinstance(model, Mapping) else dict.fromkeys(tasks, model)
        self.refuse_unless({name: task.kind in ENDINGS for name, task in tasks.items()})
        self.bases = {name: _loaded(task, by_task.get(name)) for name, task in tasks.items()}
        self.tokenizers = {name: _tokenizer(tokenizer, by_task[name], name) for name in tasks}
        self.models: dict[str, Any] = {}

    # -- training ----------------------------------------------------------------------------------------------------
    def train(self, annotated: Corpus, options: FitOptions) -> FitReport:
        self.models = {}
        models, steps = {}, 0
        for at, (name, task) in enumerate(self.tasks.items()):
            items = annotated.take(np.flatnonzero(annotated.labels[name].present))
            targets = np.asarray(task.targets(items.labels[name].rows, items.words), dtype=np.int64)
            progress = part_of(options.progress, at, len(self.tasks))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(options.seed % 2**63)
                models[name], own = self._trained(name, items, targets, progress)
            steps += own
        self.models = models
        return self.report(len(annotated), steps, options)

    def _trained(self, name: str, items: Corpus, targets: IntArray, progress: Progress) -> tuple[Any, int]:
        """A fine-tuned copy of a task's model, and the number of its updates."""
        model, order = self._fresh(name).train(), _code_order(self.bases[name], self.tasks[name])
        place = np.argsort(order)  # from the task's codes to the model's
        ends = np.cumsum(items.words) if self.tasks[name].of_words else np.arange(1, len(items) + 1)
        per_epoch = -(-len(items) // self.batch_size)
        total = max(self.epochs * per_epoch, self.least_steps)
        optimizer = torch.optim.AdamW(model.parameters(), lr=self.learning_rate)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, total))
        chosen: list[IntArray] = []
        for step in range(total):
            if not chosen:
                chosen = list(np.array_split(torch.randperm(len(items)).numpy(), per_epoch))
            batch = np.sort(chosen.pop())
            own = [place[targets[ends[at - 1] if at else 0 : ends[at]]] for at in batch.tolist()]
            inputs, words = self._inputs(name, items.take(batch))
            logits = model(**inputs).logits
            loss = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]), _targets(own, words).reshape(-1), ignore_index=IGNORED
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            progress("training", (step + 1) / total)
        return model.eval(), total

    def _fresh(self, name: str) -> Any:
        """A copy of a task's model with an output for each class; the head is new unless its labels fit."""
        base, task = self.bases[name], self.tasks[name]
        config = copy.deepcopy(base.config)
        config.num_labels = classes_of(task)
        made, body, keeps = type(base)(config), f"{base.base_model_prefix}.", _fits(base, task)
        kept = {key: value for key, value in base.state_dict().items() if keeps or key.startswith(body)}
        made.load_state_dict(kept, strict=False)
        return made

    # -- predictions ---------------------------------------------------------------------------------------------------
    def predict_proba(
        self, items: Corpus, *, passes: int = 1, seed: int = 0, progress: Progress = no_progress
    ) -> dict[str, AnyBeliefs]:
        must_be_trained(self.models)
        self.refuse_passes(passes)
        found: dict[str, AnyBeliefs] = {}
        for name, task in self.tasks.items():
            order = _code_order(self.bases[name], task)
            rows: list[NDArray[Any]] = [np.zeros((0, classes_of(task)))]
            for part, inputs, words in self._batches(name, items):
                shares = torch.softmax(self.models[name](**inputs).logits, dim=-1).numpy()[..., order]
                rows.append(shares if words is None else _of_words(shares, words, items.words[part]))
            found[name] = Beliefs.of(np.concatenate(rows).astype(np.float32), task.units(items.words))
        progress("scoring", 1.0)
        return found

    def vectors(self, items: Corpus, *, progress: Progress = no_progress) -> NDArray[np.float32]:
        """The mean of the last layer over an item's word pieces, under the model of the first task: (items, width)."""
        must_be_trained(self.models)
        name = next(iter(self.tasks))
        found = []
        for _, inputs, _ in self._batches(name, items):
            last = self.models[name].base_model(**inputs).last_hidden_state
            mask = inputs["attention_mask"][..., None].to(last.dtype)
            found.append(((last * mask).sum(dim=1) / mask.sum(dim=1)).numpy())
        progress("reading", 1.0)
        width = int(self.models[name].config.hidden_size)
        return np.concatenate([np.zeros((0, width), dtype=np.float32), *found])

    def _batches(
        self, name: str, items: Corpus
    ) -> Iterator[tuple[IntArray, dict[str, Any], list[list[int | None]] | None]]:
        with torch.inference_mode():
            for at in range(0, len(items), 4 * self.batch_size):
                part = np.arange(at, min(at + 4 * self.batch_size, len(items)))
                yield part, *self._inputs(name, items.take(part))

    def _inputs(self, name: str, items: Corpus) -> tuple[dict[str, Any], list[list[int | None]] | None]:
        """The tensors of a batch and, for tasks on words, the word of every piece."""
        settings = {"truncation": True, "max_length": self.max_length, "padding": True, "return_tensors": "pt"}
        texts, of_words = texts_of(items), self.tasks[name].of_words
        if not of_words:
            return dict(self.tokenizers[name](texts, **settings)), None
        assert items.texts is not None
        read = self.tokenizers[name](items.texts.all_words(), is_split_into_words=True, **settings)
        return dict(read), [read.word_ids(at) for at in range(len(items))]

    # -- saved models --------------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        from safetensors.torch import save_model

        must_be_trained(self.models)
        folder.mkdir(parents=True, exist_ok=True)
        for at, model in enumerate(self.models.values()):
            save_model(model, str(folder / f"{at}.safetensors"))
        (folder / "learner.json").write_text(json.dumps(self._about()))

    def restore(self, folder: Path) -> None:
        from safetensors.torch import load_model

        with restoring(folder):
            if json.loads((folder / "learner.json").read_text()) != self._about():
                raise LearnerError("it is a learner of other tasks")
            with torch.random.fork_rng(devices=[]):
                models = {name: self._fresh(name).eval() for name in self.tasks}
            for at, model in enumerate(models.values()):
                load_model(model, folder / f"{at}.safetensors")
            self.models = models

    def _about(self) -> dict[str, Any]:
        return {name: task.describe() for name, task in self.tasks.items()}


# -- models and their labels -------------------------------------------------------------------------------------------
def _loaded(task: Task, model: Any) -> Any:
    """The model of a task, from its folder if it is not loaded."""
    ending = ENDINGS[task.kind]
    if isinstance(model, str | Path):
        import transformers

        try:
            with _quietly():  # a head that is not in the folder is no surprise: it is made for the task
                return getattr(transformers, f"AutoModel{ending}").from_pretrained(str(model))
        except (OSError, ValueError) as wrong:
            raise LearnerError(f"{model} holds no model that can be loaded: {str(wrong).splitlines()[0]}") from None
    if model is None:
        raise ConfigError(
            f"learner.model: there is no model for task {task.name!r}",
            fix="give its folder, or in Python bursar.from_transformers(model, tokenizer)",
        )
    if not type(model).__name__.endswith(ending):
        raise LearnerError(
            f"task {task.name!r} is {task.kind}, and the model is a {type(model).__name__}",
            fix=f"load it with AutoModel{ending}, or name the tasks that it can train: tasks=[…]",
        )
    return model


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the loading reports and progress bars of transformers, and without drawing from torch's generator."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _tokenizer(tokenizer: Any, model: Any, task: str) -> Any:
    if isinstance(tokenizer, Mapping):
        tokenizer = tokenizer.get(task)
    if tokenizer is None and isinstance(model, str | Path):
        tokenizer = model
    if tokenizer is None:
        fix = "give it beside the model: from_transformers(model, tokenizer)"
        raise ConfigError("learner.tokenizer is missing", fix=fix)
    if not isinstance(tokenizer, str | Path):
        return tokenizer
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(str(tokenizer))
    except (OSError, ValueError) as wrong:
        raise LearnerError(f"{tokenizer} holds no tokenizer: {str(wrong).splitlines()[0]}") from None


def _fits(model: Any, task: Task) -> bool:
    """Whether the labels of a model's head are those of the task."""
    names = list((model.config.id2label or {}).values())
    return task.kind == "classification" and sorted(map(str, names)) == sorted(task.labels)


def _code_order(model: Any, task: Task) -> IntArray:
    """By the task's codes, the codes of the model: the same unless its head has the task's labels in another order."""
    if not _fits(model, task):
        return np.arange(classes_of(task))
    place = {str(label): int(code) for code, label in model.config.id2label.items()}
    return np.array([place[label] for label in task.labels])


# -- batches -----------------------------------------------------------------------------------------------------------
def _rate(step: int, total: int) -> float:
    """The learning rate of a step, relative to the highest: it rises, then falls to 0."""
    rising = max(1, round(WARMUP * total))
    return min((step + 1) / rising, (total - step) / max(1, total - rising))


def _targets(codes: list[IntArray], words: list[list[int | None]] | None) -> Any:
    """The targets of a batch: of its items, or of the first piece of every word."""
    if words is None:
        return torch.from_numpy(np.concatenate(codes))
    found = np.full((len(words), max(map(len, words))), IGNORED, dtype=np.int64)
    for row, own, pieces in zip(found, codes, words, strict=True):
        for at in _first_pieces(pieces):
            row[at] = own[pieces[at]]
    return torch.from_numpy(found)


def _first_pieces(pieces: list[int | None]) -> list[int]:
    """The position of each word's first piece."""
    return [at for at, word in enumerate(pieces) if word is not None and (at == 0 or pieces[at - 1] != word)]


def _of_words(shares: FloatArray, words: list[list[int | None]], counts: IntArray) -> FloatArray:
    """The probabilities of every word, by its first piece; a word that was cut off has all alike."""
    rows = []
    for row, pieces, count in zip(shares, words, counts.tolist(), strict=True):
        own = np.full((count, shares.shape[-1]), 1 / shares.shape[-1])
        for at in _first_pieces(pieces):
            own[pieces[at]] = row[at]
        rows.append(own)
    return np.concatenate(rows)


def from_transformers(model: Any, tokenizer: Any = None, **training: Any) -> dict[str, Any]:
    """A Hugging Face classifier as ``learner=``: a loaded model with its tokenizer, or a folder that holds both.

    Models for sequences learn classification, models for tokens tagging; a folder serves both, and several tasks may
    have a model each, by name. ``training`` may set ``epochs``, ``least_steps``, ``batch_size``, ``learning_rate`` and
    ``max_length``. A folder makes a durable learner; loaded models are for learners in memory.

    >>> from_transformers("models/deberta", epochs=3)
    {'name': 'huggingface', 'model': 'models/deberta', 'epochs': 3}
    """
    given = {"model": model} | ({} if tokenizer is None else {"tokenizer": tokenizer})
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
    return {"name": HuggingFaceLearner.name, **plain, **training}
