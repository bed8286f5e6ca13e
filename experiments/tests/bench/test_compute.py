"""The measurement of scoring in shards measures what a campaign does."""

from __future__ import annotations

import pytest

from bursar.campaign import pool_scoring
from bursar.compute import THIS_PROCESS, Processes, run_units
from experiments.bench import compute
from tests.campaign.pools import Pool

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_side_scores_every_pool_once_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(pool_scoring, "FEW", 10)
    monkeypatch.setattr(compute, "POOL", 300)
    pool = Pool(tmp_path)
    side = compute.Scoring(pool.learner, pool.models.saved(), [pool.items] * 2, THIS_PROCESS, {"start_seconds": 1.0})
    measured = [compute.items_a_second(side) for _ in range(2)]
    assert not side.pools
    assert not side.folder.exists()
    for one in measured:
        assert one.value == pytest.approx(300 / one.about["seconds"])
        assert one.about["start_seconds"] == 1.0
        assert one.about["processor_seconds"] > 0


def test_the_time_of_workers_is_counted():
    with Processes(1) as engine:
        run_units(compute.multiply, [{"number": 0, "products": 1}], engine=engine)
        before = compute.processor_seconds()
        run_units(compute.multiply, [{"number": 1, "products": 60}], engine=engine)
        assert compute.processor_seconds() - before > 0.1
