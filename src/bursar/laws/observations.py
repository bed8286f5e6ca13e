"""The table that laws are fitted to: one row per trained model, with its setting and score.

``n`` is the number of labelled tokens of the real task, ``n_other`` that of each synthetic one (0 for a single task),
``tasks`` the number of tasks (T), ``ami`` the mean adjusted mutual information of the synthetic tasks with the real
one, ``score`` the F1 of the real task from 0 to 1. A single task has neither ``alpha`` nor ``ami``. ``source`` (the
corpus), ``settings`` (a digest of the training's) and ``version`` (of Bursar) say where a row comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bursar.corpus.formats.format import replacing_bytes
from bursar.errors import ConfigError, DataError
from bursar.parquet import read_columns
from bursar.ragged import BoolArray, FloatArray, IntArray

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("n_other", pa.int64()),
        ("tasks", pa.int64()),
        ("ami", pa.float64()),
        ("alpha", pa.float64()),
        ("architecture", pa.string()),
        ("seed", pa.int64()),
        ("score", pa.float64()),
        ("single", pa.bool_()),
        ("source", pa.string()),
        ("settings", pa.string()),
        ("version", pa.string()),
    ]
)
COLUMNS = tuple(SCHEMA.names)
WHERE_FROM = ("source", "settings", "version")
SETTING = ("n", "n_other", "tasks", "alpha", "architecture", "single", "source", "settings")
KEY = (*SETTING, "seed")  # identifies a model
VARIABLES = ("n", "n_other", "tasks", "ami", "alpha")  # of laws
RANGES = {"n": (1, inf), "n_other": (0, inf), "tasks": (1, inf), "seed": (0, inf)} | {
    "ami": (-1, 1),
    "alpha": (0, 1),
    "score": (0, 1),
}
OPTIONAL = ("ami", "alpha")  # empty for a single task
SAME = 1e-9  # largest difference between equal scores


@dataclass(frozen=True, eq=False)
class Averages:
    """One row per setting, with scores averaged over seeds as in paper 2."""

    variables: Mapping[str, FloatArray]  # (rows,) each; nan if a single task has none
    score: FloatArray  # (rows,)
    deviation: FloatArray  # (rows,): of the scores over seeds; nan for one seed
    runs: IntArray  # (rows,): seeds
    architecture: tuple[str, ...]
    single: BoolArray  # (rows,)

    def __len__(self) -> int:
        return len(self.score)

    def matrix(self, names: Sequence[str]) -> tuple[FloatArray, FloatArray, int]:
        """The variables (rows, names), the scores, and the number of rows left out because a variable is missing.

        AMI below 0 is noise and counts as 0.
        """
        found, known = self._columns(names)
        return found[known], self.score[known], int((~known).sum())

    def alone(self, names: Sequence[str]) -> FloatArray:
        """For each row of ``matrix``, the score of a single task of the same architecture and number of tokens.

        It is nan if there is none, and for single tasks themselves.
        """
        keys = list(zip(self.architecture, self.variables["n"].tolist(), strict=True))
        scores: dict[tuple[str, float], list[float]] = {}
        for row in np.flatnonzero(self.single).tolist():
            scores.setdefault(keys[row], []).append(float(self.score[row]))
        found = np.array([np.mean(scores.get(key, nan)) for key in keys])
        found[self.single] = nan
        return found[self._columns(names)[1]]

    def _columns(self, names: Sequence[str]) -> tuple[FloatArray, BoolArray]:
        """The values of these variables for all rows, and which rows are complete."""
        unknown = [name for name in names if name not in VARIABLES]
        if unknown or not names or len(set(names)) < len(names):
            wrong = f"there is no variable {unknown[0]!r}" if unknown else f"variables = {', '.join(names) or 'none'}"
            raise ConfigError(wrong, fix=f"use some of {', '.join(VARIABLES)}, each once")
        found = np.stack([self.variables[name] for name in names], axis=1)
        if "ami" in names:
            found[:, names.index("ami")] = np.maximum(found[:, names.index("ami")], 0.0)
        return found, np.asarray(np.isfinite(found).all(axis=1))

    @property
    def noise(self) -> float:
        """The mean squared error of averages over few seeds, a lower bound for laws; nan if unknown."""
        several = self.runs > 1
        return float(np.mean(self.deviation[several] ** 2 / self.runs[several])) if several.any() else nan


@dataclass(frozen=True, eq=False)
class Observations:
    """A checked table with the columns of ``SCHEMA``."""

    table: Any  # pyarrow.Table

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Observations:
        """Build a table from rows. ``single`` follows from ``tasks``; provenance is optional."""
        found = [{"single": row.get("tasks") == 1} | dict.fromkeys(WHERE_FROM, "") | dict(row) for row in rows]
        for place, row in enumerate(found):
            strange = sorted(set(row) - set(COLUMNS))
            if strange:
                raise DataError(f"row {place + 1}: there is no column {strange[0]!r}", fix=f"use {', '.join(COLUMNS)}")
        try:
            columns = {name: [row.get(name) for row in found] for name in COLUMNS}
            table = pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in COLUMNS})
        except (pa.ArrowException, TypeError) as wrong:
            raise DataError(f"the rows are not observations: {wrong}") from None
        return cls._checked(table, None)

    @classmethod
    def read(cls, file: str | Path) -> Observations:
        """Read a Parquet file. Errors name the file, the row (from 1) and the column."""
        path = Path(file)
        what, folder = "table of observations", "pass the Parquet file of a table"
        table = read_columns(path, COLUMNS, what=what, writer="Observations.write", folder=folder)
        return cls._checked(table.select(list(COLUMNS)), path)

    @classmethod
    def _checked(cls, table: Any, path: Path | None) -> Observations:
        typed = {}
        words = {pa.string(): "names", pa.bool_(): "truth values"}
        for field in SCHEMA:
            try:
                typed[field.name] = table[field.name].combine_chunks().cast(field.type)
            except pa.ArrowException:
                kind = words.get(field.type, "numbers")
                raise DataError(f"column {field.name!r} does not hold {kind}", path=path) from None
        whole = pa.table(typed, schema=SCHEMA)
        _check(whole, path)
        return cls(whole)

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> Any:
        """The values of a column: numbers with nan for empty cells, strings as objects."""
        return self.table[name].to_numpy()

    def write(self, file: str | Path) -> None:
        """Write as Parquet, whole or not at all. Equal tables give equal files."""
        with replacing_bytes(Path(file)) as out:
            pq.write_table(self.table, out)

    def merged(self, *others: Observations) -> Observations:
        """Merge tables, with each model once, in an order that does not depend on theirs.

        Different scores of the same model are an error: the settings do not say what differs.
        """
        table = pa.concat_tables([self.table, *(other.table for other in others)])
        kept: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in table.to_pylist():
            key = tuple(row[name] for name in KEY)
            first = kept.setdefault(key, row)
            if abs(first["score"] - row["score"]) > SAME:
                model = ", ".join(f"{name} {row[name]}" for name in KEY if row[name] not in ("", None))
                raise DataError(
                    f"the model with {model} has the scores {first['score']:g} and {row['score']:g}",
                    fix="use different values in the column settings, or remove one",
                )
        return Observations(pa.Table.from_pylist([kept[key] for key in sorted(kept, key=_sortable)], schema=SCHEMA))

    def of_architecture(self, name: str) -> Observations:
        known = sorted(set(self.column("architecture")))
        if name not in known:
            raise ConfigError(f"there is no architecture {name!r} in the table", fix=f"use {', '.join(known)}")
        return Observations(self.table.filter(pa.array(self.column("architecture") == name)))

    def of_single_tasks(self) -> Observations:
        single = self.table.filter(self.table["single"])
        if not len(single):
            raise ConfigError("there are no single tasks in the table", fix="add rows of single-task models")
        return Observations(single)

    def averaged(self, *, by_seed: bool = False) -> Averages:
        """Average over seeds; rows are sorted by setting. ``by_seed`` keeps each model as a row."""
        of = KEY if by_seed else SETTING
        keys = list(zip(*(self.table[name].to_pylist() for name in of), strict=True))
        numbers = {key: place for place, key in enumerate(sorted(set(keys), key=_sortable))}
        of_row: IntArray = np.array([numbers[key] for key in keys], dtype=np.int64)
        runs = np.bincount(of_row, minlength=len(numbers))

        def mean(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(of_row, weights=values, minlength=len(numbers)) / runs)

        score = self.column("score")
        centre = mean(score)
        squares = mean((score - centre[of_row]) ** 2) * runs
        deviation = np.sqrt(np.where(runs > 1, squares, np.nan) / np.maximum(runs - 1, 1))
        first = np.unique(of_row, return_index=True)[1]
        return Averages(
            {name: mean(self.column(name).astype(float)) for name in VARIABLES},
            centre,
            deviation,
            runs,
            tuple(self.column("architecture")[first]),
            self.column("single").astype(bool)[first],
        )


def append(file: str | Path, rows: Observations) -> Observations:
    """Add rows to the table in a file, or create it; duplicates are not added."""
    path = Path(file)
    merged = Observations.read(path).merged(rows) if path.exists() else rows.merged()
    merged.write(path)
    return merged


# -- checks -----------------------------------------------------------------------------------------------------------
def _check(table: Any, path: Path | None) -> None:
    if not len(table):
        raise DataError("the table has no rows", path=path)

    def refuse(bad: BoolArray, column: str, why: str, fix: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            value, tasks = table[column][row].as_py(), table["tasks"][row].as_py()
            raise DataError(f"row {row + 1}, column {column!r}: {why.format(value, tasks).lower()}", path=path, fix=fix)

    single = table["single"].to_numpy(zero_copy_only=False).astype(bool)
    empty = {name: table[name].is_null().to_numpy(zero_copy_only=False) for name in COLUMNS}
    for name in COLUMNS:
        bad = empty[name] & ~single if name in OPTIONAL else empty[name]
        refuse(bad, name, "it is empty", "fill it in: only alpha and ami of a single task may be empty")
    for name, (low, high) in RANGES.items():
        values = table[name].to_numpy().astype(float)
        fix = f"use {low:g} or more" if high == inf else f"use a number from {low:g} to {high:g}"
        refuse(~empty[name] & ~((values >= low) & (values <= high)), name, "{0:g} is out of range", fix)
    wrong = single != (table["tasks"].to_numpy() == 1)
    refuse(wrong, "single", "it is {0!s} with {1} tasks", "use single = true for tasks = 1 only")


def _sortable(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in key)
