"""What the study of splits says: do estimates beat plain splits, what are they worth, does a split help choosing?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bursar.studies.allocation_runs import (
    ALL_ON_ONE,
    MAIN,
    QUICK,
    TOGETHER,
    Divided,
    Seen,
    arm_name,
    compared,
    heuristics,
    mean_over,
)
from bursar.studies.allocation_settings import ARMS, SETTINGS, Setting
from bursar.studies.allocation_tables import (
    ahead_tables,
    alone_tables,
    budget_figures,
    campaigns_tables,
    estimates_tables,
    gains_table,
    informs_figures,
    known_tables,
    prices_table,
    rates_tables,
    turned_out_figures,
)
from bursar.studies.findings import Answer, Findings, Verdict
from bursar.studies.outcomes import common_cells, in_words, verdict, versus
from bursar.studies.statistics import PairedTest, holm, paired_test
from bursar.studies.study import Run


def analyse(runs: Sequence[Run], scale: str) -> Findings:
    """From runs, perhaps not all of them, to what they say."""
    seen = Seen(runs)
    if not seen.divided:
        return Findings("No budget has been split yet.")
    return Findings(
        headline=_headline(seen),
        answers=_answers(seen),
        tables=[
            gains_table(seen),
            *alone_tables(seen),
            prices_table(seen),
            *ahead_tables(seen),
            *estimates_tables(seen),
            *known_tables(seen),
            *rates_tables(seen),
            *campaigns_tables(seen),
        ],
        figures=[*budget_figures(seen), *informs_figures(seen), *turned_out_figures(seen)],
        sizes=_sizes(),
        cut=[
            "PASCAL VOC and Taskonomy are not here: CMU's faces, the built-in corpus, ATIS and EWT stand in.",
            "Only a summary of the paper is known to us; what it leaves open is decided in our own way. Look-aheads go "
            "by the loss, where it goes by scores: those of few held-out items hardly move in a few steps.",
            "Curves of guessed labels begin with nothing: on top of the seed labels they are flat.",
            "Models of text are trained for so many steps, whatever there is to learn from: labels of different items "
            "are seen less often than as many labels of the same items.",
        ],
    )


# -- words -------------------------------------------------------------------------------------------------------------
def _headline(seen: Seen) -> str:
    ranked = sorted([*seen.methods(), ALL_ON_ONE], key=lambda name: -(mean_over(seen.divided, name).ours or 0.0))
    told = ", ".join(f"{name} {mean_over(seen.divided, name).ours:.1f}" for name in ranked[:3])
    main = mean_over(seen.divided, MAIN).ours
    return f"Relative gain over the seed model: {told}; the paper's method {main:.1f} % (24.7 % on PASCAL VOC)."


def _answers(seen: Seen) -> list[Answer]:
    if len({cell.cluster for cell in seen.divided}) < 3:
        return []
    cells = seen.divided
    apart = [cell for cell in cells if not cell.shares_reading]
    shared = [cell for cell in cells if cell.shares_reading]
    asks = "Where reading is paid once an item, is it better to label some items for all tasks than all labels apart?"
    alone = "Where every label is paid by itself"
    once = "Where reading is paid once an item"
    return [
        *_beats_all(seen, apart, MAIN, "A1", alone, "Yes: 24.7 % against 19.3 to 22.9 %."),
        *_beats_all(seen, shared, TOGETHER, "A2", once, "Not asked: it labels different items for each task."),
        _one("A3", "Does it help to know who informs whom?", cells, MAIN, "no transfer", "Yes, by its ablation."),
        _one("A4", "Does it help that each task has a rate of its own?", cells, MAIN, "one rate", "Yes."),
        _one(
            "A5",
            "Are quick estimates better than look-aheads and pseudo-labels?",
            cells,
            f"exact, {QUICK}",
            MAIN,
            "Not asked.",
        ),
        *([_one("A6", asks, shared, TOGETHER, MAIN, "Not asked.")] if shared else []),
        _foreseen(cells),
        *_active(seen),
    ]


def _one(number: str, asks: str, cells: Sequence[Divided], one: str, other: str, paper: str) -> Answer:
    relative, points = (compared(cells, one, other, how) for how in (True, False))
    why = f"{in_words(relative)} of relative gain; {in_words(points)} of the scores themselves."
    return Answer(number, asks, _agreed(verdict(relative), verdict(points)), why, paper)


def _agreed(*verdicts: Verdict) -> Verdict:
    """What all say; nothing is decided where they differ."""
    return verdicts[0] if len(set(verdicts)) == 1 else "not decided here"


def _beats_all(seen: Seen, cells: Sequence[Divided], method: str, number: str, where: str, paper: str) -> list[Answer]:
    """Against every heuristic, by relative gains and by points, corrected for how many there are."""
    if len({cell.cluster for cell in cells}) < 3:
        return []
    others = heuristics(seen)
    tests, points = ({name: compared(cells, method, name, how) for name in others} for how in (True, False))
    best = min(tests, key=lambda name: tests[name]["difference"] or 0.0)
    why = f"from the best of them, {best}: {in_words(tests[best])} of relative gain"
    why += f", {in_words(points[best])} of the scores themselves"
    behind = [name for name, test in tests.items() if (test["difference"] or 0.0) < 0]
    if behind:
        on = {name: [data for data in seen.data if _behind_in(data, cells, method, name)] for name in behind}
        why += f"; behind {', '.join(f'{name} (on {_listed(on[name])})' for name in behind)}"
    else:
        why += f"; ahead of all {len(tests)} on average"
    verdicts = (_against_all(tests), _against_all(points))
    asks = f"{where}, does the split ({method}) beat every heuristic?"
    return [Answer(number, asks, _agreed(*verdicts), f"{why}. The verdict counts how many were tried.", paper)]


def _listed(names: Sequence[str]) -> str:
    """Names in a row.

    >>> _listed(["faces", "atis", "ewt"])
    'faces, atis and ewt'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _against_all(tests: Mapping[str, PairedTest]) -> Verdict:
    """Yes if it is ahead of all beyond luck, no if it is behind any beyond luck."""
    sure = dict(zip(tests, holm([test["p"] for test in tests.values()]), strict=True))
    found = {name: verdict(test) for name, test in tests.items() if (p := sure[name]) is not None and p < 0.05}
    if "no" in found.values():
        return "no"
    return "yes" if len(found) == len(tests) and set(found.values()) == {"yes"} else "not decided here"


def _behind_in(data: str, cells: Sequence[Divided], method: str, other: str) -> bool:
    mine = [cell for cell in cells if cell.data == data]
    return bool(mine) and (compared(mine, method, other)["difference"] or 0.0) < 0


def _foreseen(cells: Sequence[Divided]) -> Answer:
    clusters = [cell.cluster for cell in cells]
    test, plain = (
        paired_test([cell.foresight(plain) for cell in cells], [0.0] * len(cells), cluster=clusters)
        for plain in (False, True)
    )
    why = (
        f"Spearman's correlation over the splits of a budget is {_between(test)} on average; without those that give "
        f"all money to one task {_between(plain)}."
    )
    asks = "Do the gains that the paper's estimates predict order the splits better than chance?"
    return Answer("A7", asks, verdict(test), why, "Taken for granted.")


def _between(test: PairedTest) -> str:
    low, high = test["low"], test["high"]
    return f"{test['difference']:.2f}" + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")


def _active(seen: Seen) -> list[Answer]:
    plain, split = arm_name(*ARMS[0]), arm_name(*ARMS[1])
    if len(common_cells(seen.campaigns, [plain, split])) < 3:
        return []
    test = versus(seen.campaigns, split, plain)
    asks = "Does a split of each round's money help a campaign that chooses its labels?"
    return [Answer("A8", asks, verdict(test), f"{in_words(test)}, last scores.", "Future work.")]


def _sizes() -> dict[str, str]:
    told = {
        data: f"{', '.join(one.tasks)}; {one.seed} seed items, a pool of {one.pool:,}, {one.test:,} test items; "
        f"{one.learner}, {_length(one.options)}; prices {', '.join(one.prices)}; {_budgets(one)}"
        for data, one in SETTINGS.items()
    }
    return told | {"labels": "of random items, as in the paper; the same ones, as far as two splits buy alike"}


def _budgets(one: Setting) -> str:
    first, *others = (f"{times:g}" for times in one.budgets)
    more = f", at equal prices also {_listed(others)} times" if others else ""
    return f"a budget of {first} times the seed labels{more}"


def _length(options: Mapping[str, Any]) -> str:
    return f"{options['steps']} steps" if "steps" in options else f"{options['epochs']} epochs"
