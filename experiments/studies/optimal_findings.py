"""What the searches for the best labelling order say: paper 4's claims, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bursar.ragged import FloatArray
from experiments.studies.findings import Answer, Findings, Verdict
from experiments.studies.optimal_runs import (
    WORDS,
    Seen,
    distances,
    matched,
    mismatch,
    qualities,
    sorted_out,
    steps_of,
    text,
    transferred,
)
from experiments.studies.optimal_settings import SEEDS, SETTINGS
from experiments.studies.optimal_tables import (
    curves_figure,
    distribution_tables,
    effort_table,
    heuristics_table,
    history_figure,
    map_figures,
    mismatch_tables,
    mismatch_words,
    reference_tables,
    relative_figures,
    share_figures,
    table2,
    transfer_tables,
)
from experiments.studies.statistics import PairedTest, holm, paired_test
from experiments.studies.study import Run

LEVEL = 0.05
PAPERS_GAIN = 2.95  # percent, by matching


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
    return [
        *(answer for learner in seen.learners for answer in _ranking(seen, learner)),
        *_seed_answer(seen),
        *_transfer_answer(seen),
        *_probe_answer(seen),
        *_distribution_answer(seen),
        *_matching_answer(seen),
    ]


def _ranking(seen: Seen, learner: str) -> list[Answer]:
    return [*([_best_answer(seen, learner)] if seen.seeds(learner) else []), _heuristics_answer(seen, learner)]


def _best_answer(seen: Seen, learner: str) -> Answer:
    found = qualities(seen, learner)
    best, heuristic, random = (np.array(found[name]) for name in ("best", "heuristic", "random"))
    spread = np.mean([np.std(_randoms(seen, learner, seed), ddof=1) for seed in seen.seeds(learner)])
    searched = f"{_seeds(len(best))}, {steps_of(seen, learner):,} steps"
    return Answer(
        f"6.1, {WORDS[learner]}",
        "Is the best order found better than the best heuristic, on test?",
        _decided(paired_test(best, heuristic)),
        f"{best.mean():.4f} {_sign(best, heuristic)} {heuristic.mean():.4f} ({seen.best_heuristic(learner)}), "
        f"{searched}{_tested(best, heuristic)}. It is {_above(best, random)} above random orders, which differ by "
        f"{spread:.4f} among themselves.",
        "Yes, on all three tasks; +7.53 % above random on average.",
    )


def _heuristics_answer(seen: Seen, learner: str) -> Answer:
    """Over all seeds that heuristics were run with: most of them have no search."""
    chosen, seeds = seen.best_heuristic(learner), seen.seeds(learner, searched=False)
    heuristic = np.array([text(seen.orders[learner, seed]["orders"][chosen]["test"]) for seed in seeds])
    random = np.array([np.mean(_randoms(seen, learner, seed)) for seed in seeds])
    return Answer(
        f"6.1, {WORDS[learner]}, heuristics",
        "Is the best heuristic better than random orders, on test?",
        _decided(paired_test(heuristic, random)),
        f"{heuristic.mean():.4f} ({chosen}) {_sign(heuristic, random)} {random.mean():.4f}, "
        f"{_above(heuristic, random)}, {_seeds(len(seeds))}{_tested(heuristic, random)}.",
        "Yes on intents and entities, no on images; +1.49 % on average.",
    )


def _seeds(many: int) -> str:
    return f"{many} seed{'s' * (many > 1)}"


def _randoms(seen: Seen, learner: str, seed: int) -> list[float]:
    return [text(order["test"]) for order in seen.orders[learner, seed]["random"]]


def _decided(test: PairedTest, p: float | None = None) -> Verdict:
    """Whether a difference is above 0: undecided unless it is beyond luck."""
    p = test["p"] if p is None else p
    if p is None or p >= LEVEL or not test["difference"]:
        return "not decided here"
    return "yes" if test["difference"] > 0 else "no"


def _tested(first: FloatArray, second: FloatArray) -> str:
    p = paired_test(first, second)["p"]
    return "" if p is None else f", paired over seeds p = {p:.2g}"


def _above(first: FloatArray, second: FloatArray) -> str:
    return f"{100 * (first.mean() / second.mean() - 1):+.1f} %"


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
            f"{mismatch_words(seen)}: by {found.mean_gap:.4f} on average{p}; {int((found.gaps > 0).sum())} of "
            f"{many * (many - 1)} pairs lose.",
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
    sure, ahead = best.by_luck < LEVEL, best.qualities >= heuristic.qualities
    above = int((sure & (best.gains > 0))[known].sum())
    worse = (sure & (best.gains < 0)) | (~ahead & (best.by_luck_from(heuristic) < LEVEL))
    beats, pairs = int(ahead[known].sum()), int(known.sum())
    verdict: Verdict = "not decided here"
    if above == pairs and beats >= 0.9 * pairs:
        verdict = "yes"
    elif worse[known].sum() >= pairs / 2:
        verdict = "no"
    steps = ", ".join(f"{WORDS[source]} {steps_of(seen, source):,}" for source in best.sources)
    return [
        Answer(
            "6.3",
            "Does the best order of one architecture help another, and more than a heuristic's?",
            verdict,
            f"Of {pairs} pairs the best order is above random orders beyond luck in {above}; it is at least as good as "
            f"the heuristic's in {beats}, and worse than that or than random orders beyond luck in "
            f"{int(worse[known].sum())}. One draw of the data, one seed; steps of the searches: {steps}.",
            "Yes, with one exception of 12.",
        )
    ]


def _probe_answer(seen: Seen) -> list[Answer]:
    """The question that decides whether cheap searches are of use to whoever trains networks."""
    if not seen.transfers or "probe" not in transferred(seen)[0].sources:
        return []
    best, _ = transferred(seen)
    row, parts, above, below = best.sources.index("probe"), [], [], []
    for column, target in enumerate(best.targets):
        if target == "probe" or not np.isfinite(best.qualities[row, column]):
            continue
        gain, spread, luck = best.gains[row, column], best.spread[column], best.by_luck[row, column]
        own = best.gains[best.sources.index(target), column] if target in best.sources else None
        mine = "" if own is None else f", its own {own:+.4f} after {steps_of(seen, target):,} steps"
        parts.append(f"{WORDS[target]} {gain:+.4f} (p = {luck:.2g}, random orders differ by {spread:.4f}{mine})")
        above.append(bool(gain > 0 and luck < LEVEL))
        below.append(bool(gain < 0 and luck < LEVEL))
    if not parts:
        return []
    verdict: Verdict = "yes" if all(above) else "no" if any(below) and not any(above) else "not decided here"
    return [
        Answer(
            "6.3, from the probe",
            "Is an order that was found with the probe good for networks?",
            verdict,
            f"Above the mean of random orders, on test: {'; '.join(parts)}. One draw of the data, one seed; yes if it "
            "is above beyond luck for all of them.",
            "Not asked.",
        )
    ]


def _distribution_answer(seen: Seen) -> list[Answer]:
    if not seen.seeds("probe"):
        return []
    heuristic = seen.best_heuristic("probe")
    parts, farther, closer = [], [], []
    for of in ("labels", "inputs"):
        found = distances(seen, "probe", of)
        best, random, other = found["best order"], found["random"], found[heuristic]
        farther.append(_decided(paired_test(best, random)))
        closer.append(_decided(paired_test(other, best)))
        parts.append(
            f"{of}: best order {best.mean():.3f}, random {random.mean():.3f}{_tested(best, random)}, {heuristic} "
            f"{other.mean():.3f}{_tested(other, best)} against the best order"
        )
    verdict: Verdict = "not decided here"
    if "yes" not in farther and set(closer) == {"yes"}:
        verdict = "yes"
    elif "yes" in farther:
        verdict = "no"
    return [
        Answer(
            "6.4",
            "Does the best order keep the distribution of the data, unlike the best heuristic?",
            verdict,
            "Distance from the test items (total variation, the mean after each batch), with the probe, "
            f"{'; '.join(parts)}. Yes if in both it is closer than the heuristic beyond luck, and not farther than "
            "random orders beyond luck; no if in either it is farther.",
            "Yes.",
        )
    ]


def _matching_answer(seen: Seen) -> list[Answer]:
    pairs = {learner: matched(seen, learner)[seen.best_heuristic(learner)] for learner in seen.learners}
    corrected = dict(zip(pairs, holm([pair.test["p"] for pair in pairs.values()]), strict=True))
    found = []
    for learner, pair in pairs.items():
        low, high, p = pair.percent("low"), pair.percent("high"), corrected[learner]
        between = ""
        if low is not None and high is not None and p is not None:
            holds = "holds" if low <= PAPERS_GAIN <= high else "does not hold"
            between = (
                f" ({low:+.2f} to {high:+.2f}, p = {p:.3g} after Holm's correction), which {holds} the paper's 2.95"
            )
        mean = np.mean([other.percent() or 0.0 for other in matched(seen, learner).values()])
        found.append(
            Answer(
                f"6.5, {WORDS[learner]}",
                "Does matching the inputs' distribution (IDMR) improve the best heuristic?",
                _decided(pair.test, p),
                f"{pair.percent() or 0.0:+.2f} %{between}; {len(pair.base)} seeds; over all heuristics {mean:+.2f} %.",
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
        "A model is trained on a set in an order that depends on it alone, not in the order of labelling (errata 25).",
        "Matching puts texts into five bins of about equally many by length, images into five clusters of 100 "
        "principal components, the same in all batches (the paper: lengths, and clusters in t-SNE space).",
    ]
    if seen.problem == "intents":
        found.append(
            "RoBERTa: the bundled encoder stands in for it, as a target only (errata 28): its three lowest layers, the "
            "highest of them trained, 100 steps."
        )
    else:
        found.append("Whether seeds matter (section 6.2) was asked on intents alone; the paper asks on images too.")
    if SETTINGS[seen.problem].searched < len(SEEDS):
        found.append(f"Searches with the probe on {SETTINGS[seen.problem].searched} draws: words make them long.")
    return found
