"""What tests of trainings share: a tiny encoder, and a few items of the built-in corpus."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.simulation import assistant_corpus
from tests.learners.trainings import TASKS
from tests.tiny import tiny_encoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def corpus():
    return assistant_corpus(600, seed=5).with_tasks(TASKS)


@pytest.fixture
def train(corpus):
    return corpus.split("train").take(np.arange(50))


@pytest.fixture
def dev(corpus):
    return corpus.split("dev").take(np.arange(20))


@pytest.fixture
def test(corpus):
    return corpus.split("test").take(np.arange(25))
