"""The API for files: export annotations, import answers, and label every item."""

from __future__ import annotations

import re
import tempfile
import zipfile
from inspect import signature
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask

from bursar.corpus import FORMATS, Corpus, read
from bursar.corpus.formats.write_checks import LOSSES, UnknownTaskError, suggest_task_names
from bursar.errors import BursarError, ConfigError, DataError
from bursar.ledger import Answer
from bursar.predictions.predictions import write_corpus
from bursar.web.accounts import Caller
from bursar.web.api import ERROR_RESPONSES, AppStateDep, LeadDep, RequestBody, to_http_error
from bursar.web.app_state import AppState
from bursar.web.http_errors import HTTPError
from bursar.web.jobs import Labelling, LabellingOptions
from bursar.web.predict_worker import zip_files
from bursar.web.security import MAX_IMPORT_BYTES

router = APIRouter(prefix="/api", tags=["files"], responses=ERROR_RESPONSES)
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.get("/formats", summary="File formats")
def formats(app_state: AppStateDep, me: LeadDep) -> dict[str, str]:
    """All formats by name, each with a one-line summary."""
    return {name: FORMATS[name].summary for name in FORMATS}


@router.get(
    "/export",
    summary="Export annotations",
    response_class=FileResponse,
    responses={200: {"description": "A file, or a ZIP of several files.", "content": BINARY}},
)
def export(
    app_state: AppStateDep,
    me: LeadDep,
    format: Annotated[str, Query(max_length=50, description="One of GET /api/formats.")] = "jsonl",
    lose: Annotated[
        list[str] | None, Query(max_length=4, description=f"What the export may drop: {', '.join(LOSSES)}.")
    ] = None,
    tasks: Annotated[list[str] | None, Query(max_length=100, description="Only these tasks.")] = None,
) -> FileResponse:
    """The current labels in any format. Refused if the format cannot hold everything, unless `lose` lists the loss.

    Where a format has fixed task names, each is filled with the one task that fits it.
    """
    corpus = app_state.session.ledger.view()
    if tasks:
        corpus = corpus.with_tasks(list(dict.fromkeys(tasks)))
    if not len(corpus):
        raise HTTPError(409, "nothing_there", "nothing has been annotated yet", fix="annotate an item first")
    folder = tempfile.TemporaryDirectory(prefix="bursar-export-")
    try:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", app_state.session.config.name).strip("-") or "annotations"
        path = _export_file(corpus, format, lose or [], Path(folder.name), stem)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path, media_type="application/octet-stream", filename=path.name, background=BackgroundTask(folder.cleanup)
    )


def _export_file(corpus: Corpus, format: str, lose: list[str], folder: Path, stem: str) -> Path:
    """Write a corpus to one file, or to a ZIP if the format writes several."""
    target = folder / "files" / f"{stem}.{format}"
    target.parent.mkdir()
    may_lose = "lose" in signature(FORMATS[format].write).parameters  # other formats never drop anything
    try:
        write_corpus(corpus, target, format, {"lose": lose} if lose and may_lose else {})
    except UnknownTaskError as error:
        raise HTTPError(400, "bad_data", error.message, fix="export fewer tasks, with `tasks`") from None
    except DataError as error:  # its item is in the message, and is not a missing item
        raise HTTPError(400, "bad_data", error.message, fix=error.fix) from None
    whole = [path for path in target.parent.rglob("*") if path.is_file()] == [target]
    return target if whole else zip_files(target.parent, folder / f"{stem}.{format}.zip")


# -- import ----------------------------------------------------------------------------------------------------------
class Imported(BaseModel):
    """The result of an import."""

    answered: int
    repeated: int
    not_asked: int = Field(description="Items that are not open.")
    incomplete: int = Field(description="Items that lack a label for a requested task.")
    cost: str
    cost_units: int


@router.post("/import", summary="Import answers", openapi_extra={"requestBody": {"required": True, "content": BINARY}})
async def import_answers(
    request: Request,
    app_state: AppStateDep,
    me: LeadDep,
    name: Annotated[str, Query(min_length=1, max_length=100, pattern=NAME, description="The file's name.")],
    format: Annotated[str | None, Query(max_length=50, description="Detected if not given.")] = None,
    annotator: Annotated[
        str | None, Query(min_length=1, max_length=64, description="Who made the answers; default: you.")
    ] = None,
) -> Imported:
    """Record the labels of a file as answers to the items of the open round.

    The whole file is checked before anything is recorded. Send formats of several files as a ZIP. Where a format has
    fixed task names, such as doccano's `label` and `entities`, each is matched with the one task that fits.
    """
    with tempfile.TemporaryDirectory(prefix="bursar-import-") as folder:
        path = Path(folder) / name
        with open(path, "wb") as file:
            async for block in request.stream():
                file.write(block)
        return await run_in_threadpool(_import_file, app_state, me, path, format, annotator)


def _import_file(app_state: AppState, me: Caller, path: Path, format: str | None, annotator: str | None) -> Imported:
    try:
        corpus = read(_unzipped(path), format)
    except BursarError as error:
        message = to_http_error(error).message.replace(f"{path.parent}/", "")
        raise HTTPError(400, "bad_file", message, fix=error.fix) from None
    corpus = corpus.with_renamed_tasks(suggest_task_names(corpus.schema, app_state.session.corpus.schema))
    found = _import_corpus(app_state, corpus, annotator or me.name)
    app_state.changed()
    return found


def _import_corpus(app_state: AppState, corpus: Corpus, annotator: str) -> Imported:
    """Record the labels of a corpus as answers to open items. Everything is checked first."""
    session, ours = app_state.session, app_state.session.corpus
    wanted = {want.id: want for want in session.wanted()}
    answers, not_asked, incomplete = [], 0, 0
    for item in (corpus[at] for at in range(len(corpus))):
        want = wanted.get(item.id)
        if want is None:
            not_asked += 1
        elif not set(want.tasks) <= set(item.labels):
            incomplete += 1
        else:
            mine = ours[int(ours.positions([item.id])[0])]
            if (item.text, item.pair) != (mine.text, mine.pair):
                raise HTTPError(400, "other_item", f"item {item.id!r} has a different text in this file")
            answers.append(Answer(item.id, {task: item.labels[task] for task in want.tasks}, annotator))
    session.recorder.check(answers)
    receipts = [app_state.assignments.answer(answer) for answer in answers]
    repeated, cost = sum(receipt.repeated for receipt in receipts), sum(receipt.cost for receipt in receipts)
    counts = {"answered": len(receipts) - repeated, "repeated": repeated}
    shown = session.settings.costs.show(cost)
    return Imported(**counts, not_asked=not_asked, incomplete=incomplete, cost=shown, cost_units=cost)


def _unzipped(path: Path) -> Path:
    """The file itself, or the folder extracted from a ZIP; refuses archives that are too large."""
    if path.suffix.lower() != ".zip":
        return path
    target = path.parent / "unpacked"
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > 1000 or sum(entry.file_size for entry in entries) > 4 * MAX_IMPORT_BYTES:
                raise HTTPError(413, "too_large", "the ZIP file is too large", fix="send fewer files at a time")
            for entry in entries:
                archive.extract(entry, target)  # never extracts outside the folder
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise HTTPError(400, "bad_file", f"{path.name} cannot be read as a ZIP file: {error}") from None
    inside = list(target.iterdir()) if target.is_dir() else []
    return inside[0] if len(inside) == 1 else target


# -- labelled data -----------------------------------------------------------------------------------------------------
Job = Annotated[str, PathParameter(max_length=100)]
Threshold = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PredictionsRequest(RequestBody):
    """Ask for a file with every item and its labels."""

    format: str = Field(
        default="xlsx",
        max_length=50,
        description="xlsx, csv, tsv, parquet, json or json-lines: a table with the columns of your data. Or another "
        "one of GET /api/formats.",
    )
    thresholds: dict[str, Threshold] = Field(
        default={},
        max_length=100,
        description="By task: the model's labels below this confidence, 0 to 1, are left out.",
    )
    tasks: list[str] = Field(default=[], max_length=100, description="Only these tasks; default: all.")
    lose: list[str] = Field(default=[], max_length=4, description=f"What the format may drop: {', '.join(LOSSES)}.")


@router.post("/predictions", status_code=202, summary="Label every item")
def ask_predictions(app_state: AppStateDep, me: LeadDep, sent: PredictionsRequest) -> Labelling:
    """Start writing a file of all items: labels by people, then those that came with the data, then the newest model's.

    Progress comes as `predictions` events. One request runs at a time.
    """
    known = app_state.session.corpus.schema
    for task in [*sent.tasks, *sent.thresholds]:
        if task not in known:
            raise ConfigError(f"there is no task {task!r}", fix=f"the tasks are {', '.join(known)}")
    for loss in sent.lose:
        if loss not in LOSSES:
            raise ConfigError(f"there is no loss {loss!r}", fix=f"lose = some of {', '.join(LOSSES)}")
    return app_state.labelled_data.start(LabellingOptions(**sent.model_dump() | {"format": FORMATS[sent.format].name}))


@router.get("/predictions", summary="The latest labelled data")
def newest_predictions(app_state: AppStateDep, me: LeadDep) -> dict[str, Labelling | None]:
    """Its progress, or its file and the errors to expect."""
    return {"predictions": app_state.labelled_data.newest}


@router.get("/predictions/{job}", summary="One request for labelled data")
def predictions(app_state: AppStateDep, me: LeadDep, job: Job) -> Labelling:
    """Its progress, or its file and the errors to expect."""
    return app_state.labelled_data.get(job)


@router.get(
    "/predictions/{job}/file",
    summary="Download labelled data",
    response_class=FileResponse,
    responses={200: {"description": "A file, or a ZIP of several files.", "content": BINARY}},
)
def predictions_file(app_state: AppStateDep, me: LeadDep, job: Job) -> FileResponse:
    """The file of a finished request. The files of the latest requests are kept until the server stops."""
    path = app_state.labelled_data.file(job)
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
