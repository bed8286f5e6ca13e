"""What thousands of small models say of multi-task learning: the answers of paper 2 beside ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.studies.findings import Answer, Findings, Verdict
from experiments.studies.laws_models import FIGURE_N, HIGH, LOW, USUAL, Model, Seen
from experiments.studies.laws_tables import (
    architectures_table,
    exponents_table,
    figure3a,
    figure3b,
    figure3c,
    forms_table,
    laws_table,
    unbalanced_figure,
)
from experiments.studies.statistics import PairedTest, holm, paired_test
from experiments.studies.study import Run

LEVEL = 0.05
ROOT = 0.5  # the exponent of a square root
FEW = 1000  # tokens a task, where there is least


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """Figures 3a to 3c, exponents, laws, and the answers."""
    seen = Seen(runs)
    if not seen.single or not seen.joint(lambda m: True):
        return Findings("Single-task models or multi-task models are missing yet, so there is nothing to compare.")
    architectures = list(dict.fromkeys([USUAL, *(m.architecture for m in seen.models)]))
    fitted = [exponents_table(seen.fits), forms_table(seen.fits), laws_table(seen.fits)] if seen.fits else []
    others = [architectures_table(seen, architectures)] if len(architectures) > 1 else []
    figures = [figure3a(seen), figure3b(seen), figure3c(seen), unbalanced_figure(seen)]
    return Findings(
        headline=_headline(seen),
        answers=[*_growth(seen), *_benefit(seen), *_unbalanced(seen), *_law(seen)],
        tables=[*fitted, *others],
        figures=[figure for figure in figures if figure.lines],
        sizes=_sizes(seen),
        cut=[
            "The paper's fastText vectors are not bundled: static vectors of the bundled encoder, which knows no "
            "capitals, stand in.",
            *(["n ends at 6,000 instead of 20,000 and training at 30 epochs instead of 100."] * (scale == "small")),
            *(["Unbalanced models have up to 15 tasks instead of 30."] * (scale == "small")),
            "The sizes of the paper's layers are not given: 32 each way for the BiLSTM, 32 for dense layers.",
        ],
    )


def _headline(seen: Seen) -> str:
    parts = []
    for words, models in (("closely", seen.joint(_close)), ("hardly", seen.joint(_far))):
        gain = seen.gain(models)
        if gain is not None:
            parts.append(f"{_points(gain)} with {words} related tasks")
    more = seen.gain(seen.joint(_close, "unbalanced"))
    said = "Joint training changes F1 by " + " and by ".join(parts) if parts else "Models are still few"
    said += " on the same words" * bool(parts)
    if more is not None:
        said += f", by {_points(more)} where closely related tasks have more words"
    if "balanced" in seen.fits:
        powers = seen.fits["balanced"]["powers"]["plain"]["exponents"]
        said += f"; F1 grows as n^{powers['n']['value']:.2f}, AMI^{powers['ami']['value']:.2f}"
        said += f" and T^{powers['tasks']['value']:.2f}, where the paper has square roots"
    return said + "."


def _close(model: Model) -> bool:
    return model.ami is not None and model.ami >= HIGH


def _far(model: Model) -> bool:
    return model.ami is not None and model.ami < LOW


def _points(test: PairedTest) -> str:
    """A difference in points of F1, with its interval.

    >>> _points(paired_test([0.5, 0.75], [0.25, 0.5]))
    '+25.0 points (25.0 to 25.0)'
    """
    if test["difference"] is None:
        return "an unknown number of points"
    said = f"{100 * test['difference']:+.1f} points"
    if test["low"] is None or test["high"] is None:
        return said
    return f"{said} ({100 * test['low']:.1f} to {100 * test['high']:.1f})"


def _verdict(test: PairedTest | None) -> Verdict:
    """Whether a difference is above 0; undecided if its interval has 0 in it."""
    if test is None or test["low"] is None or test["high"] is None or test["low"] <= 0 <= test["high"]:
        return "not decided here"
    return "yes" if test["low"] > 0 else "no"


# -- how F1 grows -----------------------------------------------------------------------------------------------------
def _growth(seen: Seen) -> list[Answer]:
    """Whether F1 grows with the square roots of n, AMI and T."""
    paper = {
        "n": "Yes: √n (eq. 3 and 6).",
        "ami": "Yes: √AMI (eq. 4; in eq. 6 it levels off).",
        "tasks": "√T by eq. 5, which was guessed, and √log T by eq. 6.",
    }
    words = {"n": "√n", "ami": "√AMI", "tasks": "√T"}
    found = []
    for name, said in paper.items():
        asks = f"Does F1 grow with {words[name]}?"
        if "balanced" not in seen.fits:
            why = "The laws have not been fitted yet."
            found.append(Answer(f"5.1, {words[name]}", asks, "not decided here", why, said))
            continue
        powers = seen.fits["balanced"]["powers"]
        plain, offset = (powers[which]["exponents"][name] for which in ("plain", "offset"))
        holds = {one["low"] <= ROOT <= one["high"] for one in (plain, offset)}
        errors = [1000 * powers[which]["error"] for which in ("plain", "offset")]
        why = (
            f"Of a power law in n, T and AMI the exponent is {_interval(plain)}, squared error {errors[0]:.2f} in "
            f"thousandths; with an offset {_interval(offset)}, {errors[1]:.2f}. Intervals are over seeds; a square "
            "root is 0.5; where the two disagree, nothing is decided."
        )
        verdict: Verdict = "not decided here" if len(holds) > 1 else "yes" if holds == {True} else "no"
        found.append(Answer(f"5.1, {words[name]}", asks, verdict, why, said))
    return found


def _interval(exponent: dict[str, float]) -> str:
    return f"{exponent['value']:.2f} ({exponent['low']:.2f} to {exponent['high']:.2f})"


# -- what joint training buys -----------------------------------------------------------------------------------------
def _beats(seen: Seen, kind: str, question: str, asks: str, more: str, paper: str) -> list[Answer]:
    """Whether models of a kind beat single tasks when their tasks are closely related."""
    close, far = (seen.gain(seen.joint(wanted, kind)) for wanted in (_close, _far))
    if close is None:
        return []
    rest = f"; below {LOW}, {_points(far)}" if far is not None else ""
    why = f"With an AMI of {HIGH} or more, {_points(close)} of F1 over all n and T{rest}. {more}"
    return [Answer(question, asks, _verdict(close), why, paper)]


def _benefit(seen: Seen) -> list[Answer]:
    found = _beats(
        seen,
        "balanced",
        "5.1, high AMI",
        "Does joint training beat a single task when the tasks are closely related?",
        "Intervals are over seeds.",
        "Yes, when the AMI is high (Figure 3a).",
    )
    poor = seen.gain(seen.joint(lambda m: _far(m) and m.n == FEW))
    if poor is not None:
        found.append(
            Answer(
                "5.1, few tokens",
                "With few tokens, does joint training help even if tasks are hardly related?",
                _verdict(poor),
                f"With {FEW:,} tokens and an AMI below {LOW}, {_points(poor)}.",
                "Yes: almost certain to be observed in low resource scenarios.",
            )
        )
    return [*found, *_more_tasks(seen)]


def _more_tasks(seen: Seen) -> list[Answer]:
    """From the fewest to the most tasks, for every α; and the share of settings above a single task."""
    mine = seen.joint(lambda m: m.n == FIGURE_N)
    ends = min((m.tasks for m in mine), default=0), max((m.tasks for m in mine), default=0)
    at = {(m.alpha, m.tasks, m.seed): m.score for m in mine}
    tests = {}
    for alpha in sorted({m.alpha for m in mine if m.alpha is not None}):
        seeds = [seed for of, tasks, seed in at if (of, tasks) == (alpha, ends[1]) and (of, ends[0], seed) in at]
        if len(seeds) > 1 and ends[0] < ends[1]:
            most, fewest = ([at[alpha, tasks, seed] for seed in seeds] for tasks in reversed(ends))
            tests[alpha] = paired_test(most, fewest)
    if not tests:
        return []
    corrected = holm([test["p"] for test in tests.values()])
    verdicts = [
        _verdict(test) if p is not None and p < LEVEL else "not decided here"
        for test, p in zip(tests.values(), corrected, strict=True)
    ]
    lowest, highest = tests[min(tests)], tests[max(tests)]
    alone = [score for (of, n, _), score in seen.single.items() if (of, n) == (USUAL, FIGURE_N)]
    means = {
        (alpha, tasks): np.mean([m.score for m in mine if (m.alpha, m.tasks) == (alpha, tasks)])
        for alpha, tasks in {(m.alpha, m.tasks) for m in mine}
    }
    above = [bool(mean > np.mean(alone)) for mean in means.values()] if alone else []
    verdict: Verdict = "yes" if all(v == "yes" for v in verdicts) else "no" if "no" in verdicts else "not decided here"
    return [
        Answer(
            "5.1, more tasks",
            "Do more tasks always help?",
            verdict,
            f"From {ends[0]} to {ends[1]} tasks of {FIGURE_N:,} tokens F1 rises for {verdicts.count('yes')} of "
            f"{len(tests)} values of α, falls for {verdicts.count('no')}, and neither is sure for the rest (after "
            f"Holm's correction): {_points(lowest)} at α = {min(tests):g}, {_points(highest)} at α = {max(tests):g}. "
            f"{_peaks(means)}",
            "No: not always.",
        ),
        Answer(
            "5.1, all above",
            f"With {FIGURE_N:,} tokens a task, are all joint models above their single task?",
            "yes" if above and all(above) else "no",
            f"{sum(above)} of {len(above)} means over seeds are." if above else "There is no single task to compare.",
            "Yes (Figure 3c).",
        ),
    ]


def _peaks(means: Mapping[tuple[float | None, int], Any]) -> str:
    """With how many tasks F1 is highest, for every α that was tried with the most of them."""
    tried: dict[float, dict[int, float]] = defaultdict(dict)
    for (alpha, tasks), mean in means.items():
        if alpha is not None:
            tried[alpha][tasks] = float(mean)
    most = max(map(len, tried.values()))
    peaks = {alpha: max(some, key=lambda t: some[t]) for alpha, some in sorted(tried.items()) if len(some) == most}
    return "The mean is highest with " + ", ".join(f"T = {t} at α = {a:g}" for a, t in peaks.items()) + "."


def _unbalanced(seen: Seen) -> list[Answer]:
    """Whether other tasks that have more tokens help, and whether more of them help a real task that keeps its own."""
    found = _beats(
        seen,
        "unbalanced",
        "5.2, high AMI",
        "Does joint training beat a single task when closely related tasks are labelled on more words?",
        "In balanced models all tasks are labelled on the same words, so a task that is the same in all but name tells "
        "nothing new; here it has more words.",
        "Nothing of single tasks is said there.",
    )
    for words, wanted in (("closely related", _close), ("hardly related", _far)):
        mine = seen.joint(wanted, "unbalanced")
        ends = min((m.n_other for m in mine), default=0), max((m.n_other for m in mine), default=0)
        at = {(m.n, m.tasks, m.alpha, m.seed, m.n_other): m.score for m in mine}
        pairs = [key[:4] for key in at if key[4] == ends[1] and (*key[:4], ends[0]) in at]
        if not pairs or ends[0] == ends[1]:
            continue
        test = paired_test(
            [at[(*key, ends[1])] for key in pairs], [at[(*key, ends[0])] for key in pairs], [key[3] for key in pairs]
        )
        found.append(
            Answer(
                f"5.2, {words}",
                f"Do more tokens of {words} synthetic tasks help a real task that keeps its own few?",
                _verdict(test),
                f"From {ends[0]:,} to {ends[1]:,} tokens of each, {_points(test)} over all n and T.",
                "Yes: √n of the synthetic tasks (eq. 8 and 11).",
            )
        )
    return found


def _law(seen: Seen) -> list[Answer]:
    """Whether the paper's formula of all variables holds, for both tables."""
    found = []
    for table, equation in (("balanced", "eq6"), ("unbalanced", "eq11")):
        fit = seen.fits.get(table)
        form = None if fit is None else next((f for f in fit["forms"] if f["name"] == equation), None)
        if fit is None or form is None:
            continue
        law = list(fit["laws"].values())[-1]
        number = equation.removeprefix("eq")
        front = [entry for entry in law["front"] if entry["error"] is not None]
        best = min(front, key=lambda entry: entry["error"])
        mine = next((entry["error"] for entry in front if entry["origin"] == equation), form["error"])
        found.append(
            Answer(
                f"{'5.1' if table == 'balanced' else '5.2'}, law",
                f"Is the form of equation {number} the law of our models as well?",
                "yes" if mine <= best["error"] + best["doubt"] else "no",
                f"With its constants refitted, its squared error on held-out folds is {1000 * mine:.2f} in "
                f"thousandths, that of the best formula found {1000 * best['error']:.2f} ± {1000 * best['doubt']:.2f}; "
                f"where every n meets every T and α, it has {1000 * form['error']:.2f}, the mean alone "
                f"{1000 * form['constant']:.2f}, a monotone model {1000 * form['monotone']:.2f}. Ours: F1 = "
                f"{law['text']}.",
                f"Equation {number}.",
            )
        )
    return found


def _sizes(seen: Seen) -> dict[str, str]:
    settings = {
        kind: {(m.n, m.n_other, m.tasks, m.alpha, m.architecture) for m in seen.models if m.kind == kind}
        for kind in ("balanced", "unbalanced", "single")
    }
    seeds = len({m.seed for m in seen.models})
    balanced = [m for m in seen.models if m.kind == "balanced"]
    return {
        "data": "CoNLL-2003: sentences drawn from the training part, F1 of entities on the whole test part",
        "models": f"{len(seen.models):,}, of "
        + ", ".join(f"{len(some):,} {kind} settings" for kind, some in settings.items() if some)
        + f", each with up to {seeds} seeds",
        "balanced": f"n from {min(m.n for m in balanced):,} to {max(m.n for m in balanced):,} tokens, T from "
        f"{min(m.tasks for m in balanced)} to {max(m.tasks for m in balanced)}, the paper's values of α",
        **_unbalanced_sizes(seen),
        "model": "a window of three words as vectors of 100 numbers, a shared BiLSTM of 32 each way, dense layers of "
        "32, an output layer a task; Adam, batches of 100, the last epoch kept",
    }


def _unbalanced_sizes(seen: Seen) -> dict[str, str]:
    mine = [m for m in seen.models if m.kind == "unbalanced"]
    if not mine:
        return {}
    ends = [(min(values), max(values)) for values in zip(*((m.n, m.n_other, m.tasks) for m in mine), strict=True)]
    said = "n from {:,} to {:,} tokens, {:,} to {:,} of each synthetic task, T from {} to {}"
    return {"unbalanced": said.format(*(end for pair in ends for end in pair))}
