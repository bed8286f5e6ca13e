"""What a study found, in a form that a page, a terminal and a JSON file can show: answers, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from experiments.studies.figures import Figure, Line

__all__ = ["Answer", "Cell", "Figure", "Findings", "Line", "Table"]

Verdict = Literal["yes", "no", "not decided here"]
Better = Literal["high", "low", ""]  # which figure of a column is the best one, if any


@dataclass(frozen=True)
class Answer:
    """One question of the paper, what it says, and what was seen here."""

    question: str  # its number, such as Q3.1
    asks: str
    verdict: Verdict
    why: str
    paper: str  # the paper's own answer


@dataclass(frozen=True)
class Cell:
    """One figure of a table: ours with its spread over seeds, and the paper's where it has one."""

    ours: float | None
    spread: float | None = None
    paper: float | None = None


@dataclass(frozen=True)
class Table:
    """A table beside the paper's: every row has a cell for each column."""

    name: str  # the paper's, such as Table 8; or a name of our own
    title: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Cell]]
    note: str = ""
    digits: int = 1
    best: Better | Sequence[Better] = "high"  # for all columns, or for each

    @property
    def best_of_columns(self) -> Sequence[Better]:
        """For each column, which figure is best.

        >>> Table("Table 6", "errors", ["BC", "average"], {}, best="low").best_of_columns
        ['low', 'low']
        """
        return [self.best] * len(self.columns) if isinstance(self.best, str) else self.best


@dataclass(frozen=True)
class Findings:
    """All that a study has to say, the shortest first."""

    headline: str
    answers: Sequence[Answer] = field(default_factory=list)
    tables: Sequence[Table] = field(default_factory=list)
    figures: Sequence[Figure] = field(default_factory=list)
    sizes: Mapping[str, str] = field(default_factory=dict)  # what was run, in words: data, pools, rounds, model, seeds
    cut: Sequence[str] = field(default_factory=list)  # what the paper has and this does not

    def as_json(self) -> dict[str, Any]:
        """As plain tables and lists."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Findings:
        """Back from plain tables and lists.

        >>> table = Table("Table 8", "decisions", ["slots"], {"MT-MIN": [Cell(80.0, 1.0, 84.5)]})
        >>> found = Findings("It works.", tables=[table])
        >>> Findings.from_json(found.as_json()) == found
        True
        """
        return cls(
            headline=found["headline"],
            answers=[Answer(**answer) for answer in found["answers"]],
            tables=[
                Table(**{**table, "rows": {name: [Cell(**c) for c in row] for name, row in table["rows"].items()}})
                for table in found["tables"]
            ],
            figures=[Figure(**{**f, "lines": [Line(**line) for line in f["lines"]]}) for f in found["figures"]],
            sizes=found["sizes"],
            cut=found["cut"],
        )
