"""The exceptions of this library. Each message says what was wrong, where, and how to fix it.

>>> raise DataError("the label is not in the schema", path="a.jsonl", line=3, item="u7", fix="add it to 'labels'")
Traceback (most recent call last):
    ...
bursar.errors.DataError: a.jsonl:3: item 'u7': the label is not in the schema. Fix: add it to 'labels'
"""

from __future__ import annotations

import errno
from os import PathLike

FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE}


class BursarError(Exception):
    """Base class: a message for the user, and a fix. The command line exits with code 2.

    >>> try:
    ...     raise BursarError("the budget is 0", fix="give a positive number")
    ... except BursarError as wrong:
    ...     print(wrong.message, "/", wrong.fix)
    the budget is 0 / give a positive number
    """

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        self.message = message
        self.fix = fix
        super().__init__(f"{message}. Fix: {fix}" if fix else message)


class DataError(BursarError):
    """A file, a line or an item that cannot be read."""

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        item: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.path = None if path is None else str(path)
        self.line = line
        self.item = item
        place = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        whose = "" if item is None else f"item {item!r}: "
        super().__init__(f"{place}{whose}{message}", fix=fix)


class LabelError(BursarError):
    """A label that is invalid for its task. Readers catch it and add file and line."""


class SchemaError(BursarError):
    """An invalid task, tasks that do not fit together, or an unknown task."""


class ConfigError(BursarError):
    """A setting or option that is missing, unknown or has a wrong value."""


class LedgerError(BursarError):
    """A ledger that cannot be opened, or a write that it rejects."""


class StorageError(LedgerError):
    """The disk or database is unavailable: full, read-only or gone. Trying again later may work."""

    def __init__(self, message: str, *, fix: str | None = None, in_doubt: bool = False) -> None:
        self.in_doubt = in_doubt  # the connection broke, so the last write may or may not have been stored
        super().__init__(message, fix=fix)


def is_storage_fault(wrong: BaseException) -> bool:
    """Whether an error is a fault of the disk or database rather than of the request."""
    return isinstance(wrong, StorageError) or (isinstance(wrong, OSError) and wrong.errno in FAULTS)


class SelectionError(BursarError):
    """Invalid input of a selection: confidences, costs, budget, strategy or limits."""


class InfeasibleError(SelectionError):
    """A budget too small for the minimums of the limits."""


class LearnerError(BursarError):
    """A learner that cannot be created, trained, saved or loaded."""


class UntrustedError(LearnerError):
    """A saved model that could run code on loading, without permission to do so."""


class CheckpointError(LearnerError):
    """A checkpoint that is damaged or belongs to another training run."""


class ComputeError(BursarError):
    """A unit of work that was given up because every worker that ran it died."""


class AllocationError(BursarError):
    """Invalid input of a budget split: estimates, costs or budget."""


class StudioError(BursarError):
    """A Label Studio server that cannot be reached, or that rejects a request."""

    def __init__(self, message: str, *, status: int | None = None, fix: str | None = None) -> None:
        self.status = status  # HTTP status; ``None`` if there was no response
        super().__init__(message, fix=fix)
