"""The start page: from a file to the first item, with nothing written before and nothing if something is wrong."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import closing

import pytest
from openpyxl import Workbook
from starlette.testclient import TestClient

from bursar.annotation.session import AnnotationSession
from bursar.errors import ConfigError
from bursar.web.api import CSRF
from bursar.web.security import HostPolicy
from bursar.web.server import serve_start
from bursar.web.start import StartState, make_start_app
from tests.web.annotating import until
from tests.web.conftest import HOME, refused
from tests.web.small import HOSTILE

ROWS = [f"T{n};where is order number {n};{'order' if n < 3 else ''}" for n in range(60)]
TABLE = "\n".join(["Ticket;Body;Category", *ROWS])
INTENT = {"name": "intent", "kind": "classification", "labels": "order, refund", "column": None}


@pytest.fixture
def start(tmp_path):
    (tmp_path / "here").mkdir()
    with closing(StartState(tmp_path / "here")) as start:
        yield start


@pytest.fixture
def page(start):
    headers = {"Origin": HOME, CSRF: start.csrf}
    with TestClient(make_start_app(start, HostPolicy()), base_url=HOME, headers=headers) as page:
        yield page


def hand_over(page, content=TABLE, name="m.csv"):
    body = content if isinstance(content, bytes) else content.encode()
    return page.post("/api/tables", params={"name": name}, content=body)


def wanted(page, **changes):
    table = hand_over(page).json()["table"]
    return {"table": table, "name": "support", "tasks": [INTENT], "budget": 0.3} | changes


# -- the calls ---------------------------------------------------------------------------------------------------------
def test_what_was_found_out_about_a_file_is_what_the_reader_says(page):
    found = hand_over(page).json()
    assert (found["items"], found["text"], found["id"], found["problem"]) == (60, "Body", "Ticket", None)
    assert found["notes"][0] == "separated by semicolons, UTF-8, with a header"
    assert found["columns"][1] == {"name": "Body", "examples": [f"where is order number {n}" for n in range(3)]}
    again = page.post("/api/look", json={"table": found["table"], "text": "Category"}).json()
    assert again["problem"].startswith("m.csv:5: column 'Category' has no text in lines 5, 6")


def test_a_table_is_read_once_however_often_its_tasks_change(page, monkeypatch):
    found = hand_over(page).json()
    monkeypatch.setattr("bursar.corpus.formats.tables.read_table", lambda *_: pytest.fail("read again"))
    monkeypatch.setattr("bursar.web.start.read", lambda *_, **__: pytest.fail("read again"))
    for labels in ("order, refund", "order, refund, other"):
        page.post(
            "/api/cost", json={"table": found["table"], "tasks": [INTENT | {"labels": labels}]}
        ).raise_for_status()


def test_rows_without_a_text_are_left_out_if_that_is_chosen(start, page):
    found = hand_over(page, TABLE + "\nT99; ;\n").json()
    assert found["problem"] == "m.csv:62: column 'Body' has no text in line 62"
    assert found["fix"].endswith("leave them out")
    again = page.post("/api/look", json={"table": found["table"], "skip_empty": True}).json()
    assert (again["items"], again["problem"]) == (60, None)
    body = {"table": found["table"], "name": "support", "tasks": [INTENT], "budget": 0.3, "skip_empty": True}
    assert page.post("/api/projects", json=body).status_code == 200
    with closing(AnnotationSession.open(start.created)) as live:
        assert len(live.corpus) == 60


def test_a_text_file_has_one_column(page):
    found = hand_over(page, "hello there\ngood bye\n", "letters.txt").json()
    assert (found["items"], found["text"], found["notes"]) == (2, "text", ["one item per line"])
    assert found["columns"] == [{"name": "text", "examples": ["hello there", "good bye"]}]


def test_a_table_without_a_likely_text_is_shown_and_the_lead_chooses(page):
    found = hand_over(page, "a,b\none two,three four\nfive six,seven eight\n").json()
    assert (found["text"], found["problem"]) == (None, "m.csv:1: it is not clear which column holds the text")
    chosen = page.post("/api/look", json={"table": found["table"], "text": "b"}).json()
    assert (chosen["text"], chosen["problem"]) == ("b", None)


def test_a_file_that_cannot_be_read_is_refused_by_its_name_and_line(page, tmp_path):
    said = refused(hand_over(page, "id,text\n1,hello\n2,one,two\n"), 400, "bad_file").json()
    assert said["error"].startswith("m.csv:3: the row has 3 cells")
    assert refused(hand_over(page, b"PK\x03\x04", "m.xlsx"), 400, "bad_file").json()["error"].startswith("m.xlsx: ")
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize("name", ["../../m.csv", "/etc/m.csv", "..\\m.csv", "a/../../m.csv"])
def test_an_uploaded_file_stays_in_its_place(start, page, name):
    path = start.upload(hand_over(page, name=name).json()["table"]).path
    assert path.resolve().is_relative_to(start._place.name)


def test_a_project_is_created_with_the_labels_of_a_column(start, page):
    body = wanted(page, tasks=[INTENT | {"column": "Category"}])
    cost = page.post("/api/cost", json={key: body[key] for key in ("table", "tasks")}).json()
    assert cost["items"] == 57  # three have labels
    found = page.post("/api/projects", json=body)
    assert found.json() == {"folder": str(start.folder / "support"), "page": "/annotate"}
    with closing(AnnotationSession.open(start.created)) as live:
        assert len(live.ledger.view()) == 3
        assert live.item("T7")["metadata"] == [{"name": "Ticket", "value": "T7"}]
    refused(page.post("/api/projects", json=body), 409, "created")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": 100}, "more than labelling everything costs"),
        ({"name": "../elsewhere"}, "is no name for a project"),
        ({"name": "there"}, "already exists"),
        ({"tasks": [INTENT | {"labels": ""}]}, "names no labels"),
        ({"tasks": [INTENT | {"name": " "}]}, "a task has no name"),
        ({"tasks": [INTENT, INTENT]}, "two tasks have one name"),
        ({"tasks": [INTENT | {"labels": "a,b", "column": "Category"}]}, "m.csv:2: item 'T0': task 'intent': unknown"),
        ({"text": "Bdy"}, "did you mean 'Body'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(start, page, changes, said):
    (start.folder / "there").mkdir()
    (start.folder / "there" / "mine.txt").write_text("mine")
    reply = page.post("/api/projects", json=wanted(page, **changes))
    assert reply.status_code == 400
    assert said in reply.json()["error"] + (reply.json()["fix"] or "")
    assert start.created is None
    assert [path.name for path in start.folder.rglob("*")] == ["there", "mine.txt"]


def test_requests_of_other_pages_and_other_names_are_refused(page):
    refused(page.post("/api/tables?name=m.csv", content=b"x", headers={CSRF: "wrong"}), 403, "csrf")
    elsewhere = {"Origin": "http://evil.example"}
    refused(page.post("/api/tables?name=m.csv", content=b"x", headers=elsewhere), 403, "cross_site")
    refused(page.get("/", headers={"Host": "evil.example"}), 421, "unknown_host")
    reply = page.get("/annotate", headers={"Accept": "text/html"}, follow_redirects=False)
    assert reply.headers["location"] == "/"


def test_other_machines_are_not_shown_the_start_page(tmp_path):
    with pytest.raises(ConfigError, match="reachable from other machines"):
        serve_start(tmp_path, host="0.0.0.0")


def test_the_uploaded_file_is_removed_with_the_page(start, page):
    path = start.upload(hand_over(page).json()["table"]).path
    assert path.is_file()
    start.close()
    assert not path.exists()


# -- in a browser ------------------------------------------------------------------------------------------------------
@pytest.fixture
def address(tmp_path):
    """``bursar serve`` without a project, in a folder of its own."""
    (tmp_path / "here").mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bursar", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=tmp_path / "here", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def there():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(there)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


def workbook(path):
    book = Workbook()
    book.active.append(["Ticket", "Body", "Kunde"])
    for n in range(40):
        book.active.append([n, f"where is order number {n}", HOSTILE if n == 0 else "Müller"])
    book.save(path)
    return path


@pytest.mark.browser
def test_from_a_workbook_to_the_first_item(browser, address, tmp_path):
    context = browser.new_context()
    tab = context.new_page()
    tab.set_default_timeout(120_000)
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(address)
    tab.set_input_files("#file", workbook(tmp_path / "support.xlsx"))
    tab.locator("#notes", has_text="40 items; sheet 'Sheet'; text: column 'Body'").wait_for()
    assert tab.locator("#columns tbody tr").count() == 3
    assert tab.locator("#columns script, #columns img").count() == 0
    assert HOSTILE in tab.locator("#columns tbody").text_content()
    assert tab.locator("[name=text-column]:checked").get_attribute("value") == "Body"
    assert tab.locator("[name=name]").input_value() == "support"
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    tab.set_input_files("#file", tmp_path / "old.xls")
    tab.locator("#notice.wrong", has_text="old.xls: .xls files cannot be read. Save it as .xlsx").wait_for()
    assert tab.locator("#found").is_hidden()  # the file before is not taken for this one
    tab.set_input_files("#file", tmp_path / "support.xlsx")
    tab.locator("#columns").wait_for()
    assert tab.locator("#notice").is_hidden()
    tab.check("[name=text-column][value=Kunde]")
    tab.locator("td.text-column", has_text="Müller").first.wait_for()
    tab.check("[name=text-column][value=Body]")
    tab.locator("td.text-column", has_text="where is order number 0").wait_for()
    tab.fill("[data-field=name]", "intent")
    tab.fill("[data-field=labels]", "order, refund")
    tab.locator("#cost", has_text="Labelling all 40 items costs about").wait_for()
    tab.fill("[name=budget]", "1000")
    tab.click("#create")
    tab.locator("#notice.wrong", has_text="more than labelling everything costs").wait_for()
    assert not list((tmp_path / "here").iterdir())
    tab.fill("[name=budget]", "0.3")
    tab.click("#create")
    tab.wait_for_url(f"{address}/annotate")
    tab.locator("#workspace .task.active").wait_for()
    assert "where is order number" in tab.locator(".reading").inner_text()
    assert tab.locator(".stage .metadata dt").all_text_contents()[0] == "Ticket"
    assert errors == []
    context.close()
    first = json.loads((tmp_path / "here" / "support" / "data.jsonl").read_text().splitlines()[0])
    assert first["table"]["columns"] == ["Ticket", "Body", "Kunde"]
