"""The API for files: what was annotated, in every format; and answers that were made elsewhere."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from bursar.corpus import FORMATS, Corpus, read, write
from bursar.corpus.formats.limits import LOSSES, NoPlaceError, names_that_fit
from bursar.errors import BursarError, DataError
from bursar.web.accounts import Caller
from bursar.web.api import ERROR_RESPONSES, AppStateDep, LeadDep, to_http_error
from bursar.web.api_models import Imported
from bursar.web.app_state import AppState
from bursar.web.http_errors import HTTPError
from bursar.web.security import MOST_IMPORTED

router = APIRouter(prefix="/api", tags=["files"], responses=ERROR_RESPONSES)
BLOCK = 1 << 16
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.get("/formats", summary="File formats")
def formats(app_state: AppStateDep, me: LeadDep) -> dict[str, str]:
    """Every format by name, and what it is."""
    return {name: FORMATS[name].summary for name in FORMATS}


@router.get(
    "/export",
    summary="Everything that was annotated",
    response_class=StreamingResponse,
    responses={200: {"description": "A file, or a ZIP file of several.", "content": BINARY}},
)
def export(
    app_state: AppStateDep,
    me: LeadDep,
    format: Annotated[str, Query(max_length=50, description="One of GET /api/formats.")] = "jsonl",
    lose: Annotated[
        list[str] | None, Query(max_length=4, description=f"What may be lost: {', '.join(LOSSES)}.")
    ] = None,
    tasks: Annotated[list[str] | None, Query(max_length=100, description="Only these tasks.")] = None,
) -> StreamingResponse:
    """The labels that stand, in any format. What the format cannot say is refused, unless it is named in `lose`.

    Where a format has names of its own for tasks, the one task that each can only mean goes under it.
    """
    corpus = app_state.session.view()
    if tasks:
        corpus = corpus.with_tasks(list(dict.fromkeys(tasks)))
    if not len(corpus):
        raise HTTPError(409, "nothing_there", "nothing has been annotated yet")
    folder = tempfile.TemporaryDirectory(prefix="bursar-export-")
    try:
        path = _written(corpus, format, lose or [], Path(folder.name), _stem(app_state))
    except BaseException:
        folder.cleanup()
        raise
    headers = {"content-disposition": f'attachment; filename="{path.name}"', "content-length": str(path.stat().st_size)}
    return StreamingResponse(_blocks(path, folder), media_type="application/octet-stream", headers=headers)


def _written(corpus: Corpus, format: str, lose: list[str], folder: Path, stem: str) -> Path:
    """A corpus in one file: what the format writes, or a ZIP file of all that it writes."""
    target = folder / "files" / f"{stem}.{format}"
    target.parent.mkdir()
    try:
        _write(corpus, target, format, lose)
    except NoPlaceError as error:  # the format has names of its own for tasks; what can only be meant is taken for it
        names = names_that_fit(corpus.schema, error.places)
        if not names:
            raise HTTPError(400, "bad_data", error.message, fix="leave tasks out, with `tasks`") from None
        _write(corpus.with_renamed_tasks(names), target, format, lose)
    written = sorted(path for path in target.parent.rglob("*") if path.is_file())
    if written == [target]:
        return target
    packed = folder / f"{stem}.{format}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in written:
            archive.write(path, path.relative_to(target.parent))
    return packed


def _write(corpus: Corpus, target: Path, format: str, lose: list[str]) -> None:
    may_lose = "lose" in signature(FORMATS[format].write).parameters  # others lose nothing
    try:
        write(corpus, target, format, **({"lose": lose} if lose and may_lose else {}))
    except NoPlaceError:
        raise
    except DataError as error:  # which names the item, and not that there is no such one
        raise HTTPError(400, "bad_data", error.message, fix=error.fix) from None


def _stem(app_state: AppState) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", app_state.session.config.name).strip("-") or "annotations"


def _blocks(path: Path, folder: tempfile.TemporaryDirectory[str]) -> Iterator[bytes]:
    with folder, open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block


# -- the other way ---------------------------------------------------------------------------------------------------
@router.post(
    "/import",
    summary="Answers that were made elsewhere",
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
)
async def import_answers(
    request: Request,
    app_state: AppStateDep,
    me: LeadDep,
    name: Annotated[str, Query(min_length=1, max_length=100, pattern=NAME, description="The file's name.")],
    format: Annotated[str | None, Query(max_length=50, description="Guessed if it is not given.")] = None,
    annotator: Annotated[str | None, Query(min_length=1, max_length=64, description="Who made them; you.")] = None,
) -> Imported:
    """A file with labels of items that are asked about now: each is an answer, as if it had been made here.

    The file is read and every label checked before the first is recorded. A format of several files comes as ZIP. Where
    a file has another name for a task, as doccano's `label` and `entities`, the one task that can be meant is meant.
    """
    with tempfile.TemporaryDirectory(prefix="bursar-import-") as folder:
        path = Path(folder) / name
        with open(path, "wb") as file:
            async for block in request.stream():
                file.write(block)
        return await run_in_threadpool(_imported, app_state, me, path, format, annotator)


def _imported(app_state: AppState, me: Caller, path: Path, format: str | None, annotator: str | None) -> Imported:
    try:
        corpus = read(_unpacked(path), format)
    except BursarError as error:
        message = to_http_error(error).message.replace(f"{path.parent}/", "")
        raise HTTPError(400, "bad_file", message, fix=error.fix) from None
    corpus = corpus.with_renamed_tasks(names_that_fit(corpus.schema, app_state.session.corpus.schema))
    found = app_state.assignments.import_corpus(corpus, annotator or me.name)
    app_state.changed()
    return Imported(**vars(found) | {"cost": app_state.session.costs.show(found.cost_units)})


def _unpacked(path: Path) -> Path:
    """The file, or the folder that a ZIP file holds; what would be too large or lie elsewhere is refused."""
    if path.suffix.lower() != ".zip":
        return path
    target = path.parent / "unpacked"
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > 1000 or sum(entry.file_size for entry in entries) > 4 * MOST_IMPORTED:
                raise HTTPError(413, "too_large", "the ZIP file holds too much", fix="send fewer files")
            for entry in entries:
                archive.extract(entry, target)  # which keeps within the folder
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise HTTPError(400, "bad_file", f"{path.name} is no ZIP file that can be read: {error}") from None
    inside = list(target.iterdir()) if target.is_dir() else []
    return inside[0] if len(inside) == 1 else target
