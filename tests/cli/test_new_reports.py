"""``bursar new … --yes`` and then the report, from the command line and the page, for every learner and pricing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from bursar.annotation.round_worker import next_round
from bursar.annotation.session import AnnotationSession
from bursar.learners import LEARNERS
from bursar.ledger import Answer
from bursar.web.app_state import AppState
from bursar.web.server import make_app

TASKS = "intent:classification:alarm,music; slots:tagging:time,artist"
HOURLY = ("--hourly", 30, "--currency", "$")
PRICES = ("--price", "reading.per_word=0.001", "--price", "{task}.per_item=0.02")
PRICINGS = {"by default": (), "by the hour": HOURLY, "by prices": PRICES, "by both": (*HOURLY, *PRICES)}


def texts(path: Path) -> Path:
    lines = [{"id": f"u{number}", "text": f"wake me at {number} please", "split": "train"} for number in range(60)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def images(path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 255, (60, 8, 8), dtype=np.uint8)
    np.savez(path, images=pixels, pose=np.full(60, -1), pose_names=np.array(["left", "right"]))
    return path


def made(bursar, folder: Path, learner: str, pricing: str) -> Path:
    """A new project beside its data."""
    of_images = learner == "image-cnn"
    data = images(folder / "images.npz") if of_images else texts(folder / "data.jsonl")
    priced = [str(part).format(task="pose" if of_images else "intent") for part in PRICINGS[pricing]]
    tasks = () if of_images else ("--tasks", TASKS)
    code, _, err = bursar(
        "new", "project", "--from", data, *tasks, "--budget", 0.8, "--learner", learner, *priced, "--yes"
    )
    assert code == 0, err
    return folder / "project"


def page_of(project: Path) -> str:
    """The report as the server shows it."""
    with TestClient(make_app(AppState(project)), base_url="http://127.0.0.1:8000") as browser:
        reply = browser.get("/report")
    assert reply.status_code == 200, reply.text
    return reply.text


# every learner with the default prices, and every price list with a learner of texts and one of images
@pytest.mark.parametrize(
    ("learner", "pricing"),
    [(learner, "by default") for learner in LEARNERS]
    + [(learner, pricing) for learner in ("scikit", "image-cnn") for pricing in PRICINGS if pricing != "by default"],
)
def test_a_new_project_has_a_report(bursar, tmp_path, learner, pricing):
    project = made(bursar, tmp_path, learner, pricing)
    code, out, err = bursar("report", "project")
    assert (code, err) == (0, "")
    assert "project/report.html" in out
    for page in ((project / "report.html").read_text(), page_of(project)):
        assert "<dt>reserve for overruns</dt>" in page  # its price list is there
        assert ("<dt>hour of annotation</dt>" in page) == (pricing != "by prices")


def test_a_new_project_has_a_report_when_a_round_was_trained(bursar, tmp_path):
    project = made(bursar, tmp_path, "scikit", "by default")
    session = AnnotationSession.open(project)
    for number, want in enumerate(session.wanted()):
        labels = {"intent": ("alarm", "music")[number % 2], "slots": [[3, 4, "time"]]}
        session.recorder.record(Answer(want.id, labels, "ann", {"reading": 2.0, "intent": 1.0, "slots": 3.0}))
    session.close()
    assert next_round(project, lambda event: None) == "opened"
    assert bursar("report", "project")[0] == 0
    assert "<dt>hour of annotation</dt>" in page_of(project)
