"""What is counted as work, and what a case that cannot be measured says."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bursar.learners.encoders import load_encoder
from bursar.simulation import assistant_corpus
from experiments.bench import learner as bench
from experiments.bench.harness import CannotMeasureError
from experiments.bench.peers.environments import dependencies, python_for
from tests.tiny import tiny_encoder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def sentences():
    return assistant_corpus(40).with_tasks(["intent"]).split("train")


def test_the_work_of_a_sentence_is_what_transformers_does_without_padding(folder, sentences):
    from transformers import BertModel

    encoder = load_encoder(folder)
    model = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").eval()
    head = torch.nn.Linear(model.config.hidden_size, 7)
    for pieces in encoder.read(sentences.take(np.arange(5))):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            head(model(input_ids=torch.from_numpy(pieces.ids)[None]).last_hidden_state.mean(1))
        assert bench.forward_flops(encoder, np.array([len(pieces.ids)]), 7) == counter.get_total_flops()


def test_the_work_of_training_is_what_autograd_does_without_padding(folder, sentences):
    from transformers import BertModel

    encoder = load_encoder(folder)
    model = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").train()
    model.embeddings.requires_grad_(False)
    head = torch.nn.Linear(model.config.hidden_size, 7)
    pieces = encoder.read(sentences.take(np.array([0])))[0]
    with FlopCounterMode(display=False) as counter:
        head(model(input_ids=torch.from_numpy(pieces.ids)[None]).last_hidden_state.mean(1)).sum().backward()
    assert bench.training_flops(encoder, np.array([len(pieces.ids)]), 7) == counter.get_total_flops()


@pytest.mark.parametrize("sides", [bench.training_sides, bench.scoring_sides])
def test_both_sides_are_credited_with_the_same_work_and_can_be_run(sides, folder, sentences):
    ours, theirs = sides(sentences, folder, batch=8)
    assert ours.flops == theirs.flops > 0
    for side in (ours, theirs):
        found = bench.utilisation(side)
        assert 0 < found.value == found.about["utilisation"] < 1


def test_small_text_is_handed_every_sentence_with_its_label(sentences):
    part = sentences.take(np.arange(6))
    a_round = bench.Round(part.take(np.arange(3)), part.take(np.arange(3, 5)), part.take(np.array([5])))
    lines = [json.loads(line) for line in a_round._lines()]
    assert [line["part"] for line in lines] == ["train"] * 3 + ["pool"] * 2 + ["test"]
    assert [line["text"] for line in lines] == [item.text for item in part]
    labels = part.schema["intent"].labels
    assert [labels[line["label"]] for line in lines] == [item.labels["intent"] for item in part]


def test_every_package_that_a_peer_asks_for_is_pinned():
    assert all("==" in package for package in dependencies(bench.SMALL_TEXT))


def test_an_environment_that_cannot_be_made_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("BURSAR_CACHE", str(tmp_path))
    script = tmp_path / "peer.py"
    script.write_text('# /// script\n# dependencies = ["no-such-package==0"]\n# ///\n')
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(CannotMeasureError, match="no-such-package"):
        python_for(script)
    assert list((tmp_path / "bench").iterdir()) == []


def test_without_snips_the_round_is_skipped_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("BURSAR_DATA", str(tmp_path))
    (case,) = [case for case in bench.CASES if case.name == "round-vs-small-text"]
    assert "SNIPS" in case.run()["skipped"]
