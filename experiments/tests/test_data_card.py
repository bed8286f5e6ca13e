"""The card that people read is the one that the code writes."""

from pathlib import Path

import pytest

from bursar.simulation import assistant_corpus
from experiments.data_card import data_card, tree_depth
from experiments.novelty import mentions_of, unseen_share

CARD = Path(__file__).parents[2] / "docs" / "reference" / "builtin-corpus.md"


@pytest.fixture(scope="module")
def default_corpus():
    return assistant_corpus()


def test_the_committed_card_is_the_one_of_the_default_corpus(default_corpus):
    assert CARD.read_text(encoding="utf-8") == data_card(default_corpus), (
        "write it anew: data_card(assistant_corpus()) into docs/reference/builtin-corpus.md"
    )


def test_a_tiny_corpus_has_a_card_too():
    assert "| play_music |" in data_card(assistant_corpus(40))
    assert data_card(assistant_corpus(1)).startswith("# The built-in corpus")


def test_the_depth_of_a_chain_is_its_length():
    assert tree_depth([0]) == 1
    assert tree_depth([2, 3, 4, 0]) == 4
    assert tree_depth([2, 0, 2]) == 2


def test_test_holds_slot_values_that_train_never_shows(default_corpus):
    mentions = mentions_of(default_corpus)
    assert 0.08 < unseen_share(mentions) < 0.25
    assert unseen_share([m for m in mentions if m.kind == "song"]) > 0.5
