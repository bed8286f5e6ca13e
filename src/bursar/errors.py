"""Every error a person can meet, each with the way out.

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
    """What went wrong, in a sentence for the person who has to mend it. The command line exits with 2."""

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        self.message = message
        self.fix = fix
        super().__init__(f"{message}. Fix: {fix}" if fix else message)


class DataError(BursarError):
    """A file, a line or an item that cannot be read as it claims to be."""

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
    """A label that its task cannot hold. Readers catch it and say where it stood."""


class SchemaError(BursarError):
    """Tasks that do not fit each other, or a task asked for that is not there."""


class ConfigError(BursarError):
    """A campaign file with a key that is missing, unknown or has a wrong value."""


class LedgerError(BursarError):
    """A ledger that cannot be opened, or a submission that it refuses."""


class StorageError(LedgerError):
    """The disk or the database cannot be used now: full, read-only or gone. The same may work later."""

    def __init__(self, message: str, *, fix: str | None = None, in_doubt: bool = False) -> None:
        self.in_doubt = in_doubt  # the connection broke: the last write may have been kept, and others may have written
        super().__init__(message, fix=fix)


def is_storage_fault(wrong: BaseException) -> bool:
    """Whether the storage is at fault, rather than what was asked of it.

    >>> is_storage_fault(OSError(errno.ENOSPC, "No space left on device")), is_storage_fault(FileNotFoundError())
    (True, False)
    """
    return isinstance(wrong, StorageError) or (isinstance(wrong, OSError) and wrong.errno in FAULTS)


class SelectionError(BursarError):
    """Confidences, costs or a budget that no selection can be made from."""


class InfeasibleError(SelectionError):
    """A budget that does not reach for what the limits ask for at least."""


class LearnerError(BursarError):
    """A learner that cannot be made, trained, saved or loaded as asked."""


class UntrustedError(LearnerError):
    """A saved model that could run code when it is loaded, and that was not allowed."""


class CheckpointError(LearnerError):
    """A training cannot be taken up from a file: it is damaged, or of another training."""


class ComputeError(BursarError):
    """A unit of work that was given up, because whatever worked on it died every time."""


class AllocationError(BursarError):
    """Estimates, costs or a budget that no split between tasks can be made from."""


class StudioError(BursarError):
    """A Label Studio server that cannot be reached, or that refuses what it was asked."""

    def __init__(self, message: str, *, status: int | None = None, fix: str | None = None) -> None:
        self.status = status  # of its answer, by HTTP; none where there was no answer
        super().__init__(message, fix=fix)
