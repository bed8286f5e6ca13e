"""A Ray cluster of two nodes, both on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.compute.study import ROOT

MISSING = [name for name in ("ray", "grpc") if importlib.util.find_spec(name) is None]


class Nodes:
    """The head and the worker, each a process group of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.client_port = free_port()
        self.address = f"127.0.0.2:{self.port}"
        self.doors = {"direct": f"ray:{self.address}", "client": f"ray://127.0.0.2:{self.client_port}"}
        self.groups = {}

    def start(self, name, *options):
        ray_itself = "from ray.scripts.scripts import main; main()"
        command = [sys.executable, "-c", ray_itself, "start", "--block", "--num-cpus=1", *options]
        with open(self.folder / f"{name}.log", "w") as log:
            self.groups[name] = subprocess.Popen(
                [*command, "--object-store-memory=100000000", "--disable-usage-stats"],
                cwd=ROOT,
                start_new_session=True,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def await_head(self, port):
        for _ in range(600):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.2", port)) == 0:
                    return
            if self.groups["head"].poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError((self.folder / "head.log").read_text())

    def await_both(self):
        """Until another process sees two nodes."""
        look = (
            "import ray, sys, time; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR');"
            "until = time.monotonic() + 60\n"
            "while len([n for n in ray.nodes() if n['Alive']]) < 2: assert time.monotonic() < until; time.sleep(0.2)"
        )
        seen = subprocess.run([sys.executable, "-c", look, self.address], cwd=ROOT, capture_output=True, text=True)
        logs = "\n".join(file.read_text() for file in self.folder.glob("*.log"))
        assert seen.returncode == 0, f"{seen.stderr}\n{logs}"

    def close(self):
        for name in list(self.groups):
            self.kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, name):
        process = self.groups.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.2", 0))
        return one.getsockname()[1]


@contextmanager
def a_cluster():
    """Two nodes for a while, and the settings needed to connect to them."""
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # on a busy machine its workers would hardly come up
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # besides the path that this process was started with
        nodes = two_nodes()
        try:
            yield nodes
        finally:
            nodes.close()


def two_nodes(tries=3):
    """A cluster of two nodes. On a busy machine a node of Ray's may give up on the other while it comes up."""
    nodes = Nodes(Path(tempfile.mkdtemp(prefix="ray", dir="/tmp")))  # its sockets want a short name
    try:
        head = ["--head", "--node-ip-address=127.0.0.2", f"--port={nodes.port}", f"--temp-dir={nodes.folder}"]
        client_server = f"--ray-client-server-port={nodes.client_port}"
        nodes.start("head", *head, client_server, "--include-dashboard=false")
        nodes.await_head(nodes.port)
        nodes.start("worker", f"--address={nodes.address}", "--node-ip-address=127.0.0.3")
        nodes.await_head(nodes.client_port)
        nodes.await_both()
    except BaseException as wrong:
        nodes.close()
        if tries > 1 and isinstance(wrong, AssertionError):
            return two_nodes(tries - 1)
        raise
    return nodes


def await_both(engine):
    for _ in range(600):
        if engine.workers == 2:
            return
        time.sleep(0.1)
    raise AssertionError("the worker node did not come")
