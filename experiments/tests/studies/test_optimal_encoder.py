"""A judge that fine-tunes an encoder."""

from __future__ import annotations

import numpy as np

from bursar.oracle import LabellingProblem
from bursar.simulation import assistant_corpus
from experiments.studies.optimal_encoder import EncoderJudge

SIZES = {"pool": 40, "warm": 12, "aside": 16, "validation": 40, "test": 40}


def test_a_fine_tuned_encoder_judges_too():
    corpus = assistant_corpus(170, seed=5).with_tasks(["intent"])
    problem = LabellingProblem.draw(corpus, SIZES, shape=(3, 4), metric="weighted_f1", seed=0)
    judge = EncoderJudge(problem, options={"layers": 1, "steps": 6})
    first, second = judge.scores([np.arange(8), np.arange(8, 16)], "test")
    assert judge.scores([np.arange(8)], "test")[0] == first
    assert 0 <= min(first, second) <= 1
    assert len(judge.predict_proba(np.arange(8))["intent"]) == 40
