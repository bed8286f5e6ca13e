"""Functions of the page modules: completeness, undo, timing, and word positions."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.corpus.words import find_words
from bursar.errors import LabelError
from bursar.tasks import Classification, Parsing, Regression, Relations, Tagging
from bursar.web.pages import widget_path
from tests.web.annotate.samples import SENTENCE, STRANGE

pytestmark = pytest.mark.browser


CLOCK = """({ Clock }, steps) => {
    const clock = new Clock({}, 0);
    for (const [what, ...rest] of steps) clock[what](...rest);
    return clock.total();
}"""


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([["charge", "reading", 3], ["charge", "intent", 4.25]], {"reading": 3, "intent": 1.25}),
        ([["alive", 50], ["alive", 100], ["charge", "reading", 110]], {"reading": 110}),
        ([["charge", "reading", 1000]], {"reading": 60}),  # nobody was there
        ([["pause", 10], ["resume", 500], ["charge", "reading", 505]], {"reading": 15}),
        ([["pause", 10], ["alive", 30], ["charge", "reading", 40]], {"reading": 10}),
        ([["charge", "intent", 5], ["charge", "slots", 3], ["charge", "intent", 7]], {"intent": 9, "slots": 0}),
    ],
)
def test_time_without_a_sign_of_a_person_is_not_counted(modules, steps, seconds):
    assert modules("clock", CLOCK, steps) == seconds


# -- what the page takes for complete is what the tasks take ----------------------------------------------------------
MISSING = """async ({ kindOf, loadWidgets }, { task, words, values }) => {
    const { Passage } = await import("/static/annotate/text.js");
    const item = { words: Array.from({ length: words }, (_, at) => [2 * at, 2 * at + 1]), text: "a ".repeat(words) };
    const passage = new Passage(item.text, item.words);
    await loadWidgets([task]);
    const kind = kindOf(task);
    return values.map((value) => {
        const state = kind.read(value, task, item);
        return [kind.missing(state, task, item, passage), kind.value(state, task, item)];
    });
}"""


def test_the_page_finds_a_tree_complete_just_when_the_task_does(modules):
    task = Parsing("tree", ("root", "det"))
    draw = np.random.default_rng(3)
    for words in (1, 2, 3, 4, 5):
        heads = draw.integers(0, words + 1, (150, words))
        heads = [row for row in heads.tolist() if all(head != at for at, head in enumerate(row, start=1))]
        values = [[[head, "det"] for head in row] for row in heads]
        found = modules("kinds", MISSING, {"task": shown(task), "words": words, "values": values})
        assert [missing == "" for missing, _ in found] == [accepts(task, value, words) for value in values]
        assert [value for _, value in found] == values


def shown(task):
    return {"name": task.name, "widget": widget_path(task)} | task.describe()


def accepts(task, value, words):
    try:
        task.encode(value, words)
    except LabelError:
        return False
    return True


@pytest.mark.parametrize(
    ("task", "values"),
    [
        (Classification("a", ("x", "y")), ["x", "y"]),
        (Tagging("a", ("x", "y")), [[], [[0, 1, "x"]], [[0, 3, "y"], [3, 4, "x"]]]),
        (Tagging("a", ("x", "y"), every_word=True), [["x", "y", "x", "x"]]),
        (Relations("a", ("r",), entity_types=("x", "y")), [[], [[[0, 1, "x"], [2, 4, "y"], "r"]]]),
        (Regression("a", low=-1, high=1), [0, -1, 0.125]),
    ],
)
def test_every_label_of_a_task_is_read_shown_and_sent_as_it_was(modules, task, values):
    found = modules("kinds", MISSING, {"task": shown(task), "words": 4, "values": values})
    assert found == [["", value] for value in values]
    assert all(accepts(task, value, 4) for value in values)


DRAFT = """({ makeDraft, edit, undo, redo }, steps) => {
    let draft = makeDraft({ item: "u", tasks: ["a", "b"], states: { a: null, b: null }, key: "k" });
    return steps.map(([what, ...rest]) => {
        draft = { edit, undo, redo }[what](draft, ...rest);
        return [draft.states.a, draft.states.b];
    });
}"""


def test_every_edit_is_undone_and_done_again_in_order(modules):
    draw = np.random.default_rng(5)
    steps = [
        ["edit", "ab"[draw.integers(2)], int(draw.integers(3))]
        if draw.random() < 0.5
        else [["undo", "redo"][draw.integers(2)]]
        for _ in range(300)
    ]
    found = modules("draft", DRAFT, steps)
    past, future, state, expected = [], [], (None, None), []
    for what, *rest in steps:
        if what == "edit":
            after = (rest[1], state[1]) if rest[0] == "a" else (state[0], rest[1])
            if after != state:
                past, future, state = [*past, state], [], after
        elif what == "undo" and past:
            past, future, state = past[:-1], [state, *future], past[-1]
        elif what == "redo" and future:
            past, future, state = [*past, state], future[1:], future[0]
        expected.append(list(state))
    assert found == expected


def test_offsets_in_code_points_become_places_in_a_string(modules):
    for text in (STRANGE, SENTENCE, "", "👩‍👩‍👧‍👦", "a👍b"):
        words = find_words(text)
        slices = "({ Passage }, [text, words]) => words.map((_, at) => new Passage(text, words).word(at))"
        assert modules("text", slices, [text, words]) == [text[start:end] for start, end in words]
