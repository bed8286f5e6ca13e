"""Somebody else's project runs none of its code: models that could are refused, unless whoever opens it trusts them."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from functools import partial
from pathlib import Path

import joblib
import pytest
import skops.io
import torch

from bursar.annotation.round_worker import next_round
from bursar.annotation.session import AnnotationSession
from bursar.campaign import Run
from bursar.errors import CheckpointError, UntrustedError
from bursar.learners.training import Checkpoint
from bursar.report import write_report
from bursar.web.app_state import AppState
from tests.campaign.lives import answer_all, one_corpus, start  # noqa: F401

CHEAP = {"name": "scikit", "estimator": "naive-bayes"}


class Payload:
    """Makes a file when it is loaded by pickle."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def plant(model: Path, mark: Path, how: str) -> Path:
    """Put what makes a file, when it is loaded, in the place of a model's own file."""
    (model / "estimators.skops").unlink()
    if how == "joblib":
        joblib.dump(({}, Payload(mark)), model / "estimators.joblib")
        return model / "estimators.joblib"
    if how == "pickle under the other name":
        (model / "estimators.skops").write_bytes(pickle.dumps(Payload(mark)))
    else:
        skops.io.dump({"intent": partial(os.system, f"touch {mark}"), "slots": None}, model / "estimators.skops")
    return model / "estimators.skops"


@pytest.fixture
def project(tmp_path):
    """A project whose first round is answered, with the model of those answers in it."""
    session = start(tmp_path / "project", learner=CHEAP)
    answer_all(session)
    session.close()
    shutil.copytree(tmp_path / "project", tmp_path / "other")
    next_round(tmp_path / "other", lambda event: None)
    assert skopses(tmp_path / "other")
    shutil.copytree(tmp_path / "other" / "models", tmp_path / "project" / "models")
    return tmp_path / "project"


def skopses(folder: Path) -> list[Path]:
    return sorted((folder / "models").glob("*/estimators.skops"))


def planted(project: Path, mark: Path, how: str = "joblib") -> list[Path]:
    return [plant(file.parent, mark, how) for file in skopses(project)]


@pytest.mark.parametrize("how", ["joblib", "skops"])
def test_a_training_refuses_a_model_that_could_run_code(project, tmp_path, how):
    files = planted(project, tmp_path / "mark", how)
    with pytest.raises(UntrustedError, match="can run code when it is loaded") as refused:
        next_round(project, lambda event: None)
    assert any(str(file) in refused.value.message for file in files)
    assert ("a pickle" if how == "joblib" else "posix.system") in refused.value.message
    assert "train the model again" in refused.value.fix
    assert "--trust" in refused.value.fix
    assert not (tmp_path / "mark").exists()


def test_what_is_no_file_of_skops_is_damaged_and_the_model_is_trained_again(project, tmp_path):
    planted(project, tmp_path / "mark", "pickle under the other name")
    assert next_round(project, lambda event: None) == "opened"
    assert not (tmp_path / "mark").exists()


def test_a_served_project_says_what_it_refused_and_why(project, tmp_path):
    files = planted(project, tmp_path / "mark")
    app_state = AppState(project)
    app_state.trainer.start()
    until = time.monotonic() + 60
    while app_state.trainer.failure is None and time.monotonic() < until:
        time.sleep(0.05)
    state = app_state.state()
    app_state.close()
    assert state.phase == "failed"
    assert any(str(file) in (state.why or "") for file in files)
    assert not (tmp_path / "mark").exists()


def test_a_report_loads_no_model(project, tmp_path):
    planted(project, tmp_path / "mark")
    assert write_report(Run.open(project)).is_file()
    assert not (tmp_path / "mark").exists()


def test_whoever_trusts_a_project_runs_what_is_in_it(project, tmp_path):
    planted(project, tmp_path / "mark")
    session = AnnotationSession.open(project, trust=True)
    session.next_round()
    session.close()
    assert (tmp_path / "mark").exists()  # so the tests above could have failed


def test_a_checkpoint_that_could_run_code_is_thrown_away(tmp_path):
    torch.save({"about": "this", "state": Payload(tmp_path / "mark")}, tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint(tmp_path / "checkpoint", "this", 1.0).load()
    assert not (tmp_path / "mark").exists()


def test_modules_in_the_folder_of_the_command_are_not_imported_by_the_training(project, tmp_path, monkeypatch):
    for name in ("numpy", "joblib", "sitecustomize"):
        (project / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    monkeypatch.chdir(project)
    session = AnnotationSession.open(".")
    session.next_round()
    session.close()
    assert not (tmp_path / "mark").exists()
