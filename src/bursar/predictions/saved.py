"""Models in folders, to be used elsewhere: ``export_model`` writes one, ``load_model`` reads it and predicts.

A transformer is written in Hugging Face's layout, with its heads beside it. Other learners are written as they save
themselves. ``bursar.json`` describes the model, and ``README.md`` is its model card. Loading runs no code from the
folder, unless you ``trust`` one that asks for it.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bursar.corpus import Corpus, CorpusBuilder, read
from bursar.corpus.formats.format import new_folder, numbered_id
from bursar.errors import ConfigError, LearnerError, UntrustedError
from bursar.learners import Learner, make_learner
from bursar.learners.learner import Progress, no_progress, restore
from bursar.predictions.acceptance import HeldOut, ladder
from bursar.predictions.predictions import Predictions
from bursar.tasks import Task, make_task

DESCRIPTION, CARD, OWN = "bursar.json", "README.md", "learner"
VERSION = 1
HUGGINGFACE = "huggingface"
MOST_LABELS = 20  # that the card lists of a task


@dataclass(frozen=True)
class ModelDescription:
    """What is known of a trained model."""

    name: str
    learner: str  # its name in the registry
    options: Mapping[str, Any] = field(default_factory=dict)
    items: int = 0  # it was trained on
    labels: Mapping[str, int] = field(default_factory=dict)  # it was trained on, by task
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # on test items, by task
    held_out: Mapping[str, HeldOut] = field(default_factory=dict)  # what errors are counted on, by task

    def to_json(self) -> dict[str, Any]:
        known = {
            name: {"sure": np.round(about.sure, 4).tolist(), "right": about.right.tolist(), "source": about.source}
            for name, about in self.held_out.items()
        }
        return asdict(replace(self, held_out={})) | {"held_out": known}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ModelDescription:
        known = {
            str(name): HeldOut(np.array(about["sure"], float), np.array(about["right"], bool), str(about["source"]))
            for name, about in found["held_out"].items()
        }
        return cls(**{**found, "held_out": known})


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model. ``predict`` labels texts or a corpus."""

    learner: Learner
    about: ModelDescription

    @property
    def tasks(self) -> Mapping[str, Task]:
        return self.learner.tasks

    def predict(self, items: Corpus | Iterable[str] | Any, *, progress: Progress = no_progress) -> Predictions:
        """The model's labels of texts, of a data frame or of a corpus, whose own labels are not used."""
        corpus = replace(_as_corpus(items), schema={}, labels={})
        return Predictions.of(self.learner, corpus, held_out=self.about.held_out, progress=progress)


def _as_corpus(items: Any) -> Corpus:
    if isinstance(items, Corpus):
        return items
    if isinstance(items, str):
        raise ConfigError("one text is not a list of texts", fix="give a list: predict([text])")
    if hasattr(items, "iloc"):
        return read(items)
    builder = CorpusBuilder()
    for number, text in enumerate(items, start=1):
        if not isinstance(text, str):
            raise ConfigError(f"text {number} is {text!r}", fix="give strings, a data frame or a corpus")
        builder.add(numbered_id("text", number), text=text)
    return builder.build()


def export_model(learner: Learner, folder: Path, about: ModelDescription) -> list[str]:
    """Write a trained model with its card to a new folder, which appears when it is complete; returns its files."""
    with new_folder(folder) as draft:
        description = _write_learner(learner, draft)
        if description["layout"] == HUGGINGFACE:
            about = replace(about, options={})  # its settings are in the description
        description |= {"tasks": {name: task.describe() for name, task in learner.tasks.items()}}
        versions = {name: version(name) for name in ("bursar", "numpy", "scikit-learn", "torch", "transformers")}
        found = {"bursar_model": VERSION} | description | {"about": about.to_json(), "versions": versions}
        try:
            text = json.dumps(found, indent=1, ensure_ascii=False)
        except TypeError as wrong:
            raise LearnerError(f"the options of the learner cannot be written as JSON: {wrong}") from None
        (draft / DESCRIPTION).write_text(text, encoding="utf-8")
        (draft / CARD).write_text(model_card(about, learner.tasks, description), encoding="utf-8")
        for file in draft.rglob("*.safetensors"):  # written for the owner only
            shutil.copymode(draft / CARD, file)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _write_learner(learner: Learner, folder: Path) -> dict[str, Any]:
    neural = sys.modules.get("bursar.learners.neural")  # not imported: it takes torch, which others do not need
    if neural is not None and isinstance(learner, neural.NeuralLearner):
        from bursar.predictions import huggingface

        if isinstance(learner.encoder, huggingface.ENCODERS):
            return {"layout": HUGGINGFACE, "model": huggingface.write_neural(learner, folder)}
    learner.save(folder / OWN)
    return {"layout": OWN}


def load_model(folder: str | Path, *, trust: bool = False) -> TrainedModel:
    """Load a model that ``bursar export-model`` wrote.

    ``trust`` allows models that could run code, such as custom estimators: use it only if you trust their author.

    >>> import tempfile
    >>> from bursar.simulation import assistant_corpus
    >>> corpus = assistant_corpus(60, seed=1).with_tasks(["intent"])
    >>> learner = make_learner("scikit", corpus.schema)
    >>> _ = learner.fit(corpus)
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> _ = export_model(learner, folder, ModelDescription("requests", "scikit"))
    >>> len(load_model(folder).predict(["wake me at seven", "play some jazz"]))
    2
    """
    folder = Path(folder)
    try:
        found = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LearnerError(
            f"{folder} holds no exported model: there is no {DESCRIPTION}",
            fix="write one: bursar export-model PROJECT FOLDER",
        ) from None
    except (OSError, ValueError) as wrong:
        raise LearnerError(f"{folder / DESCRIPTION} cannot be read: {wrong}") from None
    if not isinstance(found, dict) or found.get("bursar_model") != VERSION:
        raise LearnerError(f"{folder} is a model of another version", fix=f"this Bursar reads version {VERSION}")
    try:
        about = ModelDescription.from_json(found["about"])
        tasks = {name: make_task(name, task) for name, task in found["tasks"].items()}
        if found["layout"] == HUGGINGFACE:
            from bursar.predictions import huggingface

            return TrainedModel(huggingface.read_neural(tasks, found["model"], folder), about)
        learner = make_learner(about.learner, tasks, about.options)
        restore(learner, folder / OWN, trust)
    except UntrustedError:
        raise
    except Exception as wrong:  # a damaged file can raise anything
        raise LearnerError(f"{folder} holds no model that can be loaded: {wrong}") from None
    return TrainedModel(learner, about)


# -- the model card ----------------------------------------------------------------------------------------------------
def model_card(about: ModelDescription, tasks: Mapping[str, Task], layout: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    trained = f"trained on {about.items:,} items with Bursar's learner `{about.learner}`"
    lines = [
        *("---", "library_name: bursar", "tags: [multi-task, active-learning]", "---", "", f"# {about.name}", ""),
        f"A model of {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}, {trained}.",
        "",
        *_task_table(about, tasks),
        *_scores(about, tasks),
        *_errors(about),
        *_how_to_load(layout),
    ]
    return "\n".join(lines) + "\n"


def _task_table(about: ModelDescription, tasks: Mapping[str, Task]) -> list[str]:
    lines = ["| task | kind | labels | trained on |", "|---|---|---|---|"]
    for name, task in tasks.items():
        shown = [f"`{label}`" for label in task.labels[:MOST_LABELS]]
        if len(task.labels) > MOST_LABELS:
            shown.append(f"… ({len(task.labels)} in all)")
        known = f"{about.labels[name]:,} labels" if name in about.labels else ""
        lines.append(f"| {_cell(name)} | {task.kind} | {_cell(', '.join(shown))} | {known} |")
    return [*lines, ""]


def _scores(about: ModelDescription, tasks: Mapping[str, Task]) -> list[str]:
    if not about.scores:
        return ["There are no scores: the project had no test items.", ""]
    lines = ["## Scores on test items", "", "| task | score | value |", "|---|---|---|"]
    for name in tasks:
        lines += [f"| {_cell(name)} | {metric} | {value:.3f} |" for metric, value in about.scores.get(name, {}).items()]
    return [*lines, ""]


def _errors(about: ModelDescription) -> list[str]:
    if not about.held_out:
        return []
    lines = [
        *("## Errors to expect", ""),
        "Labels with a confidence at or above the threshold, counted on items that the model was not trained on. A "
        "label is wrong if any part of it is; a number, if it is more than a tenth of its range away. Intervals are "
        "95 %.",
        *("", "| task | threshold | items above it | errors |", "|---|---|---|---|"),
    ]
    lines += [
        f"| {_cell(name)} | {step.threshold:g} | {100 * step.share:.0f} % | "
        f"{step.error_words.removesuffix(' errors')}: {step.wrong} of {step.above} {step.source} |"
        for name, known in about.held_out.items()
        for step in ladder(name, known.sure, known)
        if step.above
    ]
    return [*lines, ""]


def _how_to_load(layout: Mapping[str, Any]) -> list[str]:
    lines = [
        *("## How to load it", "", "```python", "import bursar", ""),
        'model = bursar.load_model("FOLDER")',
        'model.predict(["a text", "another one"]).to_frame()',
        *("```", ""),
    ]
    if layout["layout"] != "huggingface":
        return lines
    models = layout["model"]["models"]
    lines += ["The encoder is in Hugging Face's layout:", "", "```python", "from transformers import AutoModel", ""]
    if len(models) == 1:
        lines.append('encoder = AutoModel.from_pretrained("FOLDER")')
    else:
        lines += [f'AutoModel.from_pretrained("FOLDER/encoder-{n}")  # {", ".join(g)}' for n, g in enumerate(models)]
    return [
        *(*lines, "```", ""),
        "`heads.safetensors` has the weights of the heads, and `bursar.json` their tasks and settings.",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
