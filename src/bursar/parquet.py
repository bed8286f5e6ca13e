"""Read Bursar's own tables from Parquet files, with errors that name the file and the column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bursar.errors import DataError


def read_columns(file: Path, columns: Sequence[str], *, what: str, writer: str, folder: str) -> Any:
    """Read a table that must have these columns.

    For error messages: ``what`` the file should be, ``writer`` of such files, and the fix if it is a ``folder``.
    """
    if file.is_dir():
        raise DataError("it is a folder", path=file, fix=folder)
    try:
        table = pq.read_table(file)
    except FileNotFoundError:
        raise DataError("there is no such file", path=file) from None
    except (OSError, pa.ArrowException) as wrong:
        reason = str(wrong).splitlines()[0].rstrip(".")
        raise DataError(f"it is no {what} in Parquet: {reason}", path=file) from None
    for column in columns:
        if column not in table.column_names:
            raise DataError(
                f"it is no {what}: there is no column {column!r}",
                path=file,
                fix=f"it has {', '.join(table.column_names) or 'none'}; {writer} writes what is needed",
            )
    return table
