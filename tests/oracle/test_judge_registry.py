"""Which judges fit which tasks, told before any of them is made."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.corpus import CorpusBuilder
from bursar.errors import ConfigError
from bursar.oracle.judge import JUDGES, check_fit, judges_for, make_judge
from bursar.oracle.network import LARGEST, NetworkJudge
from bursar.simulation import assistant_corpus
from tests.oracle import small

CLASSES = {"kind": "classification", "labels": ["a", "b"]}


def corpus_of(schema, **item):
    builder = CorpusBuilder(schema)
    builder.add("i1", labels={}, **item)
    return builder.build()


def test_every_kind_of_task_has_its_judges():
    found = judges_for(assistant_corpus(20))
    assert found["intent"] == ["probe", "aoe", "cnn", "lstm"]
    assert found["slots"] == ["probe", "tagger"]
    assert found["dependencies"] == []


@pytest.mark.parametrize(
    ("item", "judges"),
    [
        ({"text": "one text"}, ["probe", "aoe", "cnn", "lstm"]),
        ({"text": "one text", "pair": "and another"}, ["probe"]),  # networks would read the first alone
        ({"image": np.zeros((28, 28), dtype=np.uint8)}, ["probe", "cnn"]),
        ({"image": np.zeros((5, 5), dtype=np.uint8)}, ["probe"]),
        ({"image": np.zeros((28, 28, 3), dtype=np.uint8)}, ["probe"]),
    ],
)
def test_what_there_is_to_read_decides_as_well(item, judges):
    assert judges_for(corpus_of({"t": CLASSES}, **item)) == {"t": judges}


def test_a_judge_that_does_not_fit_is_refused_with_those_that_do():
    with pytest.raises(
        ConfigError, match=r"'lstm' cannot judge t: .* t \(classification\), of images of 28 × 28.*probe, cnn"
    ):
        check_fit("lstm", corpus_of({"t": CLASSES}, image=np.zeros((28, 28), dtype=np.uint8)))
    with pytest.raises(ConfigError, match=r"'cnn' cannot judge t: .*of pairs of texts.*all of them: probe$"):
        check_fit("cnn", corpus_of({"t": CLASSES}, text="one", pair="two"))


def test_several_tasks_of_one_kind_have_a_network_each():
    corpus = corpus_of({"t": CLASSES, "u": CLASSES}, text="one text")
    for judge in ("probe", "aoe", "cnn", "lstm"):
        check_fit(judge, corpus)


@pytest.mark.parametrize("judge", JUDGES)
def test_who_fits_can_be_made(judge, monkeypatch):
    monkeypatch.setattr("bursar.oracle.probe.ProbeJudge.of", lambda problem, progress: small.probe(problem))
    problem = small.texts(["slots"] if judge == "tagger" else ["intent"])
    check_fit(judge, problem.corpus)
    assert make_judge(judge, problem).pool == len(problem.pool)


def test_large_batches_of_labels_are_trained_on_in_smaller_ones():
    problem = small.texts(batches=1, size=60)
    assert NetworkJudge(problem, "aoe").settings.batch == LARGEST
