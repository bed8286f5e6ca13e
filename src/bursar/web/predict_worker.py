"""Worker process that labels every item of a project and writes the file to download.

``python -m bursar.web.predict_worker PROJECT FOLDER REQUEST`` writes one file into the folder, and prints its progress
and then what it wrote to standard output, one JSON object per line. The request is JSON: ``format``, ``thresholds``,
``tasks``, ``lose`` and the ``name`` of the file. It changes nothing in the project and may be killed at any time.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bursar.annotation.labelled import predict_project
from bursar.annotation.subprocess_events import SendEvent, run_worker, stages_sent
from bursar.predictions import Predictions

# Formats of the page that are tables with the columns of the source: see ``Predictions.write``.
TABLES = {"xlsx": ".xlsx", "csv": ".csv", "tsv": ".tsv", "parquet": ".parquet", "json": ".json", "json-lines": ".jsonl"}


def label_project(project: Path, folder: Path, request: Mapping[str, Any], send: SendEvent, trust: bool) -> None:
    """Write the file that was asked for, and say what is in it."""
    progress = stages_sent(send)
    found, model = predict_project(project, request["thresholds"], trust=trust, progress=progress)
    if request["tasks"]:
        found = found.with_tasks(request["tasks"])
    thresholds = {name: value for name, value in request["thresholds"].items() if name in found.tasks}
    progress("writing", 0.0)
    path = write_one_file(found.above(thresholds), folder, request)
    about = {
        "file": path.name,
        "items": len(found),
        "model": str(model),
        "by": found.above(thresholds).counts(),
        "accepted": [about.to_json() for about in found.accepted(thresholds)],
        "thresholds": {name: [step.to_json() for step in found.ladder(name)] for name in found.tasks},
    }
    send({"event": "predictions", "found": about})


def write_one_file(found: Predictions, folder: Path, request: Mapping[str, Any]) -> Path:
    """Write predictions to one file, or to a ZIP if the format writes several."""
    format, name = str(request["format"]), str(request["name"])
    if format in TABLES:
        path = folder / f"{name}{TABLES[format]}"
        found.write(path)
        return path
    path = folder / name
    found.write(path, format, **({"lose": request["lose"]} if request["lose"] else {}))
    if path.is_file():
        return path.rename(folder / f"{name}.{format}")
    return zip_files(path, folder / f"{name}.{format}.zip")


def zip_files(folder: Path, packed: Path) -> Path:
    """Pack all files of a folder."""
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            archive.write(file, file.relative_to(folder))
    return packed


def main(arguments: list[str]) -> int:
    """Run as a worker process; returns the exit code."""
    reader = argparse.ArgumentParser(prog="python -m bursar.web.predict_worker")
    reader.add_argument("project", type=Path)
    reader.add_argument("folder", type=Path)
    reader.add_argument("request", type=json.loads)
    reader.add_argument("--trust", action="store_true")
    given = reader.parse_args(arguments)
    return run_worker(
        lambda send: label_project(given.project, given.folder, given.request, send, given.trust), niceness=10
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
