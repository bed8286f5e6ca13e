"""What the searches for the best labelling order say: paper 4's claims, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bursar.ragged import FloatArray
from bursar.studies.findings import Answer, Findings, Verdict
from bursar.studies.optimal_runs import (
    WORDS,
    Seen,
    distances,
    matched,
    mismatch,
    qualities,
    sorted_out,
    transferred,
)
from bursar.studies.optimal_settings import SEEDS, SETTINGS
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
    holds = best.mean() > heuristic.mean() > random.mean()
    steps, greedy = seen.plans[learner]
    tests, sure = "", False
    if seeds > 1:
        first, second = paired_test(best, heuristic)["p"], paired_test(heuristic, random)["p"]
        sure = first is not None and second is not None and max(first, second) < LEVEL
        tests = f"; paired over seeds p = {first:.2g} and {second:.2g}" if first and second else ""
    verdict: Verdict = "no" if not holds else "yes" if sure else "not decided here"
    return Answer(
        f"6.1, {WORDS[learner]}",
        "Is the best order above the best heuristic, and that above random, on test?",
        verdict,
        f"{best.mean():.4f} {_sign(best, heuristic)} {heuristic.mean():.4f} ({seen.best_heuristic(learner)}) "
        f"{_sign(heuristic, random)} {random.mean():.4f}, {seeds} seed{'s' * (seeds > 1)}, "
        f"{steps + greedy:,} steps{tests}. The best order is {100 * (best.mean() / random.mean() - 1):+.1f} % above "
        f"random, the heuristic {100 * (heuristic.mean() / random.mean() - 1):+.1f} %.",
        "Yes on intents and entities; on images no heuristic beats random. +7.53 % and +1.49 % on average.",
    )


def _sign(first: FloatArray, second: FloatArray) -> str:
    return ">" if first.mean() > second.mean() else "<" if first.mean() < second.mean() else "="


def _seed_answer(seen: Seen) -> list[Answer]:
    found = mismatch(seen)
    if found is None:
        return []
    many = len(found.seeds)
    lost = found.gaps.sum(axis=1) / (many - 1)  # one number a training: pairs that share one are not independent
    test = paired_test(lost, np.zeros(many))
    sure = test["p"] is not None and test["p"] < LEVEL
    verdict: Verdict = "not decided here" if not sure else "yes" if found.mean_gap > 0 else "no"
    p = "" if test["p"] is None else f", p = {test['p']:.2g} over {many} trainings"
    return [
        Answer(
            "6.2",
            "Is an order that was found for one seed worse for the training of another?",
            verdict,
            f"By {found.mean_gap:.4f} on average{p}; {int((found.gaps > 0).sum())} of {many * (many - 1)} pairs lose.",
            "Yes.",
        )
    ]


def _transfer_answer(seen: Seen) -> list[Answer]:
    if not seen.transfers:
        return []
    best, heuristic = transferred(seen)
    others = np.array([[source != target for target in best.targets] for source in best.sources])
    known = others & np.isfinite(best.qualities)
    if not known.any():
        return []
    spread = best.random.std(axis=0, ddof=1)  # of random orders, target by target
    above = int((best.gains > spread)[known].sum())
    below = int((best.gains < 0)[known].sum())
    beats = int((best.qualities >= heuristic.qualities)[known].sum())
    pairs = int(known.sum())
    probe = (
        best.gains[best.sources.index("probe")][known[best.sources.index("probe")]] if "probe" in best.sources else []
    )
    more = f" The probe's order gains {np.mean(probe):+.4f} on the others." if len(probe) else ""
    verdict: Verdict = "not decided here"
    if above == pairs and beats >= 0.9 * pairs:
        verdict = "yes"
    elif above < pairs / 2:
        verdict = "no"
    return [
        Answer(
            "6.3",
            "Does the best order of one architecture help another, and more than a heuristic's?",
            verdict,
            f"Of {pairs} pairs the best order is above random by more than the standard deviation of random orders in "
            f"{above}, and below their mean in {below}; it is at least as good as the heuristic's in {beats}.{more}",
            "Yes, with one exception of 12.",
        )
    ]


def _distribution_answer(seen: Seen) -> list[Answer]:
    if not seen.seeds("probe"):
        return []
    heuristic = seen.best_heuristic("probe")
    parts, keeps, unlike = [], [], []
    for of in ("labels", "inputs"):
        found = distances(seen, "probe", of)
        best, random = found["best order"].mean(), found["random"]
        keeps.append(best <= random.mean() + random.std(ddof=1))
        unlike.append(found[heuristic].mean() > random.mean() + random.std(ddof=1))
        parts.append(
            f"{of}: best order {best:.3f}, random {random.mean():.3f} ± {random.std(ddof=1):.3f}, {heuristic} "
            f"{found[heuristic].mean():.3f}"
        )
    verdict: Verdict = "yes" if all(keeps) and all(unlike) else "no" if not any(keeps) else "not decided here"
    return [
        Answer(
            "6.4",
            "Does the best order keep the distribution of the data, unlike the best heuristic?",
            verdict,
            f"Distance from the test items (total variation, the mean after each batch), {'; '.join(parts)}. It keeps "
            "a distribution here if it is no farther than random orders and their standard deviation.",
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
    setting = SETTINGS[seen.problem]
    steps = ", ".join(f"{WORDS[learner]} {first:,} + {second:,}" for learner, (first, second) in seen.plans.items())
    parts = ", ".join(f"{part} {count:,}" for part, count in setting.sizes.items())
    return {
        "data": f"{setting.data}: {parts}; {setting.batches} batches of {setting.size}",
        "steps of searches": f"{steps} (annealing + greedy; the paper: 25,000 + 5,000). A shorter one cools as much "
        "faster as it is shorter. The probe's searches are run with the paper's cooling and with one twenty times as "
        "fast; of the two the one counts that is better on validation items.",
        "probe": "ridge regression on 100 principal components of the bundled encoder's vectors (of pixels for images)",
        "networks": "the paper's, with dropout 0.5 before the output layer in all of them (errata 27); word vectors "
        "begin as 64 principal components of the bundled encoder's, in place of GloVe",
        "seeds": f"{len(seen.seeds('probe'))} for searches with the probe, each with its own draw of the data; "
        f"heuristics with all learners {len(SEEDS)}; searches with networks one",
    }


def _cut(seen: Seen) -> list[str]:
    found = [
        "A model is trained on a set in an order that depends on it alone, not in the order of labelling (errata 25)."
    ]
    if seen.problem == "intents":
        found.append("RoBERTa: the fine-tuned bundled encoder stands in for it, as a target only (errata 28).")
    return found
