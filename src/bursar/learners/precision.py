"""The precision of matrix products: float32, or bfloat16 where the processor supports it."""

from __future__ import annotations

import torch

from bursar.errors import ConfigError

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
NATIVE = ("avx512_bf16", "amx_bf16")  # instruction sets; without one of them bfloat16 is slower than float32


def chosen_precision(name: str) -> str:
    """Resolve the setting: ``auto`` is the fastest precision on this processor.

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
    capabilities = getattr(torch.cpu, "get_capabilities", None)  # missing in the oldest supported torch
    found = capabilities() if capabilities is not None else {}
    return any(found.get(name, False) for name in NATIVE)
