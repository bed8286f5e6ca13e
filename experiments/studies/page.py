"""The page of a study: what it answers, its tables beside the paper's, its figures, and how it was run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bursar.compute import Unit, duration
from bursar.corpus.formats.format import replacing
from bursar.report.page import fill
from bursar.report.wording import counted, listed, sentence
from experiments.studies.catalogue import known_studies
from experiments.studies.figures import picture_of
from experiments.studies.findings import Better, Findings, Table
from experiments.studies.study import Results, Study, seconds_of

NOTHING = "–"  # a cell without a figure
MARKS = {"yes": "good", "no": "poor"}  # verdicts to the style of their badge


def write_study_report(results: Results, out: Path) -> Path:
    """Write the page of a study, whole or not at all, finished or not."""
    study = known_studies()[results.study]
    findings = results.findings() if results.runs else Findings("Nothing has been run yet.")
    page = render_study(results, findings, study)
    with replacing(out) as file:
        file.write(page)
    return out


def render_study(results: Results, findings: Findings, study: Study) -> str:
    """The page as a text; the same results and findings give the same page."""
    coverage = Coverage.of(results, study)
    pictures = [picture_of(figure, f"figure-{k}") for k, figure in enumerate(findings.figures)]
    charts = {panel.key: panel.chart for picture in pictures for panel in picture.panels}
    return fill(
        Path(__file__).with_name("page.html"),
        ["page.css", "figures.css"],
        charts,
        title=study.title,
        source=sentence(study.source),
        scale=results.scale,
        coverage=coverage,
        findings=findings,
        answers=[(answer, MARKS.get(answer.verdict, "open")) for answer in findings.answers],
        tables=[shown_table(table) for table in findings.tables],
        pictures=pictures,
        command=results.command,
        versions=results.versions,
    )


# -- how much of it there is ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Coverage:
    """How much of a study's grid is finished."""

    finished: int
    total: int
    seeds: tuple[int, ...]  # those with anything finished
    whole: tuple[int, ...]  # those with everything finished
    seconds: float  # of one core

    @classmethod
    def of(cls, results: Results, study: Study) -> Coverage:
        """By the study's grid of today: one that grew since is not finished any more."""
        grid = _different(study.grid(results.scale))
        finished = {key: unit for key, unit in _different([run["unit"] for run in results.runs]).items() if key in grid}
        wanted, done = (Counter(map(_seed, units.values())) for units in (grid, finished))
        seeds = tuple(sorted(seed for seed in done if seed is not None))
        whole = tuple(seed for seed in seeds if done[seed] == wanted[seed])
        return cls(len(finished), len(grid), seeds, whole, math.fsum(seconds_of(results.runs)))

    @property
    def complete(self) -> bool:
        return self.finished == self.total

    @property
    def words(self) -> str:
        """What there is, such as: 412 of 522 units; seeds 0 and 1 whole."""
        if self.complete:
            ran = f" of {_seeds(self.seeds)}" if self.seeds else ""
            return f"all {counted(self.total, 'unit')}{ran}"
        part = f"{self.finished:,} of {counted(self.total, 'unit')}"
        if not self.seeds:
            return part
        return f"{part}; {_seeds(self.whole)} whole" if self.whole else f"{part}; no seed whole yet"

    @property
    def tiles(self) -> list[tuple[str, str, str]]:
        """A title, a value and a note each."""
        share = f"of {self.total:,}" if self.total else ""
        whole = "all" if self.whole == self.seeds else listed([*map(str, self.whole)]) or "none"
        found = [("Units finished", f"{self.finished:,}", share)]
        if self.seeds:
            found.append(("Seeds", str(len(self.seeds)), f"{listed([*map(str, self.seeds)])}; {whole} whole"))
        found.append(("Time of one core", duration(self.seconds), f"{self.seconds:,.0f} core-seconds"))
        return found


def _seed(unit: Unit) -> int | None:
    seed = unit.get("seed")
    return seed if isinstance(seed, int) else None


def _different(units: Sequence[Unit]) -> dict[str, Unit]:
    """Equal units count once."""
    return {json.dumps(unit, sort_keys=True): unit for unit in units}


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {listed([*map(str, seeds)])}"


# -- tables -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ShownCell:
    """A cell as texts; the best of its column is marked, ours and the paper's each by itself."""

    ours: str
    spread: str
    paper: str
    best: bool
    best_in_paper: bool


@dataclass(frozen=True)
class ShownTable:
    """A table as texts."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[ShownCell], bool]]  # a name, cells, and whether the paper has any of them
    note: str
    spreads: bool  # whether any figure has one
    compared: bool  # whether the paper has any of its figures
    marked: bool  # whether anything is the best of its column


def shown_table(table: Table) -> ShownTable:
    """A table as it is shown.

    >>> from experiments.studies.findings import Cell
    >>> rows = {"MT-MIN": [Cell(80.04, 1.5, 84.5)], "MT-R": [Cell(81.0, None, 82.1)]}
    >>> shown = shown_table(Table("Table 8", "decisions", ["slots"], rows))
    >>> [(cell.ours, cell.spread, cell.paper, cell.best, cell.best_in_paper) for _, (cell,), _ in shown.rows]
    [('80.0', '1.5', '84.5', False, True), ('81.0', '', '82.1', True, False)]
    """
    columns = list(enumerate(table.best_of_columns))
    best_ours = [_best([row[k].ours for row in table.rows.values()], table.digits, way) for k, way in columns]
    best_paper = [_best([row[k].paper for row in table.rows.values()], table.digits, way) for k, way in columns]
    rows = [
        (
            name,
            [
                ShownCell(
                    ours=_shown(cell.ours, table.digits),
                    spread="" if cell.spread is None else _shown(cell.spread, table.digits),
                    paper=_shown(cell.paper, table.digits),
                    best=_shown(cell.ours, table.digits) == ours,
                    best_in_paper=_shown(cell.paper, table.digits) == papers,
                )
                for cell, ours, papers in zip(row, best_ours, best_paper, strict=True)
            ],
            any(cell.paper is not None for cell in row),
        )
        for name, row in table.rows.items()
    ]
    cells = [cell for row in table.rows.values() for cell in row]
    return ShownTable(
        heading=sentence(f"{table.name}: {table.title}" if table.title else table.name),
        columns=table.columns,
        rows=rows,
        note=table.note,
        spreads=any(cell.spread is not None for cell in cells),
        compared=any(cell.paper is not None for cell in cells),
        marked=any(found is not None for found in best_ours + best_paper),
    )


def _best(figures: Sequence[float | None], digits: int, way: Better) -> str | None:
    """The best of a column as it is shown; none where there is no choice."""
    texts = {_shown(figure, digits): figure for figure in figures if figure is not None and math.isfinite(figure)}
    if len(texts) < 2 or not way:
        return None
    return (max if way == "high" else min)(texts, key=lambda text: texts[text])


def _shown(figure: float | None, digits: int) -> str:
    """A figure with so many digits after the point; a true minus sign, and none before a zero.

    >>> _shown(-1.25, 1), _shown(-0.01, 1), _shown(None, 1), _shown(1234.5, 0)
    ('−1.2', '0.0', '–', '1,234')
    """
    if figure is None or not math.isfinite(figure):
        return NOTHING
    text = f"{abs(figure):,.{digits}f}"
    return f"−{text}" if figure < 0 and float(text.replace(",", "")) else text
