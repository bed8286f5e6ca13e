"""The card of an exported model: what it does, how well, and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bursar.predictions.acceptance import ladder
from bursar.tasks import Task

if TYPE_CHECKING:
    from bursar.predictions.saved import ModelDescription

MOST_LABELS = 20  # that are listed of a task


def model_card(about: ModelDescription, tasks: Mapping[str, Task], layout: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    lines = [
        *("---", "library_name: bursar", "tags: [multi-task, active-learning]", "---", ""),
        f"# {about.name}",
        "",
        f"A model of {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}, trained on {about.items:,} items with "
        f"Bursar's learner `{about.learner}`.",
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
    for name, known in about.held_out.items():
        steps = [step for step in ladder(name, known.sure, known) if step.above]
        lines += [
            f"| {_cell(name)} | {step.threshold:g} | {100 * step.share:.0f} % | "
            f"{step.error_words.removesuffix(' errors')}: {step.wrong} of {step.above} {step.source} |"
            for step in steps
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
        names = [f'AutoModel.from_pretrained("FOLDER/encoder-{n}")  # {", ".join(g)}' for n, g in enumerate(models)]
        lines += names
    return [
        *(*lines, "```", ""),
        "`heads.safetensors` has the weights of the heads, and `bursar.json` their tasks and settings.",
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
