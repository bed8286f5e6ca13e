"""A bell that Label Studio rings when somebody has annotated, so that nobody waits for the next pull.

Nothing that it says is believed, or even read: whoever rings makes us look, and what there is is asked for as always.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from bursar.errors import ConfigError

LONGEST = 1 << 20  # bytes of a message that are taken off the line
PATIENCE = 10.0  # seconds for whoever rings to say something


class WebhookListener:
    """Listens at an address of this machine.

    >>> import urllib.request
    >>> with WebhookListener("http://127.0.0.1:0/annotated") as webhook:
    ...     said = urllib.request.urlopen(webhook.url, data=b"{}").status
    ...     said, webhook.wait(5.0), webhook.wait(0.0)
    (204, True, False)
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme != "http" or host is None or port is None:
            raise ConfigError(
                f"{url!r} is no address to be told at", fix="give one of this machine, as http://127.0.0.1:8123/"
            )
        self._rung = threading.Event()
        path = parts.path or "/"
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(path, self._rung))
        except OSError as error:
            raise ConfigError(
                f"{url}: cannot listen there: {error.strerror or error}", fix="give another port, or another address"
            ) from None
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
        """Until it rings, or for so long; whether it rang. However often it rang, it is once."""
        rung = self._rung.wait(seconds)
        self._rung.clear()
        return rung


def _handler(path: str, rung: threading.Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            self.rfile.read(min(int(length), LONGEST) if length.isdigit() else 0)
            known = urlsplit(self.path).path == path
            if known:
                rung.set()
            self.send_response(204 if known else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing: what was pulled is told."""

    return Handler
