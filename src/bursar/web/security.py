"""Checks on every request (host, origin, size) and security headers on every response.

Protects against two attacks by other sites: cross-site requests in a visitor's name, refused by origin and CSRF token;
and DNS rebinding, refused by host name.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bursar.errors import ConfigError
from bursar.web.http_errors import HTTPError, error_response

LOG = logging.getLogger("bursar.web")

CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
REPORT_CONTENT_POLICY = "sandbox allow-scripts; frame-ancestors 'none'"  # the report brings its own scripts
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
MAX_REQUEST_BYTES = 1_000_000  # per request
MAX_IMPORT_BYTES = 64_000_000  # per imported file
IMPORT_PATHS = ("/api/import", "/api/tables")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class HostPolicy:
    """The host names under which the server may be reached."""

    host: str = "127.0.0.1"
    public: str | None = None  # the address that people type, if there is a proxy in front
    names: tuple[str, ...] = ()  # of this machine

    def __post_init__(self) -> None:
        if self.public is not None:
            parts = urlsplit(self.public)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
                fix = "use one like https://label.example.org"
                raise ConfigError(f"{self.public!r} is not a valid address", fix=fix)

    @property
    def secure(self) -> bool:
        """Whether the public address is https, so that cookies can be restricted to it."""
        return self.public is not None and self.public.startswith("https:")

    @property
    def loopback(self) -> bool:
        """Whether the server is reachable from this machine only."""
        return self.host == "localhost" or (_is_address(self.host) and ipaddress.ip_address(self.host).is_loopback)

    def accepts_host(self, host: str) -> bool:
        """Whether to accept a Host header. IP addresses are always accepted: DNS rebinding needs a name."""
        name = _host_of(f"//{host}")
        if name is None:
            return False
        public = _host_of(self.public) if self.public else None
        return _is_address(name) or name in {"localhost", self.host.lower(), public, *map(str.lower, self.names)}

    def is_same_origin(self, origin: str, host: str) -> bool:
        """Whether an origin is this server, given the Host header of the request."""
        parts = urlsplit(origin)
        if self.public is not None and origin == self.public.rstrip("/"):
            return True
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def check_request(host_policy: HostPolicy, method: str, headers: Mapping[str, str]) -> None:
    """Refuse requests for other hosts, and cross-site requests that change something."""
    host = headers.get("host", "")
    if not host_policy.accepts_host(host):
        fix = "use the IP address, or start the server with --public https://NAME"
        raise HTTPError(421, "unknown_host", f"unknown host name {host[:100]!r}", fix=fix)
    if method in SAFE_METHODS:
        return
    origin, fetch_site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    other_origin = origin is not None and not host_policy.is_same_origin(origin, host)
    if other_origin or fetch_site not in ("same-origin", "none"):
        raise HTTPError(403, "cross_site", "cross-site requests are not allowed")


class Guard:
    """Outermost middleware: checks requests, adds headers to responses, and logs both."""

    def __init__(self, app: ASGIApp, host_policy: HostPolicy) -> None:
        self.app, self.host_policy = app, host_policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request_id = time.perf_counter(), secrets.token_hex(6)
        scope.setdefault("state", {})["request_id"] = request_id
        headers, status = Headers(scope=scope), 0
        usual = HEADERS | ({"cache-control": "no-cache"} if scope["path"].startswith("/static/") else {})

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = MutableHeaders(scope=message)
                for name, value in usual.items():
                    given.setdefault(name, value)
                given["x-request-id"] = request_id
            await send(message)

        limit = MAX_IMPORT_BYTES if scope["path"] in IMPORT_PATHS else MAX_REQUEST_BYTES
        try:
            check_request(self.host_policy, scope["method"], headers)
            length = headers.get("content-length", "0")
            if not length.isdigit() or int(length) > limit:
                raise _too_large(limit)
            await self.app(scope, _limited(receive, limit), send_with_headers)
        except HTTPError as error:
            if status:
                raise
            await error_response(error)(scope, receive, send_with_headers)
        finally:
            spent = 1000 * (time.perf_counter() - began)
            path = "".join(c if c.isprintable() else "?" for c in scope["path"][:200])
            LOG.info("%s %s %s %d %.0f ms", request_id, scope["method"], path, status, spent)


def _limited(receive: Receive, limit: int) -> Receive:
    """Enforce the size limit while reading, in case Content-Length is missing or wrong."""
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
    return HTTPError(413, "too_large", f"requests are limited to {limit // 1_000_000} MB here", fix="send less at once")


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
