"""Saved models: the trained weights as safetensors, the rest as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from bursar.errors import LearnerError
from bursar.learners.sharing import SharedModel

WEIGHTS, DESCRIPTION = "weights.safetensors", "learner.json"


def save_models(
    folder: Path, about: Mapping[str, object], models: Sequence[SharedModel], temperatures: Mapping[str, float]
) -> None:
    """Write the models' trained weights; ``about`` describes the learner that they belong to."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    kept = {f"{at}.{k}": v for at, model in enumerate(models) for k, v in _learned(model).items()}
    save_file(kept, folder / WEIGHTS)
    found = {"temperatures": temperatures, "settled": [model.encoder.settled() for model in models]}
    (folder / DESCRIPTION).write_text(json.dumps({**about, "found": found}, indent=1))


def load_models(
    folder: Path, about: Mapping[str, object], make: Callable[[], list[SharedModel]]
) -> tuple[list[SharedModel], dict[str, float]]:
    """The models and temperatures of a folder; ``make`` builds untrained models. Other learners' are refused."""
    from safetensors.torch import load_file

    try:
        saved = json.loads((folder / DESCRIPTION).read_text())
        found = saved.pop("found")
        if saved != json.loads(json.dumps(about)):
            raise LearnerError("it is a learner of other tasks or settings")
        weights = load_file(folder / WEIGHTS)
        with torch.random.fork_rng(devices=[]):
            models = make()
        for at, (model, settled) in enumerate(zip(models, found["settled"], strict=True)):
            model.encoder.resettle(settled)
            own = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith(f"{at}.")}
            if own.keys() != _learned(model).keys():
                raise LearnerError("weights are missing, or there are too many")
            model.load_state_dict(own, strict=False)
            model.eval()
        return models, {str(name): float(t) for name, t in found["temperatures"].items()}
    except Exception as wrong:  # a damaged file can raise anything
        raise LearnerError(f"{folder} holds no learner that can be loaded: {wrong}") from None


def _learned(model: SharedModel) -> dict[str, Tensor]:
    """The state of a model without its frozen parameters."""
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    return {name: value.contiguous() for name, value in model.state_dict().items() if name not in frozen}
