"""The tables and figures of a study of best orders, beside paper 4's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from experiments.studies.findings import Cell, Figure, Line, Table
from experiments.studies.optimal_orders import shared, shared_by_chance
from experiments.studies.optimal_runs import (
    MAIN,
    MATCHED,
    PAPER,
    WORDS,
    Seen,
    best_order,
    cell,
    distances,
    heuristic_order,
    length_of,
    matched,
    mismatch,
    qualities,
    seconds_of,
    steps_of,
    table,
    text,
    transferred,
)
from experiments.studies.optimal_settings import SETTINGS


# -- tables ----------------------------------------------------------------------------------------------------------
def table2(seen: Seen) -> Table:
    """Best, heuristic and random orders, as the paper's text and as its table have them."""
    rows: dict[str, list[Cell]] = {
        "best order found": [],
        "best heuristic": [],
        "its matched version": [],
        "random": [],
    }
    columns = []
    for learner in seen.learners:
        if not seen.seeds(learner):
            continue
        main = learner == MAIN[seen.problem]
        for how, title in ((text, ""), (table, ", with the warm start")):
            columns.append(WORDS[learner] + title)
            papers = (*PAPER[seen.problem][:2], None, PAPER[seen.problem][2]) if main and how is table else (None,) * 4
            for row, values, paper in zip(rows, qualities(seen, learner, how).values(), papers, strict=True):
                rows[row].append(cell(values, paper))
    return Table(
        "Table 2",
        "quality of orders on test items",
        columns,
        rows,
        note="The mean score after 1 to K batches; the paper's table counts the warm start too (errata 24). The best "
        "heuristic is chosen on validation items. The spread is over seeds.",
        digits=3,
    )


def heuristics_table(seen: Seen) -> Table:
    """Every heuristic, with and without matching."""
    rows: dict[str, list[Cell]] = {}
    columns = [column for learner in seen.learners for column in (WORDS[learner], "matched", "gain, %", "p")]
    for at, learner in enumerate(seen.learners):
        for name, pair in matched(seen, learner).items():
            row = rows.setdefault(name, [Cell(None)] * len(columns))
            row[4 * at : 4 * at + 4] = [
                cell(pair.base),
                cell(pair.other),
                Cell(pair.percent()),
                Cell(pair.test["p"]),
            ]
        seeds = seen.seeds(learner, searched=False)
        random = [float(np.mean([text(o["test"]) for o in seen.orders[learner, s]["random"]])) for s in seeds]
        row = rows.setdefault("random", [Cell(None)] * len(columns))
        row[4 * at] = cell(random)
    return Table(
        "Heuristics",
        "each heuristic, and the same with its inputs matched (IDMR; paper 4, Figure 10)",
        columns,
        rows,
        note="Quality on test, seeds with a draw of the data each; p of a paired t-test over them.",
        digits=3,
        best=["high", "high", "high", ""] * len(seen.learners),
    )


def transfer_tables(seen: Seen) -> list[Table]:
    """Orders found with one learner and judged with another."""
    if not seen.transfers:
        return []
    rows = {}
    for found, what in zip(transferred(seen), ("best order", "its heuristic"), strict=True):
        for source, gains in zip(found.sources, found.gains.tolist(), strict=True):
            rows[f"{WORDS[source]}, {what}{_searched(seen, source, what)}"] = [
                Cell(None if np.isnan(gain) else gain) for gain in gains
            ]
    targets = list(seen.transfers)
    rows["random orders, standard deviation"] = [Cell(float(one)) for one in transferred(seen)[0].spread]
    return [
        Table(
            "Figure 5",
            "orders found with one learner (row), judged with another (column)",
            [WORDS[target] for target in targets],
            rows,
            note="Quality on test above that of random orders with the same learner; one draw of the data, one seed. "
            "The heuristic is the one that is best on the validation items of that draw. Searches with networks are "
            "shorter than those with the probe, so their rows are not of equal effort.",
            digits=3,
            best="",
        )
    ]


def _searched(seen: Seen, source: str, what: str) -> str:
    return f" of {steps_of(seen, source):,} steps" if what == "best order" else ""


def mismatch_words(seen: Seen) -> str:
    """Whose orders are tried on other seeds, and how long they were looked for."""
    (learner,) = {run["unit"]["learner"] for run in seen.tried if run["unit"]["draw"] != run["unit"]["seed"]} or {"aoe"}
    steps = [sum(length_of(run["unit"])) for run in seen.tried if run["unit"]["learner"] == learner]
    return f"{WORDS[learner]}, {min(steps):,} steps" if steps else WORDS[learner]


def mismatch_tables(seen: Seen) -> list[Table]:
    """Orders found for one seed and trained with another."""
    found = mismatch(seen)
    if found is None:
        return []
    rows = {
        f"trained with seed {by}": [Cell(quality) for quality in row]
        for by, row in zip(found.seeds, found.qualities.tolist(), strict=True)
    }
    return [
        Table(
            "Figure 4",
            "orders found for one seed (column), trained with another (row)",
            [f"found for {of}" for of in found.seeds],
            rows,
            note=f"Quality on test, one draw of the data; {mismatch_words(seen)}.",
            digits=3,
            best="",
        )
    ]


def distribution_tables(seen: Seen) -> list[Table]:
    """How far orders are from the distribution of the data, and how much two of them share."""
    learners = [learner for learner in seen.learners if seen.seeds(learner)]
    rows: dict[str, list[Cell]] = {}
    for learner in learners:
        for of in ("inputs", "labels"):
            for name, values in distances(seen, learner, of).items():
                rows.setdefault(name, []).append(cell(values))
    tables = [
        Table(
            "Figures 7 to 9",
            "how far what is labelled is from the test items",
            [f"{WORDS[learner]}, {of}" for learner in learners for of in ("inputs", "labels")],
            rows,
            note="Total variation distance, the mean after 1 to K batches: 0 if alike, 1 if nothing is shared. "
            + "Inputs are "
            + ("clusters of images." if seen.problem == "images" else "lengths of sentences."),
            digits=3,
            best="low",
        )
    ]
    best = {learner: best_order(seen, learner) for learner in learners if (learner, 0) in seen.searches}
    if len(best) > 1:
        pairs = {}
        for one, other in combinations(best, 2):
            heuristics = [heuristic_order(seen, learner) for learner in (one, other)]
            chance = shared_by_chance(best[one], best[other], SETTINGS[seen.problem].sizes["pool"])
            pairs[f"{WORDS[one]} and {WORDS[other]}"] = [
                Cell(float(len(shared(best[one], best[other])))),
                Cell(float(len(shared(*heuristics)))),
                Cell(chance),
            ]
        tables.append(
            Table(
                "Figure 6",
                "items that the orders of two learners share",
                ["best orders", "heuristics' orders", "by chance"],
                pairs,
                digits=0,
                best="",
            )
        )
    return tables


def reference_tables(seen: Seen) -> list[Table]:
    """The greedy order beside annealing."""
    if not seen.references:
        return []
    rows: dict[str, list[Cell]] = {}
    seeds = [seed for seed in sorted(seen.references) if ("probe", seed) in seen.searches] or sorted(seen.references)
    for name in seen.references[seeds[0]]:
        if not isinstance(seen.references[seeds[0]][name], Mapping):
            continue
        some = [seen.references[seed][name] for seed in seeds]
        values = [text(found["test"]) for found in some]
        rows[name if name != "greedy" else "greedy, best of 100 batches"] = [
            cell(values),
            Cell(float(np.mean([found["judged"] for found in some]))),
            Cell(float(np.mean([found["seconds"] for found in some]))),
        ]
    whole = [seen.searches["probe", seed] for seed in seeds if ("probe", seed) in seen.searches]
    if whole:
        values = [text(found["best"]["test"]) for found in whole]
        rows["annealing, all steps, the better of two coolings"] = [
            cell(values),
            Cell(float(np.mean([found["steps"]["trained"] for found in whole]))),
            Cell(float(np.mean([seconds_of(found) for found in whole]))),
        ]
    return [
        Table(
            "A cheaper reference",
            "the best of a hundred batches that ten strategies propose, and annealing, with the probe",
            ["quality on test", "sets judged", "seconds"],
            rows,
            note="The same seeds in all rows. Of the last row, sets and seconds are those of the better search alone.",
            digits=3,
            best=["high", "", ""],
        )
    ]


def effort_table(seen: Seen) -> Table:
    """What searches took."""
    rows = {}
    for run in seen.tried:
        unit, found, steps = run["unit"], run["result"], run["result"]["steps"]
        every = sum(length_of(unit))
        rows[f"{WORDS[unit['learner']]}, seed {unit['seed']}, γ = {unit['cooling']:g}, {every:,} steps"] = [
            Cell(text(found["best"]["validation"])),
            Cell(text(found["best"]["test"])),
            Cell(100 * steps["accepted"] / every),
            Cell(100 * annealing_share(found)),
            Cell(steps["asked"] / every),
            Cell(steps["trained"] / every),
            Cell(float(steps["dropped"])),
            Cell(float(steps["spared"])),
            Cell(seconds_of(found)),
        ]
    return Table(
        "Searches",
        "what they took",
        [
            "validation",
            "test",
            "accepted, %",
            "found by annealing, %",
            "sets asked for, a step",
            "trained, a step",
            "dropped",
            "sets spared",
            "seconds",
        ],
        rows,
        note="Found by annealing: its share of the gain over the first order; the rest is the greedy steps'. Dropped: "
        "proposals that could not be accepted any more; spared: sets of theirs that nobody waited for.",
        digits=3,
        best="",
    )


def annealing_share(found: Mapping[str, Any]) -> float:
    """How much of a search's gain was there before its greedy steps."""
    begun, ended = found["history"][0][2], found["history"][-1][2]
    return float((found["annealed"] - begun) / (ended - begun)) if ended > begun else 1.0


# -- figures ---------------------------------------------------------------------------------------------------------
def curves_figure(seen: Seen) -> Figure:
    """Scores after each batch."""
    lines = []
    for learner in seen.learners:
        seeds = seen.seeds(learner)
        if not seeds:
            continue
        heuristic = seen.best_heuristic(learner)
        curves = {
            "best order found": [seen.searches[learner, seed]["best"]["test"] for seed in seeds],
            "best heuristic": [seen.orders[learner, seed]["orders"][heuristic]["test"] for seed in seeds],
            "with matching": [seen.orders[learner, seed]["orders"][heuristic + MATCHED]["test"] for seed in seeds],
            "random": [order["test"] for seed in seeds for order in seen.orders[learner, seed]["random"]],
        }
        for name, some in curves.items():
            mean, deviation = np.mean(some, axis=0), np.std(some, axis=0)
            interval = (
                {} if len(some) < 2 else {"low": (mean - deviation).tolist(), "high": (mean + deviation).tolist()}
            )
            lines.append(
                Line(
                    name,
                    list(range(len(mean))),
                    mean.round(4).tolist(),
                    panel=f"{WORDS[learner]} ({heuristic})",
                    **interval,
                )
            )
    return Figure(
        "Figure 3",
        "scores on test after each batch",
        "lines",
        "batches",
        "score",
        lines,
        note="Bands are one standard deviation over seeds, of random over orders too.",
    )


def share_figures(seen: Seen) -> list[Figure]:
    """What is labelled, against the test items, batch by batch."""
    if ("probe", 0) not in seen.orders or ("probe", 0) not in seen.searches:
        return []
    orders = seen.orders["probe", 0]
    heuristic = seen.best_heuristic("probe")
    panels = {
        "best order found": seen.searches["probe", 0]["best"]["shares"],
        heuristic: orders["orders"][heuristic]["shares"],
        "random": orders["random"][0]["shares"],
    }
    found = []
    for of in ("labels", "inputs"):
        reference = np.array(orders["reference"][of])
        shown = np.argsort(-reference, kind="stable")[:6]
        lines = [
            Line(
                orders["bins"][of][bin],
                list(range(len(shares[of]))),
                [row[bin] - reference[bin] for row in shares[of]],
                panel=panel,
            )
            for panel, shares in panels.items()
            for bin in shown.tolist()
        ]
        found.append(
            Figure(
                "Figures 7 to 9",
                f"shares of {of} among what is labelled, above their share of the test items",
                "lines",
                "batches",
                "difference of shares",
                lines,
                note="The six most frequent; the probe, seed 0. A line at 0 keeps the distribution.",
            )
        )
    return found


def relative_figures(seen: Seen) -> list[Figure]:
    """Where the items that two orders share stand in each."""
    learners = [learner for learner in seen.learners if (learner, 0) in seen.searches]
    lines = []
    for one, other in combinations(learners, 2):
        for name, of in (("best orders", best_order), ("heuristics", heuristic_order)):
            both = shared(of(seen, one), of(seen, other))
            order = np.argsort(both.first, kind="stable")
            lines.append(
                Line(
                    name,
                    (both.first[order] + 1).tolist(),
                    (both.second[order] + 1).tolist(),
                    panel=f"{WORDS[one]} and {WORDS[other]}",
                )
            )
    if not lines:
        return []
    return [
        Figure(
            "Figure 6",
            "places of the items that two orders share",
            "points",
            "place in the first",
            "place in the second",
            lines,
        )
    ]


def map_figures(seen: Seen) -> list[Figure]:
    """The first batches in the plane."""
    if not seen.maps:
        return []
    found = seen.maps[0]
    lines = []
    for what, batches in found["orders"].items():
        panel = "best order found" if what == "best" else what
        for name, places in (("test", found["places"]["test"]), ("warm start", found["places"]["warm"])):
            lines.append(_places(name, places, panel))
        lines += [_places(f"batch {number}", places, panel) for number, places in enumerate(batches, start=1)]
    return [
        Figure(
            "Figure 7",
            "the first five batches among the images (t-SNE)",
            "points",
            "",
            "",
            lines,
            note="The probe, seed 0.",
        )
    ]


def _places(name: str, places: Sequence[Sequence[float]], panel: str) -> Line:
    chosen = sorted((x, y) for x, y in places)
    return Line(name, [x for x, _ in chosen], [y for _, y in chosen], panel=panel)


def history_figure(seen: Seen) -> Figure:
    """How searches went."""
    lines = [
        Line(
            f"seed {run['unit']['seed']}, γ = {run['unit']['cooling']:g}",
            [point[0] for point in run["result"]["history"]],
            [point[2] for point in run["result"]["history"]],
            panel=f"{WORDS[run['unit']['learner']]}, {sum(length_of(run['unit'])):,} steps",
        )
        for run in seen.tried
    ]
    return Figure("Searches", "the best quality so far, on validation items", "lines", "steps", "quality", lines)
