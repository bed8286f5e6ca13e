"""An encoder that somebody else made runs none of its code."""

from __future__ import annotations

import json

import pytest
import torch

from bursar.errors import LearnerError
from bursar.learners.encoders import load_encoder
from tests.tiny import tiny_encoder


def strange_encoder(folder, mark):
    """An encoder with a model, a tokeniser and weights of its own, all of which make a file when they are run."""
    folder.mkdir()
    code = f"open({str(mark)!r}, 'w')\nclass Own: pass\n"
    for name in ("configuration_own", "modeling_own", "tokenization_own"):
        (folder / f"{name}.py").write_text(code)
    own = {
        "AutoConfig": "configuration_own.Own",
        "AutoModel": "modeling_own.Own",
        "AutoTokenizer": ["tokenization_own.Own", "tokenization_own.Own"],
    }
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": own}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "Own", "auto_map": own}))
    return folder


class Payload:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return type(self.mark).touch, (self.mark,)


def test_the_code_of_an_encoder_is_not_run(tmp_path):
    folder = strange_encoder(tmp_path / "encoder", tmp_path / "mark")
    with pytest.raises(LearnerError, match="cannot be loaded"):
        load_encoder(str(folder))
    assert not (tmp_path / "mark").exists()


def test_the_pickled_weights_of_an_encoder_run_no_code(tmp_path):
    folder = tiny_encoder(tmp_path / "encoder")
    (folder / "model.safetensors").unlink()
    torch.save({"embeddings.word_embeddings.weight": Payload(tmp_path / "mark")}, folder / "pytorch_model.bin")
    with pytest.raises(LearnerError, match="cannot be loaded"):
        load_encoder(str(folder))
    assert not (tmp_path / "mark").exists()
