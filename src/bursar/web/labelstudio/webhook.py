"""A webhook that Label Studio calls when an annotation changes, to trigger the next pull.

The content of a call is not trusted or used: every call only triggers a regular pull.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from bursar.errors import ConfigError

MAX_BYTES = 1 << 20  # of a message that are read
TIMEOUT = 10.0  # seconds to wait for data


class WebhookListener:
    """Listens for calls at a local address."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme != "http" or host is None or port is None:
            fix = "use an address of this machine, such as http://127.0.0.1:8123/"
            raise ConfigError(f"{url!r} is not a webhook address", fix=fix)
        self._called = threading.Event()
        path = parts.path or "/"
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(path, self._called))
        except OSError as error:
            why = error.strerror or error
            raise ConfigError(f"{url}: cannot listen there: {why}", fix="use another port or address") from None
        self._server.daemon_threads = True
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}{path}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True)

    def __enter__(self) -> WebhookListener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, seconds: float) -> bool:
        """Wait for a call, up to this long. Returns whether there was one; several calls count as one."""
        called = self._called.wait(seconds)
        self._called.clear()
        return called


def _handler(path: str, called: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            self.rfile.read(min(int(length), MAX_BYTES) if length.isdigit() else 0)
            known = urlsplit(self.path).path == path
            if known:
                called.set()
            self.send_response(204 if known else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Log nothing; pulls are reported instead."""

    return Handler
