"""The API for labelled data: every item with its labels, how sure the model is, and who gave each label."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from bursar.corpus import FORMATS
from bursar.corpus.formats.write_checks import LOSSES
from bursar.errors import ConfigError
from bursar.web.api import ERROR_RESPONSES, AppStateDep, LeadDep, RequestBody
from bursar.web.api_files import BINARY
from bursar.web.labelling import Labelling, LabellingOptions

router = APIRouter(prefix="/api", tags=["files"], responses=ERROR_RESPONSES)
Job = Annotated[str, Path(max_length=100)]
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


class NewestPredictions(BaseModel):
    """The latest request for labelled data, if any."""

    predictions: Labelling | None = None


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
def newest_predictions(app_state: AppStateDep, me: LeadDep) -> NewestPredictions:
    """Its progress, or its file and the errors to expect."""
    return NewestPredictions(predictions=app_state.labelled_data.newest)


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
