"""Fuzz test of the API: thousands of requests generated from its own description."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from bursar.annotation.round_worker import next_round
from bursar.ledger import Answer
from bursar.web.app_state import AppState
from bursar.web.server import make_app
from tests.web.conftest import QUICK
from tests.web.small import make_project, right

ITEMS = ("u0", "u1", "u2", "u3")
CHECKS = [not_a_server_error, response_schema_conformance, status_code_conformance]


LEADING = {  # calls whose answers depend on what a model said
    *("GET /api/dashboard", "GET /api/advice", "POST /api/advice", "GET /api/settings", "POST /api/settings"),
    *("POST /api/predictions", "GET /api/predictions", "GET /api/predictions/{job}"),
    *("POST /api/preview", "GET /api/preview/{job}", "POST /api/next", "GET /api/export", "GET /api/agreement"),
}


@pytest.fixture
def app_state(tmp_path):
    """A project with a few answers in it."""
    app_state = AppState(make_project(tmp_path / "project"), hasher=QUICK)
    answer(app_state, 3)
    yield app_state
    app_state.close()


@pytest.fixture
def later(tmp_path):
    """A project whose first round is over: there is a model, scores and a selection."""
    folder = make_project(tmp_path / "project", audit={"share": 0.2})
    app_state = AppState(folder, hasher=QUICK)
    answer(app_state, 8)
    next_round(folder, lambda told: None)
    app_state.session.refresh()
    answer(app_state, 2)
    yield app_state
    app_state.close()


def answer(app_state, items):
    for want in app_state.session.wanted()[:items]:
        app_state.assignments.answer(Answer(want.id, right(want.id), "you", {"reading": 2.0}))


def fuzz(app_state, examples, only=None):
    """Send made-up requests to every call of the API, as somebody who leads; how many were sent to each."""
    _, token = app_state.accounts.make_token(app_state.accounts.local_user, "fuzz")
    headers = {"Authorization": f"Bearer {token}", "Host": "127.0.0.1"}
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", make_app(app_state), headers=headers)
    operations = [found.ok() for found in schema.get_all_operations()]
    named = {f"{o.method.upper()} {o.path}": o for o in operations if o.path != "/api/events"}
    return {name: send_to(o, headers, examples) for name, o in named.items() if only is None or name in only}


def cases(operation):
    """Requests as they are described, and such as are not."""
    return st.one_of(
        operation.as_strategy(generation_mode=mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )


def send_to(operation, headers, examples):
    """Send made-up requests to one call of the API; how many."""
    sent = []

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(operation), item=st.sampled_from((None, *ITEMS)))
    def send(case, item):
        if (operation.method, operation.path) == ("post", "/api/people"):
            case.body = {"name": "Bob", "role": "annotator", "password": "x" * 8}  # an account would end the token
        if item is not None and isinstance(case.body, dict) and "item" in case.body:
            made_up = case.body.get("labels")
            values = list(made_up.values()) if isinstance(made_up, dict) else [made_up]
            case.body["item"] = item
            case.body["labels"] = {"intent": (values or [None])[0], "slots": (values or [None])[-1]}
        case.validate_response(case.call(headers=headers), checks=CHECKS)
        sent.append(case)

    send()
    return len(sent)


def test_no_made_up_request_breaks_the_server(app_state):
    sent = fuzz(app_state, examples=12)
    assert len(sent) > 25
    assert sum(sent.values()) > 300
    assert set(sent) >= LEADING


def test_no_made_up_request_breaks_the_server_after_a_round(later):
    sent = fuzz(later, examples=8, only=LEADING)
    assert set(sent) == LEADING
    assert sum(sent.values()) > 40


@pytest.mark.soak
def test_no_request_of_thousands_breaks_the_server(app_state):
    assert sum(fuzz(app_state, examples=300).values()) > 5000
