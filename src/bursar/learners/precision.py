"""In how many bytes a learner multiplies: four everywhere, two where the processor has instructions for that."""

from __future__ import annotations

import torch

from bursar.errors import ConfigError

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
NATIVE = ("avx512_bf16", "amx_bf16")  # instructions that multiply bfloat16; without them it is slower than float32


def chosen_precision(name: str) -> str:
    """The precision that a setting stands for: ``auto`` is the fastest that this processor has instructions for.

    >>> chosen_precision("float32")
    'float32'
    >>> chosen_precision("auto") in PRECISIONS
    True
    >>> chosen_precision("half")
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: learner.precision = 'half'. Fix: use auto, float32, bfloat16
    """
    if name == "auto":
        return "bfloat16" if multiplies_bfloat16() else "float32"
    if name not in PRECISIONS:
        raise ConfigError(f"learner.precision = {name!r}", fix=f"use {', '.join(['auto', *PRECISIONS])}")
    return name


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16."""
    tell = getattr(torch.cpu, "get_capabilities", None)  # not in the oldest torch that is supported
    found = tell() if tell is not None else {}
    return any(found.get(name, False) for name in NATIVE)
