"""The learner's defaults at the time of the studies that name none of their own.

A unit is found by the settings it names. What it leaves out must stay what it was when the unit was run, so defaults
of the learner that changed since are kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

THEN = {"precision": "float32"}
TRANSFORMER_THEN = {**THEN, "epochs": 30, "smoothing": 0.1, "tag_head": "linear"}
WITHOUT_STEPS = ("probe", "scikit")  # learners that have none of these settings


def with_defaults_of_then(options: Mapping[str, Any], learner: str = "transformer") -> dict[str, Any]:
    """A unit's options of the learner, with the defaults that they were named under.

    >>> with_defaults_of_then({"steps": 120})
    {'precision': 'float32', 'epochs': 30, 'smoothing': 0.1, 'tag_head': 'linear', 'steps': 120}
    """
    if learner in WITHOUT_STEPS:
        return dict(options)
    return {**(TRANSFORMER_THEN if learner == "transformer" else THEN), **options}
