"""What the searches for the best labelling order say: paper 4's claims, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bursar.studies.findings import Answer, Findings, Verdict
from bursar.studies.optimal_runs import WORDS, Seen, distances, gain, gaps, matched, qualities, sorted_out
from bursar.studies.optimal_tables import (
    curves_figure,
    distribution_tables,
    effort_table,
    heuristics_table,
    history_figure,
    map_figures,
    mismatch_tables,
    reference_tables,
    relative_figures,
    share_figures,
    table2,
    transfer_tables,
)
from bursar.studies.statistics import paired_test
from bursar.studies.study import Run

LEVEL = 0.05


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Best, heuristic and random orders beside the paper's, and what the best look like."""
    seen = sorted_out(runs)
    if not any(seen.seeds(learner) for learner in seen.learners):
        return Findings("No search has ended yet whose heuristics are known, so there is nothing to compare.")
    return Findings(
        headline=_headline(seen),
        answers=_answers(seen),
        tables=[
            table2(seen),
            heuristics_table(seen),
            *transfer_tables(seen),
            *mismatch_tables(seen),
            *distribution_tables(seen),
            *reference_tables(seen),
            effort_table(seen),
        ],
        figures=[
            curves_figure(seen),
            *share_figures(seen),
            *relative_figures(seen),
            *map_figures(seen),
            history_figure(seen),
        ],
        sizes=_sizes(runs, seen),
        cut=_cut(seen),
    )


# -- in words --------------------------------------------------------------------------------------------------------
def _headline(seen: Seen) -> str:
    parts = []
    for learner in seen.learners:
        if seen.seeds(learner):
            found = {name: float(np.mean(values)) for name, values in qualities(seen, learner).items()}
            parts.append(
                f"{WORDS[learner]}: best order {found['best']:.3f}, {seen.best_heuristic(learner)} "
                f"{found['heuristic']:.3f}, random {found['random']:.3f}"
            )
    return f"Quality on test, {seen.problem}. {'; '.join(parts)}."


def _answers(seen: Seen) -> list[Answer]:
    return [_ranking(seen, learner) for learner in seen.learners if seen.seeds(learner)] + [
        *_seed_answer(seen),
        *_transfer_answer(seen),
        *_distribution_answer(seen),
        *_matching_answer(seen),
    ]


def _ranking(seen: Seen, learner: str) -> Answer:
    found = qualities(seen, learner)
    best, heuristic, random = (np.array(found[name]) for name in ("best", "heuristic", "random"))
    seeds = len(best)
    holds = bool((best.mean() > heuristic.mean()) and (heuristic.mean() > random.mean()))
    steps, greedy = seen.plans[learner]
    tests = ""
    if seeds > 1:
        first, second = paired_test(best, heuristic)["p"], paired_test(heuristic, random)["p"]
        sure = first is not None and second is not None and max(first, second) < LEVEL
        tests = f"; paired over seeds p = {first:.2g} and {second:.2g}" if first and second else ""
        verdict: Verdict = "yes" if holds and sure else "not decided here" if holds else "no"
    else:
        verdict = "yes" if holds else "no"
    return Answer(
        f"6.1, {WORDS[learner]}",
        "Is the best order above the best heuristic, and that above random, on test?",
        verdict,
        f"{best.mean():.3f} > {heuristic.mean():.3f} ({seen.best_heuristic(learner)}) "
        f"{'>' if heuristic.mean() > random.mean() else '<'} {random.mean():.3f}, {seeds} seed{'s' * (seeds > 1)}, "
        f"{steps + greedy:,} steps{tests}. The best order is {100 * (best / random - 1).mean():+.1f} % above random, "
        f"the heuristic {100 * (heuristic / random - 1).mean():+.1f} %.",
        "Yes on intents and entities; on images no heuristic beats random. +7.53 % and +1.49 % on average.",
    )


def _seed_answer(seen: Seen) -> list[Answer]:
    lost = gaps(seen)
    if lost is None:
        return []
    off = lost[~np.eye(len(lost), dtype=bool)]
    low, high = np.percentile(np.random.default_rng(0).choice(off, (2000, len(off))).mean(axis=1), [2.5, 97.5])
    verdict: Verdict = "yes" if low > 0 else "no" if high < 0 else "not decided here"
    return [
        Answer(
            "6.2",
            "Is an order that was found for one seed worse for the training of another?",
            verdict,
            f"By {off.mean():.4f} on average ({low:.4f} to {high:.4f}); {(off > 0).sum()} of {len(off)} pairs lose.",
            "Yes.",
        )
    ]


def _transfer_answer(seen: Seen) -> list[Answer]:
    rows = [
        (source, target, gain(seen, source, "best", target), gain(seen, source, "heuristic", target))
        for target, found in seen.transfers.items()
        for source in found["orders"]
        if source != target
    ]
    if not rows:
        return []
    above = sum(best > 0 for _, _, best, _ in rows)
    beats = sum(best >= heuristic for _, _, best, heuristic in rows)
    own = [row for row in rows if row[0] == "probe"]
    probe = f" The probe's order gains {np.mean([row[2] for row in own]):+.3f} on the others." if own else ""
    return [
        Answer(
            "6.3",
            "Does the best order of one architecture help another, and more than a heuristic's?",
            "yes"
            if above == len(rows) and beats >= 0.9 * len(rows)
            else "no"
            if above < len(rows) / 2
            else "not decided here",
            f"Of {len(rows)} pairs the best order is above random in {above}, and at least as good as the heuristic's "
            f"in {beats}.{probe}",
            "Yes, with one exception of 12.",
        )
    ]


def _distribution_answer(seen: Seen) -> list[Answer]:
    found = distances(seen, "probe", "labels")
    if not found:
        return []
    inputs = distances(seen, "probe", "inputs")
    best, random = found["best order"], found["random"]
    close = best.mean() <= random.mean() + random.std()
    heuristic = max(
        (name for name in found if name not in ("best order", "random")), key=lambda name: found[name].mean()
    )
    return [
        Answer(
            "6.4",
            "Does the best order keep the distribution of the data, unlike heuristics?",
            "yes" if close and found[heuristic].mean() > best.mean() else "no",
            f"Distance of labels from the test items': best order {best.mean():.3f}, random {random.mean():.3f} ± "
            f"{random.std():.3f}, {heuristic} {found[heuristic].mean():.3f}; of inputs "
            f"{inputs['best order'].mean():.3f}, {inputs['random'].mean():.3f}, {inputs[heuristic].mean():.3f} "
            "(total variation, after each batch).",
            "Yes.",
        )
    ]


def _matching_answer(seen: Seen) -> list[Answer]:
    found = []
    for learner in seen.learners:
        pairs = matched(seen, learner)
        best = pairs[seen.best_heuristic(learner)]
        verdict: Verdict = "not decided here"
        if best.p is not None and best.p < LEVEL:
            verdict = "yes" if best.percent > 0 else "no"
        p = "" if best.p is None else f", p = {best.p:.3g}"
        mean = np.mean([pair.percent for pair in pairs.values()])
        found.append(
            Answer(
                f"6.5, {WORDS[learner]}",
                "Does matching the inputs' distribution (IDMR) improve the best heuristic?",
                verdict,
                f"{best.percent:+.2f} % over {len(best.cells)} seeds{p}; over all heuristics {mean:+.2f} %.",
                "Yes: +2.95 % on average; p = 0.028 (images) and 0.017 (intents).",
            )
        )
    return found


# -- what was run ----------------------------------------------------------------------------------------------------
def _sizes(runs: Sequence[Run], seen: Seen) -> dict[str, str]:
    steps = ", ".join(f"{WORDS[learner]} {first:,} + {second:,}" for learner, (first, second) in seen.plans.items())
    return {
        "data": {
            "images": "Fashion-MNIST: pool 2,000, warm start 50, model selection 150, validation 4,000, test 4,000; "
            "12 batches of 25",
            "intents": "TOPv2 alarm: pool 800, warm start 40, model selection 100, validation 4,000, test 4,000; "
            "8 batches of 20",
            "entities": "MIT Restaurant: pool 1,000, warm start 50, model selection 200, validation 3,000, test 3,000; "
            "10 batches of 25",
        }[seen.problem],
        "steps of searches": f"{steps} (annealing + greedy; the paper: 25,000 + 5,000). A shorter one cools as much "
        "faster as it is shorter.",
        "probe": "ridge regression on 100 principal components of the bundled encoder's vectors (of pixels for images)",
        "networks": "the paper's, with dropout 0.5 before the output layer in all of them (errata 27); word vectors "
        "begin as 64 principal components of the bundled encoder's, in place of GloVe",
        "seeds": f"{len(seen.seeds('probe'))} for the probe, each with its own draw of the data; heuristics with "
        "networks likewise; searches with networks one",
    }


def _cut(seen: Seen) -> list[str]:
    found = [
        "A model is trained on a set in an order that depends on it alone, not in the order of labelling (errata 25)."
    ]
    if seen.problem == "intents":
        found.append("RoBERTa: the fine-tuned bundled encoder stands in for it, as a target only (errata 28).")
    return found
