"""The questions of the study of splits, and what was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.studies.allocation_runs import (
    AS_OFTEN,
    FOREKNOWN,
    MAIN,
    QUICK,
    TOGETHER,
    WEIGHED,
    Divided,
    Seen,
    arm_name,
    compared,
    heuristics,
    value,
)
from experiments.studies.allocation_settings import ARMS
from experiments.studies.findings import Answer, Verdict
from experiments.studies.outcomes import FEWEST, common_cells, in_words, verdict, versus
from experiments.studies.statistics import PairedTest, holm, paired_test

APART, ONCE = "every label is paid by itself", "reading is paid once an item"
NOT_ASKED = "Not asked."


def answers_of(seen: Seen) -> list[Answer]:
    """All that can be answered by now."""
    if len({cell.cluster for cell in seen.divided}) < FEWEST:
        return []
    cells = seen.divided
    apart = [cell for cell in cells if not cell.shares_reading]
    shared = [cell for cell in cells if cell.shares_reading]
    quick = "Are quick estimates better than look-aheads and pseudo-labels?"
    asks = f"Where {ONCE}, is it better to label some items for all tasks than all labels apart?"
    return [
        *_beats_all(seen, apart, MAIN, "A1", f"Where {APART}", "Yes: 24.7 % against 19.3 to 22.9 %."),
        *_beats_all(
            seen, shared, TOGETHER, "A2", f"Where {ONCE}", "Not asked: it labels different items for each task."
        ),
        *_one("A3", "Does it help to know who informs whom?", cells, MAIN, "no transfer", "Yes, by its ablation."),
        *_one("A4", "Does it help that each task has a rate of its own?", cells, MAIN, "one rate", "Yes."),
        *_one("A5", quick, cells, f"exact, {QUICK}", MAIN),
        *_one("A6", asks, shared, TOGETHER, MAIN),
        _foreseen(cells),
        *_active(seen),
        *_why(seen),
    ]


def _why(seen: Seen) -> list[Answer]:
    """What the controls say; they were thought of after the answers before had been seen."""
    apart = [cell for cell in seen.foreknown if not cell.shares_reading]
    shared = [cell for cell in seen.foreknown if cell.shares_reading]
    known, weighed = f"exact, {FOREKNOWN}", f"exact, {WEIGHED}"
    alone, once = (f"If other draws' real labels told all there is to know, where {of}" for of in (APART, ONCE))
    more = "With four times the seed items on the built-in corpus, in three draws"
    return [
        *_beats_all(seen, apart, weighed, "A9", alone, NOT_ASKED),
        *_beats_all(seen, shared, f"together, {WEIGHED}", "A10", once, NOT_ASKED),
        *_one("A11", "Are good estimates worth more than those of the seed items?", seen.foreknown, known, MAIN),
        *_one("A12", "Does it help to know what each task gains from its own labels?", seen.foreknown, weighed, known),
        *_seen_more_often(seen),
        *_one(
            "A14",
            "Where every label is seen as often, is the split better than the same items for all tasks?",
            seen.as_often,
            MAIN,
            AS_OFTEN[0],
        ),
        *_beats_all(seen, seen.more_seeds, MAIN, "A15", more, NOT_ASKED),
    ]


def _seen_more_often(seen: Seen) -> list[Answer]:
    """Whether labels of the same items lead over as many of different ones because they are seen more often."""
    cells = seen.as_often
    if len({cell.cluster for cell in cells}) < FEWEST:
        return []
    plain = {cell.place: cell for cell in seen.divided}
    fewer = [plain[cell.place] for cell in cells]

    def leads(some: Sequence[Divided]) -> list[float]:
        return [value(cell, AS_OFTEN[0]) - value(cell, AS_OFTEN[1]) for cell in some]

    before, after = (compared(some, *AS_OFTEN) for some in (fewer, cells))
    test = paired_test(leads(fewer), leads(cells), cluster=[cell.cluster for cell in cells])
    why = (
        f"With as many steps the same items lead over equal counts by {in_words(before)} of relative gain; if every "
        f"label is seen as often, by {in_words(after)}. The difference: {in_words(test)}."
    )
    asks = (
        "On texts, do the same items for all tasks owe their lead to labels that are seen more often in as many steps?"
    )
    return [Answer("A13", asks, verdict(test), why, NOT_ASKED)]


def _one(
    number: str, asks: str, cells: Sequence[Divided], one: str, other: str, paper: str = NOT_ASKED
) -> list[Answer]:
    """One method against another."""
    if len({cell.cluster for cell in cells}) < FEWEST:
        return []
    relative, points = (compared(cells, one, other, how) for how in (True, False))
    why = f"{in_words(relative)} of relative gain; {in_words(points)} of the scores themselves."
    return [Answer(number, asks, _agreed(verdict(relative), verdict(points)), why, paper)]


def _agreed(*verdicts: Verdict) -> Verdict:
    """What all say; nothing is decided where they differ."""
    return verdicts[0] if len(set(verdicts)) == 1 else "not decided here"


def _beats_all(seen: Seen, cells: Sequence[Divided], method: str, number: str, where: str, paper: str) -> list[Answer]:
    """Against every heuristic, by relative gains and by points, corrected for how many there are."""
    if len({cell.cluster for cell in cells}) < FEWEST:
        return []
    others = heuristics(seen)
    tests, points = ({name: compared(cells, method, name, how) for name in others} for how in (True, False))
    best = min(tests, key=lambda name: tests[name]["difference"] or 0.0)
    why = f"from the best of them, {best}: {in_words(tests[best])} of relative gain"
    why += f", {in_words(points[best])} of the scores themselves"
    behind = [name for name, test in tests.items() if (test["difference"] or 0.0) < 0]
    if behind:
        on = {
            name: [data for data in dict.fromkeys(cell.data for cell in cells) if _behind_in(data, cells, method, name)]
            for name in behind
        }
        why += f"; behind {', '.join(f'{name} (on {listed(on[name])})' for name in behind)}"
    else:
        why += f"; ahead of all {len(tests)} on average"
    verdicts = (_against_all(tests), _against_all(points))
    asks = f"{where}, does the split ({method}) beat every heuristic?"
    return [Answer(number, asks, _agreed(*verdicts), f"{why}. The verdict counts how many were tried.", paper)]


def listed(names: Sequence[str]) -> str:
    """Names in a row.

    >>> listed(["faces", "atis", "ewt"])
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
    return (compared(mine, method, other)["difference"] or 0.0) < 0


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
    if len(common_cells(seen.campaigns, [plain, split])) < FEWEST:
        return []
    test = versus(seen.campaigns, split, plain)
    asks = "Does a split of each round's money help a campaign that chooses its labels?"
    return [Answer("A8", asks, verdict(test), f"{in_words(test)}, last scores.", "Future work.")]
