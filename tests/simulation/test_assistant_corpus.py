"""What everyone may rely on who uses the built-in corpus."""

import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from bursar.corpus import read, write
from bursar.corpus.corpus import Item
from bursar.corpus.words import find_words
from bursar.errors import ConfigError
from bursar.simulation import assistant_corpus
from bursar.simulation.assistant import source_of
from bursar.simulation.vocabulary import intents, slot_types
from tests.same import differences, same_labels


# -- the same again ----------------------------------------------------------------------------------------------
def test_the_same_call_gives_the_same_corpus():
    first, again = assistant_corpus(400, seed=4), assistant_corpus(400, seed=4)
    assert not differences(first, again)
    assert np.array_equal(first.texts.strings.data, again.texts.strings.data)
    for task in first.schema:
        assert same_labels(first.labels[task], again.labels[task])


@pytest.mark.parametrize("seed", [0, 7, -3])
def test_a_smaller_corpus_is_the_beginning_of_a_larger_one(seed):
    small, large = assistant_corpus(120, seed), assistant_corpus(700, seed)
    assert not differences(small, large.take(np.arange(120)))
    assert small.splits == large.splits == ("train", "dev", "test")


def test_a_corpus_of_one_item_knows_all_splits_and_tasks():
    corpus = assistant_corpus(1)
    assert corpus.splits == ("train", "dev", "test")
    assert list(corpus.schema) == ["intent", "slots", "relations", "dependencies", "urgency"]
    assert list(corpus[0].labels) == list(corpus.schema)


def test_the_corpus_does_not_depend_on_hash_seeds_of_the_process():
    script = "from bursar.simulation import assistant_corpus as a; print(a(60, 5).texts.strings.tolist())"
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_other_seeds_give_other_corpora(small_corpus):
    texts = {tuple(assistant_corpus(50, seed).texts.strings.tolist()) for seed in (0, 1, -1, 2, 2**40)}
    assert len(texts) == 5


def test_noise_changes_the_words_and_not_what_is_meant(small_corpus):
    clean = assistant_corpus(1500, seed=11, noise=0)
    assert same_labels(clean.labels["intent"], small_corpus.labels["intent"])
    assert clean.texts.strings.tolist() != small_corpus.texts.strings.tolist()
    fillers = {"uh", "um", "er", "hmm", "basically"}
    assert not fillers & {word for words in clean.texts.all_words() for word in words}
    assert fillers <= {word for words in small_corpus.texts.all_words() for word in words}


# -- the labels hold ---------------------------------------------------------------------------------------------
def test_every_label_is_one_that_its_task_accepts(small_corpus):
    for at in range(len(small_corpus)):
        item = small_corpus[at]
        for name, value in item.labels.items():
            small_corpus.schema[name].encode(value, len(item.words))


def test_word_offsets_are_those_that_the_word_rule_finds(default_corpus):
    spans = default_corpus.texts.spans
    for at, text in enumerate(default_corpus.texts.strings.tolist()):
        assert find_words(text) == [tuple(span) for span in spans[at].tolist()], text


def test_every_tree_has_one_root_and_no_crossing_arcs(small_corpus):
    for heads in (rows[:, 0].tolist() for rows in small_corpus.labels["dependencies"].rows):
        assert heads.count(0) == 1
        arcs = [(min(word, head), max(word, head)) for word, head in enumerate(heads, start=1) if head]
        assert not any(a < c < b < d for a, b in arcs for c, d in arcs)


def test_articles_stand_before_their_heads(small_corpus):
    for at in range(len(small_corpus)):
        for word, (head, label) in enumerate(small_corpus[at].labels["dependencies"], start=1):
            assert label not in ("det", "nmod:poss") or head > word, small_corpus[at].text


def test_slots_do_not_overlap_and_stand_in_order(default_corpus):
    rows = default_corpus.labels["slots"].rows
    for spans in rows:
        assert (spans[:, 0] < spans[:, 1]).all()
        assert (spans[1:, 0] >= spans[:-1, 1]).all()
    assert (rows.values[:, 1] <= default_corpus.words[rows.owners]).all()


def test_every_slot_is_one_subtree(small_corpus):
    """Within a span one word only has its head outside: slots are constituents."""
    for spans, rows in zip(small_corpus.labels["slots"].rows, small_corpus.labels["dependencies"].rows, strict=True):
        for start, end, _ in spans.tolist():
            outside = [head for head in rows[start:end, 0].tolist() if not start < head <= end]
            assert len(outside) == 1


def test_the_ends_of_every_relation_are_slots_of_the_item(default_corpus):
    slots, relations = default_corpus.labels["slots"].rows, default_corpus.labels["relations"].rows
    assert default_corpus.schema["relations"].entity_types == default_corpus.schema["slots"].labels
    for spans, links in zip(slots, relations, strict=True):
        known = {tuple(span) for span in spans.tolist()}
        for link in links.tolist():
            assert tuple(link[:3]) in known
            assert tuple(link[3:6]) in known
            assert link[:3] != link[3:6]


def test_urgency_lies_between_0_and_1_and_spreads(default_corpus):
    urgency = default_corpus.labels["urgency"].rows.values
    assert 0 <= urgency.min() < 0.1
    assert 0.9 < urgency.max() <= 1


def test_haste_is_more_urgent_than_patience(default_corpus):
    urgency = default_corpus.labels["urgency"].rows.values[:, 0]
    texts = default_corpus.texts.strings.tolist()
    hasty = np.array(["asap" in text or "immediately" in text for text in texts])
    calm = np.array(["no rush" in text or "can wait" in text for text in texts])
    assert urgency[hasty & ~calm].mean() > urgency.mean() + 0.2
    assert urgency[calm & ~hasty].mean() < urgency.mean() - 0.1


# -- its shape ---------------------------------------------------------------------------------------------------
def test_intents_have_a_long_tail_and_all_occur(default_corpus):
    codes = default_corpus.labels["intent"].rows.values[:, 0]
    shares = np.sort(np.bincount(codes, minlength=len(intents())) / len(default_corpus))
    assert 0.10 < shares[-1] < 0.14
    assert 0.001 < shares[0] < 0.005
    assert shares[-5:].sum() > 0.3


def test_every_slot_type_and_relation_occurs_and_the_tails_are_long(default_corpus):
    for task, column in (("slots", 2), ("relations", 6)):
        names = default_corpus.schema[task].labels
        counts = np.bincount(default_corpus.labels[task].rows.values[:, column], minlength=len(names))
        assert counts.min() > 0, names[int(counts.argmin())]
        assert counts.max() > 20 * counts.min()
    assert default_corpus.schema["slots"].labels == slot_types()


def test_an_intent_has_one_domain_and_the_domain_is_the_group(default_corpus):
    domains = {intent.name: intent.domain for intent in intents()}
    names, groups = default_corpus.schema["intent"].labels, default_corpus.groups.tolist()
    codes = default_corpus.labels["intent"].rows.values[:, 0].tolist()
    assert all(domains[names[code]] == group for code, group in zip(codes, groups, strict=True))


def test_splits_have_their_shares(default_corpus):
    counts = default_corpus.split_counts()
    assert counts["train"] / len(default_corpus) == pytest.approx(0.8, abs=0.01)
    assert counts["test"] / len(default_corpus) == pytest.approx(0.1, abs=0.01)
    assert assistant_corpus(200, shares=(1, 0, 1)).split_counts()["dev"] == 0


def test_sentences_have_3_to_25_words(default_corpus):
    assert default_corpus.words.min() == 3
    assert default_corpus.words.max() <= 25
    assert 8 < default_corpus.words.mean() < 10


def test_the_same_word_fills_different_slots(default_corpus):
    kinds: dict[str, Counter[str]] = {"seven": Counter(), "jordan": Counter()}
    for at, spans in enumerate(default_corpus.labels["slots"].rows):
        words = default_corpus.texts.words(at)
        for start, end, kind in spans.tolist():
            value = " ".join(words[start:end]).lower()
            if value in kinds:
                kinds[value][default_corpus.schema["slots"].labels[kind]] += 1
    assert {"time", "quantity", "number"} <= set(kinds["seven"])
    assert {"contact", "artist", "place"} <= set(kinds["jordan"])


def test_near_duplicates_mean_the_same_and_share_a_split():
    corpus = assistant_corpus(1000, seed=2, noise=0, near_duplicates=0.3)
    pairs = [(at, source_of(at, seed=2, near_duplicates=0.3)) for at in range(1000)]
    repeats = [(corpus[at], corpus[source]) for at, source in pairs if at != source]
    assert 250 < len(repeats) < 350
    for item, original in repeats:
        assert (item.split, item.group) == (original.split, original.group)
        assert item.labels["intent"] == original.labels["intent"]
        assert _filled(item) == _filled(original)
    assert sum(item.text.lower() != original.text.lower() for item, original in repeats) > 100


def _filled(item: Item) -> list[tuple[str, str]]:
    """The slots and their words, whatever the order and case they are said in."""
    return sorted((kind, " ".join(item.words[a:b]).lower()) for a, b, kind in item.labels["slots"])


def test_the_corpus_survives_its_own_file_format(tmp_path):
    corpus = assistant_corpus(150, seed=3)
    write(corpus, tmp_path / "assistant.jsonl", "jsonl")
    assert not differences(corpus, read(tmp_path / "assistant.jsonl"))


# -- cost and mistakes -------------------------------------------------------------------------------------------
def test_five_thousand_items_take_seconds():
    start = time.process_time()
    assistant_corpus(5000, seed=1)
    assert time.process_time() - start < 5


def test_neither_torch_nor_sklearn_is_imported():
    script = "import sys, bursar.simulation; print([m for m in ('torch', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "wrong", [{"items": 0}, {"shares": (0.5, 0.5)}, {"shares": (1, -1, 1)}, {"noise": -1}, {"near_duplicates": 1}]
)
def test_impossible_wishes_are_refused_with_a_way_out(wrong):
    with pytest.raises(ConfigError, match="Fix:"):
        assistant_corpus(**wrong)
