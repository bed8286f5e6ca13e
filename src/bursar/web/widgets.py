"""The widgets of the annotation page: a JavaScript file per task kind, found by its name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from bursar.tasks import Task

STATIC = Path(__file__).parent / "static"
FALLBACK = "other"  # labels are typed as JSON


def widget_path(task: Task) -> str:
    """The path of the widget on the server: ours, one beside the Python file of the kind, or the fallback."""
    if _beside(task).is_file():
        return f"/static/widgets/{task.widget}.js"
    known = (STATIC / "annotate" / f"{task.widget}.js").is_file()
    return f"/static/annotate/{task.widget if known else FALLBACK}.js"


def widget_file(name: str, tasks: Mapping[str, Task]) -> Path | None:
    """The file of a widget that came with the Python file of a kind."""
    files = [_beside(task) for task in tasks.values() if task.widget == name]
    return next((file for file in files if file.is_file()), None)


def _beside(task: Task) -> Path:
    module = sys.modules[type(task).__module__]
    return Path(str(module.__file__)).with_name(f"{task.widget}.js")
