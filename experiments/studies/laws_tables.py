"""Figure 3 of paper 2 with our models, its equations beside ours, and what we add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.studies.findings import Cell, Figure, Line, Table
from experiments.studies.laws_models import FIGURE_N, HIGH, LOW, USUAL, Model, Seen, line, mean_ami

MOST_LINES = 3  # numbers of tokens in Figure 3b
PAPER_ERRORS = {"eq3": 0.027, "eq4": 0.034, "eq5": 0.072, "eq6": 0.009}
NAMES = {"n": "n", "n_other": "n of synthetic tasks", "tasks": "T", "ami": "AMI"}
SPREAD = "A point is a mean over seeds, a band reaches a standard deviation to either side."
WAYS = ("plain", "offset")  # of writing a power law


def figure_of(name: str, title: str, x_title: str, lines: Sequence[Line], note: str) -> Figure:
    """Of the lines that have points."""
    return Figure(name, title, "lines", x_title, "F1", [one for one in lines if one.x], f"{note} {SPREAD}")


def by_alpha(models: Sequence[Model], x: Callable[[Model], int]) -> list[list[Model]]:
    """The models of every α that is there at the most places, the least related first."""
    places = {alpha: len({x(m) for m in models if m.alpha == alpha}) for alpha in {m.alpha for m in models}}
    most = sorted(alpha for alpha, count in places.items() if alpha is not None and count == max(places.values()))
    return [[m for m in models if m.alpha == alpha] for alpha in most]


# -- figures ----------------------------------------------------------------------------------------------------------
def single_line(seen: Seen) -> Line:
    """Single-task models by their tokens."""
    return line("single task", ((n, score) for (of, n, _), score in seen.single.items() if of == USUAL))


def figure3a(seen: Seen) -> Figure:
    """F1 against n, with two tasks."""
    two = seen.joint(lambda m: m.tasks == 2)
    lines = [line(f"AMI {mean_ami(mine):.2f}", ((m.n, m.score) for m in mine)) for mine in by_alpha(two, lambda m: m.n)]
    return figure_of("Figure 3a", "F1 by tokens a task", "n", [single_line(seen), *lines], "T = 2.")


def figure3b(seen: Seen) -> Figure:
    """F1 against AMI, with two tasks, for several n; single-task models as level lines."""
    two = seen.joint(lambda m: m.tasks == 2)
    values = {n: len({m.alpha for m in two if m.n == n}) for n in {m.n for m in two}}
    full = sorted(n for n, count in values.items() if count == max(values.values()))
    lines = []
    for n in full[:: max(1, len(full) // MOST_LINES)]:
        mine = [m for m in two if m.n == n]
        alphas = sorted({m.alpha for m in mine if m.alpha is not None})
        at = {alpha: round(mean_ami([m for m in mine if m.alpha == alpha]), 3) for alpha in alphas}
        lines.append(line(f"n = {n:,}", ((at[m.alpha], m.score) for m in mine if m.alpha is not None)))
        alone = [score for (of, tokens, _), score in seen.single.items() if (of, tokens) == (USUAL, n)]
        ends = (min(at.values()), max(at.values()))
        lines.append(line(f"n = {n:,}, single task", ((x, score) for x in ends for score in alone)))
    return figure_of("Figure 3b", "F1 by relatedness", "AMI", lines, "T = 2.")


def figure3c(seen: Seen) -> Figure:
    """F1 against T, with 2,000 tokens a task; a single task is a level line."""
    mine = seen.joint(lambda m: m.n == FIGURE_N)
    alone = [score for (of, n, _), score in seen.single.items() if (of, n) == (USUAL, FIGURE_N)]
    ends = (1, max((m.tasks for m in mine), default=1))
    lines = [line("single task", ((x, score) for x in ends for score in alone))]
    lines += [
        line(f"AMI {mean_ami(some):.2f}", ((m.tasks, m.score) for m in some))
        for some in by_alpha(mine, lambda m: m.tasks)
    ]
    note = f"{FIGURE_N:,} tokens a task."
    return figure_of("Figure 3c", "F1 by the number of tasks", "T", lines, note)


def unbalanced_figure(seen: Seen) -> Figure:
    """F1 of unbalanced models against the tokens of the synthetic tasks."""
    lines = []
    for n in sorted({m.n for m in seen.joint(lambda m: True, "unbalanced")}):
        for name, low, high in (("hardly related", -1.0, LOW), ("closely related", HIGH, 1.1)):
            mine = seen.joint(
                lambda m, n=n, low=low, high=high: m.n == n and m.ami is not None and low <= m.ami < high,  # type: ignore[misc]
                "unbalanced",
            )
            if mine:
                lines.append(line(f"n = {n:,}", ((m.n_other, m.score) for m in mine), panel=name))
    note = f"Means over all T; AMI below {LOW} and from {HIGH}."
    return figure_of("Unbalanced", "F1 by tokens of each synthetic task", "n of synthetic tasks", lines, note)


# -- tables -----------------------------------------------------------------------------------------------------------
def exponents_table(fits: Mapping[str, Any]) -> Table:
    """Exponents of power laws and their intervals."""
    rows = {
        f"{table}, {NAMES[name]}": [
            Cell(found["powers"][which]["exponents"][name][end]) for which in WAYS for end in ("value", "low", "high")
        ]
        for table, found in fits.items()
        for name in found["powers"]["plain"]["exponents"]
    }
    return Table(
        "Exponents",
        "By what power F1 grows",
        ["exponent", "low", "high", "with an offset", "low, with an offset", "high, with an offset"],
        rows,
        digits=2,
        best="",
        note="F1 = a · n^p · AMI^q · T^r, and the same plus an offset, by least squares; 95 % intervals over seeds. "
        + "; ".join(_power_errors(table, found["powers"]) for table, found in fits.items())
        + ". The paper's √ is 0.5.",
    )


def _power_errors(table: str, powers: Mapping[str, Any]) -> str:
    errors = " and ".join(f"{1000 * powers[way]['error']:.2f}" for way in WAYS)
    left_out = powers["plain"]["left_out"]
    return f"{table}: squared errors {errors} in thousandths, {left_out} models of unrelated tasks left out"


def forms_table(fits: Mapping[str, Any]) -> Table:
    """The paper's forms, refitted."""
    rows = {}
    for table, found in fits.items():
        for form in found["forms"]:
            number = int(form["name"].removeprefix("eq"))
            if (number <= 6) == (table == "balanced"):
                errors = [1000 * form[name] for name in ("error", "constant", "monotone")]
                paper = PAPER_ERRORS.get(form["name"])
                rows[f"eq. {number}: {form['text']}"] = [
                    Cell(errors[0], paper=None if paper is None else 1000 * paper),
                    *map(Cell, errors[1:]),
                ]
    return Table(
        "Equations",
        "The paper's equations, their constants fitted to our models",
        ["squared error × 1000", "of the mean alone", "of a monotone model"],
        rows,
        digits=2,
        best="",
        note="Mean squared errors on held-out fifths. The paper's errors are of scores in its own scaling.",
    )


def laws_table(fits: Mapping[str, Any]) -> Table:
    """What symbolic regression found here."""
    rows = {}
    for table, found in fits.items():
        for variables, law in found["laws"].items():
            base = law["baselines"]
            errors = (law["error"]["mse"], base.get("constant"), base.get("monotone"), base.get("noise"))
            rows[f"{table}, of {variables}: {law['text']}"] = [Cell(None if e is None else 1000 * e) for e in errors]
    return Table(
        "Laws",
        "Our laws: of each variable alone, and of all",
        ["squared error × 1000", "of the mean alone", "of a monotone model", "left by few seeds"],
        rows,
        digits=2,
        best="",
        note="On a tenth of the settings that was held out; laws of one variable on the part of the grid in which "
        "every n meets every T and α. Left by few seeds: the error of the means, if settings shared nothing.",
    )


def architectures_table(seen: Seen, architectures: Sequence[str]) -> Table:
    """Single tasks and gains by architecture, on the settings that all have."""
    shape = {(m.tasks, m.n, m.alpha) for m in seen.models if m.kind == "balanced" and m.architecture != USUAL}
    rows = {}
    for name in architectures:
        cells = []
        for low, high in ((-1.0, LOW), (LOW, HIGH), (HIGH, 1.1)):
            some = seen.joint(
                lambda m, low=low, high=high: (  # type: ignore[misc]
                    (m.tasks, m.n, m.alpha) in shape and m.ami is not None and low <= m.ami < high
                ),
                architecture=name,
            )
            gain = seen.gain(some)
            cells.append(Cell(None if gain is None or gain["difference"] is None else 100 * gain["difference"]))
        rows[name] = cells
    return Table(
        "Architectures",
        "Gain over a single task in points of F1",
        [f"AMI below {LOW}", f"AMI {LOW} to {HIGH}", f"AMI from {HIGH}"],
        rows,
        best="",
        note="Dense layers: one shared; one of each task's own; one of either; two shared and one own.",
    )
