"""A PostgreSQL server of our own, in a folder of its own, that nobody can reach over a network."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.needs import lacking, module_for

GUARDED, PASSWORD = "guarded", "open sesame @ 7"  # one role needs a password; all others are trusted


def programs() -> Path:
    """The folder of the server's programs, or skips the test by its name."""
    module_for("postgresql", "psycopg", "psycopg is not here: pip install 'bursar[postgres]'")
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    folders = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    if not folders:
        lacking("postgresql", "the programs of a PostgreSQL server are not here")
    return folders[0]


def quick_folder() -> str:
    """Memory, where there is enough: a killed server finds there what it finds on a disk. A socket's path is short."""
    memory = "/dev/shm"
    enough = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return memory if enough else "/tmp"


class PostgresServer:
    """Runs from ``start`` to ``stop``; it also goes when the tests are killed."""

    def __init__(self) -> None:
        self._programs = programs()
        self._identity: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="bursar-", dir=quick_folder()))
        if os.geteuid() == 0:  # the server refuses to run as root
            try:
                owner = pwd.getpwnam("postgres")
            except KeyError:
                lacking("postgresql", "PostgreSQL does not run as root, and there is no user 'postgres'")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self._identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._run("initdb", "-D", "data", "-U", "bursar", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {GUARDED} scram-sha-256\nlocal all all trust\n")
        self.start()
        self.raw(f"CREATE ROLE {GUARDED} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._identity)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        import psycopg

        settings = {"listen_addresses": "", "unix_socket_directories": str(self.folder), "shared_buffers": "16MB"}
        command = [str(self._programs / "postgres"), "-D", "data"]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        if wrapper := shutil.which("setpriv"):
            command = [wrapper, "--pdeathsig", "QUIT", *command]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._identity)
        until = time.monotonic() + 300
        while True:
            try:
                self.raw("SELECT 1")
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)

    def kill(self) -> None:
        """An immediate end: nothing is finished, nothing is written; the next start recovers from the log."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    def url(self, user: str = "bursar", password: str | None = None, database: str = "postgres", **query: str) -> str:
        """The address of a ledger on this server."""
        who = user if password is None else f"{user}:{quote(password, safe='')}"
        more = {"host": str(self.folder), **query}
        return f"postgresql://{who}@/{database}?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in more.items())

    def raw(self, statement: str, schema: str = "public") -> list[tuple[Any, ...]]:
        """What the server answers to a statement, past the ledger."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user="bursar", dbname="postgres", autocommit=True) as connection:
            connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", [schema])
            found = connection.execute(statement)
            return found.fetchall() if found.description else []
