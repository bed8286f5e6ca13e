"""Labelled data from the page's API: one worker at a time, its progress, its file, and nothing worse than no file."""

from __future__ import annotations

import io
import json
import sys
import time
import zipfile

import pandas as pd
import pytest

from bursar.annotation.round_worker import next_round
from bursar.ledger import Answer
from bursar.web.http_errors import HTTPError
from bursar.web.jobs import MOST_FILES, LabelledData, LabellingOptions
from tests.web.conftest import refused
from tests.web.small import right

WRITES = """
import json, pathlib, sys
place, request = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
print(json.dumps({"event": "stage", "what": "scoring", "done": 0.5}), flush=True)
(place / "found.csv").write_text(request["format"])
print(json.dumps({"event": "predictions", "found": {"file": "found.csv"}}), flush=True)
"""
STAYS = "import time; time.sleep(600)"
REFUSES = 'import sys; print(\'{"event": "failed", "error": "no model yet", "fix": "annotate"}\'); sys.exit(2)'
CRASHES = "import sys; sys.exit('out of memory')"


class Noted:
    """A hub that remembers what everybody was told."""

    def __init__(self):
        self.told = []

    def publish(self, event, data):
        self.told.append((event, dict(data)))


@pytest.fixture
def labelled(tmp_path):
    """Labelled data by a script in the place of the worker; ends with the test."""
    made = []

    def make(script, hub=None):
        def command(project, folder, request):
            return [sys.executable, "-c", script, str(folder), request]

        made.append(LabelledData(tmp_path, hub or Noted(), "My project: 1"))
        made[-1]._command = command
        return made[-1]

    yield make
    for one in made:
        one.close()


def until(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


def done(data, format="csv"):
    job = data.start(LabellingOptions(format=format))
    until(lambda: job.done)
    return job


# -- the process -------------------------------------------------------------------------------------------------------
def test_the_file_is_kept_until_a_few_others_came_or_the_server_stops(labelled):
    hub = Noted()
    data = labelled(WRITES, hub)
    jobs = [done(data, f"format {number}") for number in range(MOST_FILES + 1)]
    assert [data.file(job.job).read_text() for job in jobs[1:]] == [f"format {n}" for n in range(1, MOST_FILES + 1)]
    with pytest.raises(HTTPError, match="expired"):
        data.file(jobs[0].job)
    assert data.newest is jobs[-1]
    until(lambda: hub.told[-1] == ("predictions", {"job": jobs[-1].job, "done": True, "progress": 1.0, "what": ""}))
    assert ("predictions", {"job": jobs[0].job, "done": False, "progress": 0.5, "what": "scoring"}) in hub.told
    place = data.file(jobs[-1].job)
    data.close()
    assert not place.exists()


def test_one_request_runs_at_a_time_and_the_same_one_is_joined(labelled):
    data = labelled(STAYS)
    first = data.start(LabellingOptions(format="csv"))
    assert data.start(LabellingOptions(format="csv")) is first
    with pytest.raises(HTTPError, match="another file is being written"):
        data.start(LabellingOptions(format="xlsx"))
    with pytest.raises(HTTPError, match="no file"):
        data.file(first.job)


@pytest.mark.parametrize(("script", "said"), [(REFUSES, "no model yet"), (CRASHES, "out of memory")])
def test_a_worker_that_fails_is_told_and_another_one_may_follow(labelled, script, said):
    data = labelled(script)
    job = done(data)
    assert job.result is None
    assert said in job.wrong.error
    assert done(data).job != job.job


# -- the API, with the real worker -------------------------------------------------------------------------------------
@pytest.fixture
def trained(app_state):
    """Bob answered the first round, and the model of the next one is there."""
    for want in app_state.session.wanted():
        app_state.assignments.answer(Answer(want.id, right(want.id), "Bob", {"reading": 1.0}))
    next_round(app_state.session.folder, lambda told: None)
    app_state.session.refresh()
    return app_state


def ask(browser, **body):
    reply = browser.post("/api/predictions", json=body)
    assert reply.status_code == 202, reply.text
    job = reply.json()["job"]
    until(lambda: browser.get(f"/api/predictions/{job}").json()["done"])
    return browser.get(f"/api/predictions/{job}").json()


def test_a_lead_gets_every_item_with_its_labels_and_the_errors_to_expect(trained, local_user):
    found = ask(local_user, format="xlsx", thresholds={"intent": 0.9})
    assert found["wrong"] is None, found
    result = found["result"]
    assert (result["file"], result["items"]) == ("Small-project-labelled.xlsx", 46)
    accepted = {about["task"]: about for about in result["accepted"]}
    assert accepted["intent"]["threshold"] == 0.9
    assert accepted["intent"]["words"].startswith("intent: accept the model above 0.9")
    reply = local_user.get(f"/api/predictions/{found['job']}/file")
    assert 'filename="Small-project-labelled.xlsx"' in reply.headers["content-disposition"]
    frame = pd.read_excel(io.BytesIO(reply.content))
    assert frame["intent by"].value_counts().to_dict() == result["by"]["intent"]
    assert result["by"]["intent"]["person Bob"] == 8
    assert local_user.get("/api/predictions").json()["predictions"]["job"] == found["job"]


def test_formats_of_several_files_come_as_a_zip_and_losses_are_named(trained, local_user):
    found = ask(local_user, format="conll", tasks=["slots"])
    assert "lose = " in found["wrong"]["fix"]
    found = ask(local_user, format="conll", tasks=["slots"], lose=["ids", "groups", "spacing", "words"])
    assert found["result"]["file"] == "Small-project-labelled.conll.zip", found
    content = local_user.get(f"/api/predictions/{found['job']}/file").content
    assert len(zipfile.ZipFile(io.BytesIO(content)).namelist()) == 2  # train and dev
    found = ask(local_user, format="jsonl")
    lines = local_user.get(f"/api/predictions/{found['job']}/file").text.splitlines()
    assert all(set(json.loads(line)["labels"]) == {"intent", "slots"} for line in lines[1:])


def test_before_the_first_model_it_says_what_to_do(local_user):
    found = ask(local_user)
    assert found["result"] is None
    assert "no model yet" in found["wrong"]["error"]
    refused(local_user.get(f"/api/predictions/{found['job']}/file"), 409, "no_file")


def test_what_makes_no_sense_is_refused_at_once(local_user):
    refused(local_user.post("/api/predictions", json={"format": "nonsense"}), 400, "bad_config")
    refused(local_user.post("/api/predictions", json={"thresholds": {"mood": 0.5}}), 400, "bad_config")
    refused(local_user.post("/api/predictions", json={"thresholds": {"intent": 2}}), 422, "bad_request")
    refused(local_user.post("/api/predictions", json={"tasks": ["mood"]}), 400, "bad_config")
    refused(local_user.post("/api/predictions", json={"lose": ["everything"]}), 400, "bad_config")
    refused(local_user.get("/api/predictions/none"), 404, "no_labelling")


def test_only_leads_may_ask(crew):
    for call in (crew("Bob").get("/api/predictions"), crew("Bob").post("/api/predictions", json={})):
        refused(call, 403, "leads_only")
