"""A pool scored on a Ray cluster of two nodes: the same bits, and nothing is lost with a node."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bursar.campaign import pool_scoring
from bursar.cli import main
from bursar.compute import THIS_PROCESS, make_engine
from bursar.selection import make_strategy
from tests.campaign.pools import Pool, assert_same, config_of, decisions
from tests.compute.nodes import MISSING, await_both
from tests.tiny import tiny_encoder

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.usefixtures("one_thread"),
]

CAMPAIGN = """
tasks = ["intent", "slots"]
compare = ["RANDOM"]
[corpus]
items = 600
pool_items = 300
dev_items = 20
test_items = 20
[budget]
seed_items = 30
per_round = 150
rounds = 1
[learner]
encoder = "{encoder}"
epochs = 2
evaluate_every = 1
learning_rate = 0.01
"""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(pool_scoring, "SHARD", 32)
    monkeypatch.setattr(pool_scoring, "FEW", 128)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return Pool(tmp_path_factory.mktemp("pool"))


@pytest.fixture
def here(pool):
    return pool.all_answers(pool.scoring(THIS_PROCESS))


@pytest.fixture(scope="module", params=["client", "direct"])
def cluster(request, nodes):
    with make_engine(nodes.doors[request.param]) as engine:
        await_both(engine)
        yield engine


def test_a_cluster_changes_no_bit_of_what_a_model_says(pool, here, cluster):
    assert_same(pool.all_answers(pool.scoring(cluster)), here)


@pytest.mark.parametrize("strategy", ["MT-AVG", "COVER"])
def test_a_campaign_decides_the_same_on_a_cluster(cluster, tmp_path, strategy):
    config = config_of(tiny_encoder(tmp_path / "encoder"), strategy)
    assert decisions(config, tmp_path / "there", cluster) == decisions(config, tmp_path / "here")


def test_the_command_line_reaches_a_cluster(nodes, tmp_path, capsys, monkeypatch):
    (tmp_path / "spring.toml").write_text(CAMPAIGN.format(encoder=tiny_encoder(tmp_path / "encoder")))
    monkeypatch.chdir(tmp_path)
    results = {}
    for name, more in (("here", ["--workers", "1"]), ("there", ["--engine", nodes.doors["direct"]])):
        monkeypatch.setattr("sys.argv", ["bursar", "run", "spring.toml", "--run", name, "--json", *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        results[name] = json.loads(capsys.readouterr().out)
    assert results["there"] == results["here"]


def test_when_a_node_is_killed_the_whole_pool_is_scored(nodes, pool, here, tmp_path):
    told = []

    def progress(what, done):
        told.append(what)
        if done > 0.3 and "worker" in nodes.groups:
            nodes.kill("worker")

    with make_engine(nodes.doors["direct"]) as cluster:
        await_both(cluster)
        scoring = pool.scoring(cluster, tmp_path)
        scored = scoring.scores(pool.learner, make_strategy("MT-AVG"), pool.items, 3, progress)
    np.testing.assert_array_equal(scored.confidence, here["MT-AVG confidence"])
    assert "worker" not in nodes.groups
