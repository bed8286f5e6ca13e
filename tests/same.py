"""Whether two corpora are the same, whatever their internal codes."""

from __future__ import annotations

import numpy as np


def differences(one, other, most=3):
    """How two corpora differ, in words; empty if items, splits and labels are the same."""
    if len(one) != len(other):
        return [f"{len(one)} items against {len(other)}"]
    found = []
    if set(one.schema) != set(other.schema):
        found.append(f"tasks {sorted(one.schema)} against {sorted(other.schema)}")
    for at in range(len(one)):
        mine, yours = one[at], other[at]
        found += [
            f"item {mine.id!r}: {what} {getattr(mine, what)!r} against {getattr(yours, what)!r}"
            for what in ("id", "split", "text", "words", "pair", "group", "labels", "metadata")
            if getattr(mine, what) != getattr(yours, what)
        ]
        if not np.array_equal(mine.image, yours.image):
            found.append(f"item {mine.id!r}: another image")
        if len(found) >= most:
            break
    return found[:most]


def same_labels(one, other):
    return np.array_equal(one.present, other.present) and one.rows.equals(other.rows)
