"""The files API: export, import and images."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest

from bursar.web.images import png
from bursar.web.server import make_app
from tests.web.annotating import write_project
from tests.web.conftest import HOME, Browser, refused
from tests.web.small import right


# -- files -----------------------------------------------------------------------------------------------------------
def test_what_was_annotated_is_exported_in_every_format_that_can_say_it(local_user):
    for _ in range(4):
        local_user.answer(local_user.take())
    lines = [json.loads(line) for line in local_user.get("/api/export?format=jsonl").text.splitlines()]
    assert {line["id"]: line["labels"] for line in lines[1:]} == {line["id"]: right(line["id"]) for line in lines[1:]}
    assert len(lines) == 5
    written = {}
    for name in local_user.get("/api/formats").json():
        reply = local_user.get("/api/export", params={"format": name, "lose": ["ids", "groups", "spacing", "words"]})
        assert reply.status_code in (200, 400), (name, reply.text)
        if reply.status_code == 200:
            written[name] = reply.content
            assert "attachment" in reply.headers["content-disposition"]
        else:
            assert reply.json()["error"]
    assert {"jsonl", "slots", "conll"} & set(written)
    zipped = [content for content in written.values() if content[:2] == b"PK"]
    assert all(zipfile.ZipFile(io.BytesIO(content)).testzip() is None for content in zipped)


def test_nothing_is_exported_where_nothing_is_and_unknown_formats_are_named(local_user):
    refused(local_user.get("/api/export"), 409, "nothing_there")
    local_user.answer(local_user.take())
    refused(local_user.get("/api/export?format=nonsense"), 400, "bad_config")
    refused(local_user.get("/api/export?tasks=nonsense"), 400, "bad_schema")


def send_file(browser, lines, name="answers.jsonl", **query):
    body = lines if isinstance(lines, bytes) else "".join(json.dumps(line) + "\n" for line in lines).encode()
    headers = {"Content-Type": "application/octet-stream"}
    return browser.post("/api/import", params={"name": name} | query, content=body, headers=headers)


@pytest.fixture
def elsewhere(local_user, app_state):
    """What somebody labelled elsewhere: three items that are asked about, and one that is not."""
    wanted = [want.id for want in app_state.session.wanted()][:3]
    other = next(
        id for id in app_state.session.corpus.ids.tolist() if id not in {w.id for w in app_state.session.wanted()}
    )
    return [
        {
            "id": id,
            "text": app_state.session.corpus[int(app_state.session.corpus.positions([id])[0])].text,
            "labels": right(id),
        }
        for id in wanted
    ] + [{"id": other, "text": "something", "labels": {"intent": "alarm"}}]


def test_answers_made_elsewhere_are_imported_once(local_user, elsewhere):
    found = send_file(local_user, elsewhere).json()
    assert (found["answered"], found["repeated"], found["not_asked"]) == (3, 0, 1)
    assert found["cost_units"] > 0
    assert local_user.get("/api/state").json()["answered"] == 3
    again = send_file(local_user, elsewhere).json()
    assert (again["answered"], again["not_asked"]) == (0, 4)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("train.jsonl", json.dumps(elsewhere[0]))
    assert send_file(local_user, packed.getvalue(), "answers.zip").json()["not_asked"] == 1


def test_a_file_with_one_mistake_leaves_nothing(local_user, elsewhere):
    wrong = [elsewhere[0], elsewhere[1] | {"labels": {"intent": "nonsense", "slots": []}}]
    assert send_file(local_user, wrong).status_code == 400
    wrong = [elsewhere[0], elsewhere[1] | {"text": "another text of five words"}]
    refused(send_file(local_user, wrong), 400, "other_item")
    for content, name in ((b"\xff\xfe", "a.jsonl"), (b"", "a.jsonl"), (b"PK nonsense", "a.zip"), (b"{", "a.jsonl")):
        reply = send_file(local_user, content, name)
        refused(reply, 400, "bad_file")
        assert "/tmp" not in reply.text
    assert local_user.get("/api/state").json()["answered"] == 0
    for name in ("../evil", "", "a/b", ".hidden"):
        assert send_file(local_user, elsewhere, name).status_code == 422


# -- images ----------------------------------------------------------------------------------------------------------
def pixels_of(png):
    """What a PNG file without filters holds."""
    size = struct.unpack(">II", png[16:24])
    start = png.index(b"IDAT") + 4
    rows = np.frombuffer(zlib.decompress(png[start:]), np.uint8).reshape(size[1], -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(size[1], size[0], -1)


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 1), (4, 2, 3), (2, 2, 4)])
def test_an_image_comes_out_as_it_went_in(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(pixels_of(png(image)), image.reshape(*shape[:2], -1))
    assert pixels_of(png(image / 255.0)).max() == 255


def test_the_image_of_an_item_is_sent(tmp_path, open_app_state):
    image = np.arange(36, dtype=np.uint8).reshape(6, 6) * 7
    tasks = {"what": {"kind": "classification", "labels": ["bird", "cat"]}}
    served = open_app_state(write_project(tmp_path / "images", tasks, [{"image": image}, {"image": image.T}]))
    browser = Browser(make_app(served), base_url=HOME)
    browser.meet()
    item = browser.take()["item"]
    assert (item["kind"], item["width"], item["height"]) == ("image", 6, 6)
    reply = browser.get(item["image"])
    assert reply.headers["content-type"] == "image/png"
    assert pixels_of(reply.content)[..., 0].tolist() in (image.tolist(), image.T.tolist())
    refused(browser.get("/api/items/nothing/image"), 404, "no_item")
