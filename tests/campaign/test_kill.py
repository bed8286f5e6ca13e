"""A campaign's process is killed at random moments; what is resumed ends in the ledger of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bursar.campaign import Run
from tests.tiny import tiny_encoder

TOML = """
tasks = ["intent", "slots"]
compare = ["RANDOM"]
[corpus]
items = 400
dev_items = 20
test_items = 30
[budget]
seed_items = 20
per_round = 200
rounds = 3
[learner]
encoder = "{encoder}"
epochs = 6
evaluate_every = 2
learning_rate = 0.01
frozen_layers = 1
[audit]
share = 0.15
"""


def start(folder, toml, *more):
    """The command as a user types it, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "bursar", "run", str(toml), "--run", str(folder), "--json", *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def strike(process, alone):
    """Kill a run with all its workers, or the process alone: its workers must notice."""
    if alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finish(folder, toml, *more):
    process = start(folder, toml, *more)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()


def fingerprints(folder):
    run = Run.open(folder)
    found = []
    for arm in run.arms:
        campaign = run.campaign(arm)
        found.append(campaign.ledger.fingerprint())
        campaign.close()
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    place = tmp_path_factory.mktemp("kill")
    toml = place / "campaign.toml"
    toml.write_text(TOML.format(encoder=tiny_encoder(place / "encoder")))
    begun = time.monotonic()
    finish(place / "whole", toml)
    return place, toml, time.monotonic() - begun, fingerprints(place / "whole")


def kill_and_resume(undisturbed, kills, seed):
    place, toml, took, expected = undisturbed
    rng = np.random.default_rng(seed)
    struck = runs = 0
    while struck < kills:
        folder = place / f"killed-{seed}-{runs}"
        runs += 1
        while struck < kills:
            process, begun = start(folder, toml), time.monotonic()
            try:
                process.wait(timeout=rng.uniform(0.2, 0.9) * took)
                took = min(took, time.monotonic() - begun)  # the machine is less busy than it was
                break  # it got to the end; the next strikes hit a new run
            except subprocess.TimeoutExpired:
                struck += 1
                strike(process, alone=struck % 2 == 0)
        finish(folder, toml)
        assert fingerprints(folder) == expected


def test_a_campaign_killed_several_times_ends_in_the_same_ledger(undisturbed):
    kill_and_resume(undisturbed, kills=4, seed=1)
