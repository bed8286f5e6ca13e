"""What stands before every request: is it for us, from our own pages, of a bearable size; and what every answer says.

A page of somebody else may send requests to this machine in its visitor's name, or have its own name lead here (DNS
rebinding). The first is refused by where it comes from and by a token it cannot read, the second by the name.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bursar.errors import ConfigError
from bursar.web.http_errors import HTTPError

LOG = logging.getLogger("bursar.web")

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
REPORT_POLICY = "sandbox allow-scripts; frame-ancestors 'none'"  # a page of its own, of which we know nothing
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
MOST_BYTES = 1_000_000  # of a request
MOST_IMPORTED = 64_000_000  # of a file that is sent in
IMPORT = "/api/import"
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class HostPolicy:
    """Where the server is reached.

    >>> policy = HostPolicy("127.0.0.1")
    >>> [policy.accepts_host(host) for host in ("localhost:8000", "127.0.0.1", "evil.example:8000")]
    [True, True, False]
    >>> HostPolicy("0.0.0.0", public="https://label.example.org").accepts_host("label.example.org")
    True
    """

    host: str = "127.0.0.1"
    public: str | None = None  # the address that people type, where a proxy stands before the server
    names: tuple[str, ...] = ()  # of this machine

    def __post_init__(self) -> None:
        if self.public is not None:
            parts = urlsplit(self.public)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
                raise ConfigError(f"{self.public!r} is no address", fix="such as https://label.example.org")

    @property
    def secure(self) -> bool:
        """Whether people come by https, so that cookies need travel no other way."""
        return self.public is not None and self.public.startswith("https:")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or (_is_address(self.host) and ipaddress.ip_address(self.host).is_loopback)

    def accepts_host(self, host: str) -> bool:
        """Whether a Host header is one of ours. A number is: only names can be made to lead elsewhere."""
        name = _host_of(f"//{host}")
        if name is None:
            return False
        public = _host_of(self.public) if self.public else None
        return _is_address(name) or name in {"localhost", self.host.lower(), public, *map(str.lower, self.names)}

    def is_same_origin(self, origin: str, host: str) -> bool:
        """Whether a page at this origin is one of ours, as the request for this host says."""
        parts = urlsplit(origin)
        if self.public is not None and origin == self.public.rstrip("/"):
            return True
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def check_request(host_policy: HostPolicy, method: str, headers: Mapping[str, str]) -> None:
    """Refuse what is not for us, and what another page sends in its visitor's name."""
    host = headers.get("host", "")
    if not host_policy.accepts_host(host):
        raise HTTPError(
            421,
            "unknown_host",
            f"this server is not called {host[:100]!r}",
            fix="use its number, or start it with --public https://NAME",
        )
    if method in SAFE:
        return
    origin = headers.get("origin")
    fetch_site = headers.get("sec-fetch-site", "same-origin")
    if (origin is not None and not host_policy.is_same_origin(origin, host)) or fetch_site not in (
        "same-origin",
        "none",
    ):
        raise HTTPError(403, "cross_site", "this request comes from a page of another site")


class Guard:
    """The first to see a request and the last to see its answer."""

    def __init__(self, app: ASGIApp, host_policy: HostPolicy) -> None:
        self.app = app
        self.host_policy = host_policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request_id = time.perf_counter(), secrets.token_hex(6)
        scope.setdefault("state", {})["request_id"] = request_id
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_default_headers(message["headers"], scope["path"], request_id)
            await send(message)

        limit = MOST_IMPORTED if scope["path"] == IMPORT else MOST_BYTES
        try:
            check_request(self.host_policy, scope["method"], headers)
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > limit:
                raise _too_large(limit)
            await self.app(scope, _limited(receive, limit), answer)
        except HTTPError as error:
            if status:
                raise
            await _refuse(error, answer)
        finally:
            spent = 1000 * (time.perf_counter() - began)
            LOG.info("%s %s %s %d %.0f ms", request_id, scope["method"], _plain(scope["path"]), status, spent)


def _limited(receive: Receive, limit: int) -> Receive:
    """Count what comes in: a length that is not told, or told wrong, is held to the same."""
    got = 0

    async def counted() -> Message:
        nonlocal got
        message = await receive()
        if message["type"] == "http.request":
            got += len(message.get("body", b""))
            if got > limit:
                raise HTTPException(413, _too_large(limit).message)
        return message

    return counted


def _too_large(limit: int) -> HTTPError:
    return HTTPError(
        413, "too_large", f"a request may have {limit // 1_000_000} MB at most here", fix="send less at once"
    )


async def _refuse(error: HTTPError, send: Send) -> None:
    body = json.dumps(error.body, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_default_headers(headers: Any, path: str, request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of an answer with those that every answer has, where it does not say otherwise."""
    given = {name.lower() for name, _ in headers}
    usual = HEADERS | ({"cache-control": "no-cache"} if path.startswith("/static/") else {})
    more = {name.encode(): value.encode() for name, value in usual.items() if name.encode() not in given}
    return [*headers, *more.items(), (b"x-request-id", request_id.encode())]


def _plain(path: str) -> str:
    """A path as it can stand in a log: on one line, and not for ever."""
    return "".join(c if c.isprintable() else "?" for c in path[:200])


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
