"""``bursar run`` resumes a run from someone else without running its code, unless trusted."""

from __future__ import annotations

import shutil

import pytest

from bursar.campaign import GoldAnnotator, Run, load_config
from tests.campaign.test_trust import planted

CAMPAIGN = """
tasks = ["intent", "slots"]
compare = ["RANDOM"]
[corpus]
items = 200
test_items = 20
dev_items = 20
[budget]
seed_items = 20
per_round = 100
rounds = 1
[learner]
name = "scikit"
estimator = "naive-bayes"
[audit]
share = 0.0
"""


@pytest.fixture
def mark(tmp_path):
    """A run whose first round is answered, with a model of it that makes this file when it is loaded."""
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    config = load_config(tmp_path / "campaign.toml")
    mine, theirs = (Run(tmp_path / name, config) for name in ("mine", "theirs"))
    for run in (mine, theirs):
        run.folder.mkdir()
        run.pin()
        campaign = run.campaign(run.arms[0])
        gold = GoldAnnotator(run.parts.corpus)
        campaign.tell({want.id: gold.annotate(want.id, want.tasks) for want in campaign.ask().items})
        if run is theirs:
            campaign.ask()  # which trains
        campaign.close()
    shutil.copytree(theirs.folder / "models", mine.folder / "models")
    assert planted(mine.folder, tmp_path / "mark")
    return tmp_path / "mark"


def test_a_run_refuses_a_model_that_could_run_code(bursar, mark):
    code, _, err = bursar("run", "campaign.toml", "--run", "mine", "--workers", 1)
    assert code == 2
    assert "estimators.joblib holds a pickle, which can run code when it is loaded" in err
    assert "--trust" in err
    assert not mark.exists()


def test_a_run_that_is_trusted_loads_it_in_its_processes(bursar, mark):
    code, _, err = bursar("run", "campaign.toml", "--run", "mine", "--trust", "--workers", 2)
    assert code == 0, err
    assert mark.exists()
