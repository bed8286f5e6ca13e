"""The web server: builds the ASGI application and runs it in one process."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from bursar.errors import ConfigError
from bursar.web import api_files, api_lead, api_people, api_work, pages
from bursar.web.api import add_error_handlers
from bursar.web.app_state import AppState
from bursar.web.connections import ACCEPTED_AT_ONCE, PER_ADDRESS, Limits, descriptors, protocol
from bursar.web.http_errors import not_cancelled, rate_limited
from bursar.web.security import Guard, HostPolicy
from bursar.web.start import StartState, make_start_app

PORTS = 20  # tried in turn
BACKLOG = 512  # connections waiting to be accepted
OPTIONS: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
OPTIONS["timeout_graceful_shutdown"] = 3  # seconds for requests in progress


def make_app(app_state: AppState) -> Guard:
    """The pages and the API of a project as an ASGI application. Closes the project on shutdown."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        events = asyncio.create_task(app_state.hub.run())
        app_state.trainer.start()
        try:
            yield
        finally:
            events.cancel()
            with suppress(asyncio.CancelledError):
                await events
            await asyncio.to_thread(app_state.close)

    app = FastAPI(
        title="Bursar",
        summary="Annotate, watch and manage a campaign.",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.bursar = app_state
    add_error_handlers(app, pages.error_page)
    for part in (api_work, api_people, api_lead, api_files, pages):
        app.include_router(part.router)
    pages.add_static(app)
    return Guard(app, app_state.host_policy)


def find_port(host: str, port: int | None, first: int = 8000) -> socket.socket:
    """A listening socket on this port, or on the first free port if none is given."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    failure: OSError | None = None
    for number in [port] if port is not None else range(first, first + PORTS):
        try:
            return socket.create_server((host, number), family=family, backlog=128, dualstack_ipv6=both)
        except OSError as error:
            failure = error
    where = f"port {port}" if port is not None else f"ports {first} to {first + PORTS - 1}"
    why = str(failure).partition(" (while ")[0]  # the rest repeats the address
    raise ConfigError(f"cannot listen on {where} of {host}: {why}", fix="choose another with --port")


def _address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def serve_start(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    on_start: Callable[[str], None] = lambda address: None,
    on_created: Callable[[Path], None] = lambda project: None,
    **settings: Any,
) -> None:
    """Serve the page that creates a project in ``folder``, to this machine only; then the project, until Ctrl-C.

    ``settings`` are those of ``serve``; ``on_created`` is called with the project before it is served.
    """
    host_policy = HostPolicy(host, None, (socket.gethostname(),))
    if not host_policy.loopback:
        raise ConfigError(
            f"{host} is reachable from other machines, and the start page has no accounts",
            fix="create the project first: bursar new PROJECT --from DATA",
        )
    listener = find_port(host, port)
    start = StartState(folder)
    try:
        app = make_start_app(start, host_policy)
        logging.getLogger("uvicorn.error").addFilter(not_cancelled)  # Ctrl-C while a file is read
        server = uvicorn.Server(uvicorn.Config(app, **OPTIONS))
        start.on_created = partial(setattr, server, "should_exit", True)
        on_start(_address(host, listener))
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener.dup()])  # the server closes its own; connections wait in ours
        if start.created is not None:
            on_created(start.created)
            serve(start.created, host=host, listener=listener, **settings)
    finally:
        start.close()
        listener.close()


class _Server(uvicorn.Server):
    """Ends event streams on shutdown, which would otherwise block it."""

    def __init__(self, config: uvicorn.Config, app_state: AppState) -> None:
        super().__init__(config)
        self.app_state = app_state

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # the system may queue more than are accepted at once

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.app_state.hub.close()
        super().handle_exit(sig, frame)


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    public: str | None = None,
    per_address: int = PER_ADDRESS,
    log: bool = False,
    trust: bool = False,
    engine: str = "here",
    on_start: Callable[[str], None] = lambda address: None,
    listener: socket.socket | None = None,
) -> None:
    """Serve a project until Ctrl-C. ``on_start`` is called with the address once the server listens.

    ``listener`` is a socket that listens already, in place of a port.
    ``per_address`` limits connections per client address; a local proxy in front of a ``public`` address is exempt.
    ``trust`` allows training to load saved models that could run code. ``engine`` selects where the pool is scored.
    """
    app_state = AppState(folder, HostPolicy(host, public, (socket.gethostname(),)), trust=trust, engine=engine)
    try:
        listener = listener or find_port(host, port)
    except BaseException:
        app_state.close()
        raise
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("bursar.web").setLevel(logging.INFO if log else logging.WARNING)
    config = uvicorn.Config(
        make_app(app_state),
        http=protocol(Limits.under(descriptors(), per_address, proxy=public is not None)),
        backlog=ACCEPTED_AT_ONCE,
        **OPTIONS,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=32_768,
        forwarded_allow_ips="127.0.0.1" if public else "",
        proxy_headers=public is not None,
    )
    for name in ("asyncio", "uvicorn.error"):  # any client can trigger their messages
        rate_limited(name)
    server = _Server(config, app_state)
    on_start(public or _address(host, listener))
    before = signal.getsignal(signal.SIGINT)
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGINT, before)
        listener.close()
        app_state.close()
