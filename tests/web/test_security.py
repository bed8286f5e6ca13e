"""Requests that are refused: other sites and hosts, password guessing, too much data; and security headers."""

from __future__ import annotations

import json
import re

import pytest

from bursar.errors import ConfigError
from bursar.web.accounts import Attempts, same_secret
from bursar.web.http_errors import HTTPError
from bursar.web.security import CONTENT_POLICY, MAX_REQUEST_BYTES, HostPolicy, check_request
from bursar.web.server import make_app
from tests.web.conftest import HOME, PASSWORD, Browser

EVIL = "http://evil.example"
CONTRACT = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)


# -- names -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "127.0.0.1", "localhost", "LOCALHOST:9000", "[::1]:8000", "192.168.1.7:8000", "box:8000"]
)
def test_numbers_and_our_own_names_are_ours(host):
    assert HostPolicy("127.0.0.1", names=("box",)).accepts_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        ":8000",
        "a b",
        "[::1",
    ],
)
def test_other_names_are_not(host):
    assert not HostPolicy("127.0.0.1", names=("box",)).accepts_host(host)


def test_a_public_address_adds_its_name_and_makes_cookies_secure():
    host_policy = HostPolicy("0.0.0.0", "https://label.example.org")
    assert host_policy.accepts_host("label.example.org")
    assert host_policy.is_same_origin("https://label.example.org", "internal:8000")
    assert not host_policy.is_same_origin("https://label.example.org.evil.example", "internal:8000")
    assert host_policy.secure
    assert not host_policy.loopback
    assert not HostPolicy("127.0.0.1", "http://label.example.org").secure


@pytest.mark.parametrize("public", ["label.example.org", "ftp://x", "https://", "https://x/path", "https://x?a=1", "*"])
def test_a_public_address_that_is_none_is_refused(public):
    with pytest.raises(ConfigError, match="not a valid address"):
        HostPolicy(public=public)


@pytest.mark.parametrize(
    ("host", "alone"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_which_addresses_are_this_machine_alone(host, alone):
    assert HostPolicy(host).loopback is alone


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": EVIL},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "file://"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": HOME, "sec-fetch-site": "cross-site"},
    ],
)
def test_a_page_of_another_site_changes_nothing(headers):
    with pytest.raises(HTTPError) as wrong:
        check_request(HostPolicy(), "POST", {"host": "127.0.0.1:8000"} | headers)
    assert (wrong.value.status, wrong.value.kind) == (403, "cross_site")
    check_request(HostPolicy(), "GET", {"host": "127.0.0.1:8000"} | headers)  # to look is no change


@pytest.mark.parametrize(
    "headers", [{}, {"origin": HOME}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-origin"}]
)
def test_our_own_pages_and_programs_may_change_things(headers):
    check_request(HostPolicy(), "POST", {"host": "127.0.0.1:8000"} | headers)


# -- requests --------------------------------------------------------------------------------------------------------
def changing_calls(app):
    """Every call of the API that changes something, with some name in place of every part of its path."""
    api = app.app.openapi()
    return [
        (method.upper(), re.sub(r"\{[^}]*\}", "x", path))
        for path, methods in api["paths"].items()
        for method in methods
        if method != "get"
    ]


def test_every_call_that_changes_something_needs_the_token_also_without_accounts(local_user):
    calls = changing_calls(local_user.app)
    assert len(calls) > 15
    for token in (b"", b"wrong", "ä".encode()):
        for method, path in calls:
            if path == "/api/login":  # nobody is there yet whose token it could be
                continue
            reply = local_user.request(method, path, json={}, headers={"X-CSRF-Token": token})
            assert (reply.status_code, reply.json()["kind"]) == (403, "csrf"), (method, path)
    assert local_user.get("/api/state").json()["answered"] == 0


def test_the_token_of_another_session_does_not_do(crew):
    bob, eve = crew("Bob"), crew("Eve")
    bob.headers["X-CSRF-Token"] = eve.csrf
    assert bob.post("/api/next", json={}).json()["kind"] == "csrf"


def test_every_call_needs_somebody_who_is_signed_in(crew, browser_of):
    crew("Anna")
    stranger = browser_of()
    api = stranger.app.app.openapi()
    for path, methods in api["paths"].items():
        for method in methods:
            if path == "/api/login":
                continue
            reply = stranger.request(
                method.upper(), re.sub(r"\{[^}]*\}", "x", path), json={} if method != "get" else None
            )
            assert reply.status_code == 401, (method, path, reply.text)
            assert "csrf" not in reply.json()
    for headers in ({"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}, {"Cookie": "bursar_x=1"}):
        assert stranger.get("/api/state", headers=headers).status_code == 401


def test_a_name_that_is_not_ours_is_refused_before_anything_is_done(app_state, browser_of):
    evil = Browser(browser_of().app, base_url="http://evil.example:8000")
    for path in ("/", "/api/me", "/static/bursar.css", "/login"):
        reply = evil.get(path, follow_redirects=False)
        assert (reply.status_code, reply.json()["kind"]) == (421, "unknown_host")
        assert reply.headers["content-security-policy"] == CONTENT_POLICY


def test_nobody_learns_from_signing_in_who_is_there(crew, browser_of):
    crew("Anna")
    stranger = browser_of()
    replies = [stranger.post("/api/login", json={"name": n, "password": "wrong password"}) for n in ("Anna", "Nobody")]
    assert [reply.status_code for reply in replies] == [401, 401]
    assert replies[0].json() == replies[1].json()
    assert not stranger.cookies


def test_too_many_guesses_have_to_wait(crew, browser_of):
    crew("Anna")
    stranger = browser_of()
    for _ in range(Attempts.MOST["pair"]):
        assert stranger.post("/api/login", json={"name": "Bob", "password": "wrong password"}).status_code == 401
    late = stranger.post("/api/login", json={"name": "Bob", "password": PASSWORD})
    assert (late.status_code, late.json()["kind"]) == (429, "too_many_attempts")
    assert int(late.headers["retry-after"]) > 0


def test_the_cookie_is_strict_and_out_of_reach_of_scripts(crew, browser_of, project, open_app_state, app_state):
    crew("Anna")
    body = {"name": "Anna", "password": PASSWORD}
    cookie = browser_of().post("/api/login", json=body).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "secure" not in cookie
    app_state.close()
    secure = open_app_state(project, host_policy=HostPolicy("127.0.0.1", "https://label.example.org"))
    browser = Browser(make_app(secure), base_url="https://label.example.org")
    assert "secure" in browser.post("/api/login", json=body).headers["set-cookie"].lower()


def as_header(cookies):
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}


def test_signing_in_gives_another_cookie_and_the_old_one_is_worth_nothing(crew):
    bob = crew("Bob")
    old = dict(bob.cookies)
    bob.sign_in("Bob")
    assert dict(bob.cookies) != old
    bob.cookies.clear()
    assert bob.get("/api/state", headers=as_header(old)).status_code == 401


def test_signing_out_ends_the_session(crew):
    bob = crew("Bob")
    kept = dict(bob.cookies)
    assert bob.post("/api/logout", json={}).status_code == 204
    assert not bob.cookies
    assert bob.get("/api/state", headers=as_header(kept)).status_code == 401


def test_a_form_of_another_site_cannot_sign_anybody_in(crew, browser_of):
    crew("Anna")
    browser = browser_of()
    text = json.dumps({"name": "Anna", "password": PASSWORD})
    plain = browser.post("/api/login", content=text, headers={"Content-Type": "text/plain"})
    assert plain.status_code == 422
    foreign = browser.post("/api/login", json={"name": "Anna", "password": PASSWORD}, headers={"Origin": EVIL})
    assert (foreign.status_code, foreign.json()["kind"]) == (403, "cross_site")
    assert not browser.cookies


# -- sizes -----------------------------------------------------------------------------------------------------------
def test_a_request_that_is_too_large_is_refused_told_or_not(local_user):
    large = b'{"key": "' + b"x" * MAX_REQUEST_BYTES + b'"}'
    headers = {"Content-Type": "application/json"}
    told = local_user.post("/api/answers", content=large, headers=headers)

    def pieces():
        for start in range(0, len(large), 100_000):
            yield large[start : start + 100_000]

    untold = local_user.post("/api/answers", content=pieces(), headers=headers)
    assert [reply.status_code for reply in (told, untold)] == [413, 413]
    assert {reply.json()["kind"] for reply in (told, untold)} == {"too_large"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"[" * 100_000,
        b'{"key": 1e999}',
        b'{"key": "\\ud800"}',
        b"\xff\xfe",
        b"1" * 5000,
    ],
)
def test_nonsense_is_refused_in_a_sentence(local_user, body):
    for path in ("/api/answers", "/api/next", "/api/login", "/api/settings"):
        reply = local_user.post(path, content=body, headers={"Content-Type": "application/json"})
        assert 400 <= reply.status_code < 500, (path, reply.text)
        assert set(reply.json()) == {"error", "fix", "kind"}


# -- what pages may do -----------------------------------------------------------------------------------------------
def test_every_answer_says_what_pages_may_do(local_user):
    for path in ("/start", "/api/state", "/static/bursar.css", "/nothing", "/api/nothing"):
        headers = local_user.get(path).headers
        assert headers["content-security-policy"] == CONTRACT, path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-request-id"]


def test_what_is_personal_is_kept_nowhere_and_files_are_asked_for_again(local_user):
    assert local_user.get("/api/me").headers["cache-control"] == "no-store"
    assert local_user.get("/start").headers["cache-control"] == "no-store"
    style = local_user.get("/static/bursar.css")
    assert style.headers["cache-control"] == "no-cache"
    again = local_user.get("/static/bursar.css", headers={"If-None-Match": style.headers["etag"]})
    assert again.status_code == 304


def test_scripts_come_as_scripts_and_nothing_outside_the_folder_comes(local_user):
    assert local_user.get("/static/theme.js").headers["content-type"].startswith("text/javascript")
    assert local_user.get("/static/charts/charts.js").headers["content-type"].startswith("text/javascript")
    for path in ("/static/../pages.py", "/static/%2e%2e/pages.py", "/static/..%2fpages.py", "/static//etc/passwd"):
        assert local_user.get(path).status_code in (404, 405), path


def test_the_report_is_in_a_box_of_its_own(local_user):
    reply = local_user.get("/report")
    assert reply.status_code == 200
    assert reply.headers["content-security-policy"].startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in reply.headers["content-security-policy"]


def test_no_page_has_markup_that_the_policy_forbids():
    from bursar.web.pages import ENVIRONMENT

    for name in ENVIRONMENT.list_templates():
        source = ENVIRONMENT.loader.get_source(ENVIRONMENT, name)[0]
        assert not re.search(r"<script(?![^>]*\bsrc=)", source), name
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:|\|\s*safe", source), name
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", source), name


def test_no_script_of_ours_makes_markup_of_text():
    from bursar.web.pages import STATIC

    scripts = sorted(STATIC.rglob("*.js"))
    assert len(scripts) > 4
    for path in scripts:
        forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
        assert not re.search(forbidden, path.read_text()), path.name


def test_answers_are_packed_where_that_is_worth_it(local_user):
    assert (
        local_user.get("/api/openapi.json", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    )


def test_secrets_of_any_characters_are_compared():
    assert same_secret("a", "a")
    assert not same_secret("a", "ä")
