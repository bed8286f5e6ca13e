"""A real Label Studio, started for tests."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

HOME = Path(__file__).parents[2]
EXECUTABLE = Path(os.environ.get("BURSAR_LABEL_STUDIO") or HOME / ".label-studio" / "bin" / "label-studio")
NAME, PASSWORD = "ada@example.com", "Correct-Horse-1"
PATIENCE = 900  # seconds that a first start may take on a busy machine


class Server:
    """A Label Studio on a port and in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        self.url, self.token = f"http://127.0.0.1:{port}", secrets.token_hex(20)
        quiet = {
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
        }
        command = [EXECUTABLE, "start", "--no-browser", "--data-dir", folder / "data", "--internal-host", "127.0.0.1"]
        command += ["--host", self.url, "--port", port, "--username", NAME, "--password", PASSWORD]
        command += ["--user-token", self.token, "--enable-legacy-api-token"]
        self.log = folder / "log.txt"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ
                | quiet
                | {"LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "SSRF_PROTECTION_ENABLED": "false"},
            )
        until = time.monotonic() + PATIENCE
        while not self._is_up():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < until, self.log.read_text()[-3000:]
            time.sleep(0.5)
        self.http = httpx.Client(base_url=self.url, headers={"Authorization": f"Token {self.token}"}, timeout=120)

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        self.http.close()
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    # -- what people do there ----------------------------------------------------------------------------------------
    def ask(self, method, path, **more):
        reply = self.http.request(method, path, **more)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def tasks(self, project):
        return self.ask("GET", "/api/tasks/", params={"project": project, "fields": "all", "page_size": 100})["tasks"]

    def task(self, project, item):
        return next(task for task in self.tasks(project) if task["data"]["id"] == item)

    def annotate(self, task, results, **more):
        body = {"result": results, "lead_time": 2.5} | more
        return self.ask("POST", f"/api/tasks/{task['id']}/annotations/", json=body)["id"]

    def person(self, name):
        known = {user["email"]: user["id"] for user in self.ask("GET", "/api/users/")}
        address = f"{name}@example.com"
        return known.get(address) or self.ask("POST", "/api/users/", json={"email": address, "username": name})["id"]
