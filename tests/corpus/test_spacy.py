"""spaCy's DocBin: what spaCy itself reads and trains on, files of others, and what cannot be read or written."""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from bursar.corpus import Corpus, CorpusBuilder, guess_format, read, write
from bursar.errors import DataError
from tests.corpus.corpora import (
    CLASSES,
    EVERY_WORD,
    LABELS,
    PHRASES,
    TAGGING,
    Contract,
    Draw,
    any_spans,
    links,
    spaced,
    spans,
    tokens,
    tree,
)
from tests.same import differences

SCORE = {"kind": "regression", "low": -1, "high": 9.5}
KINDS = {
    "intent": CLASSES,
    "tone": CLASSES,
    "entities": TAGGING,
    "my slots": TAGGING,
    "upos": EVERY_WORD,
    "words": EVERY_WORD,
    "tree": {"kind": "parsing"},
    "other tree": {"kind": "parsing"},
    "links": {"kind": "relations"},
    "score": SCORE,
}


@st.composite
def corpora(draw: Draw) -> Corpus:
    """Any tasks; spans that lie apart, or overlap; the first item has labels for every task."""
    tasks = sorted(draw(st.sets(st.sampled_from(sorted(KINDS)), min_size=1)))
    make_spans = draw(st.sampled_from([spans, any_spans]))
    builder = CorpusBuilder({task: KINDS[task] for task in tasks})
    for n in range(draw(st.integers(1, 4))):
        text, places = spaced(draw, [*tokens(draw, least=0), *draw(st.sampled_from([[], ["😀"], ["שלום"]]))])
        labels: dict[str, Any] = {task: draw(PHRASES) for task in ("intent", "tone")}
        labels |= {task: [[a, b, draw(LABELS)] for a, b, _ in make_spans(draw, len(places))] for task in ("entities",)}
        labels["my slots"] = make_spans(draw, len(places))
        labels["upos"] = [draw(st.sampled_from(["NOUN", "VERB"])) for _ in places]
        labels["words"] = [draw(LABELS) for _ in places]
        labels |= {task: tree(draw, len(places)) for task in ("tree", "other tree")}
        labels |= {"links": links(draw, any_spans(draw, len(places))), "score": draw(st.floats(-1, 9.5))}
        labels = {task: labels[task] for task in tasks if not n or draw(st.booleans())}
        split, group = draw(st.sampled_from(["train", "a split"])), draw(st.sampled_from([None, "g\u2028"]))
        builder.add(f"u {n}", split=split, text=text, words=places, group=group, labels=labels)
    return builder.build()


def count(path: Path) -> int:
    lengths = srsly.msgpack_loads(zlib.decompress(path.read_bytes()))["lengths"]
    return len(np.frombuffer(lengths, dtype=np.int32))


CONTRACT = Contract(corpora(), count, is_text=False, single_file="items.spacy")


def requests() -> Corpus:
    builder = CorpusBuilder(
        {"intent": CLASSES, "slots": TAGGING, "upos": EVERY_WORD, "dependencies": {"kind": "parsing"}}
    )
    one = {"intent": "alarm", "slots": [[2, 4, "time"]], "upos": ["VERB", "PRON", "ADP", "NUM"]}
    one["dependencies"] = [[0, "root"], [1, "obj"], [4, "case"], [1, "obl"]]
    two = {"intent": "music", "slots": [[1, 3, "genre"]], "upos": ["VERB", "DET", "NOUN"]}
    two["dependencies"] = [[0, "root"], [3, "det"], [1, "obj"]]
    builder.add("u1", text="wake me  at seven", group="ann", labels=one)
    builder.add("u2", split="dev", text="play some jazz", labels=two)
    builder.add("u3", text="hello there")
    return builder.build()


def docs_of(path: Path) -> list[Doc]:
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def test_spacy_reads_the_texts_and_the_labels_where_it_looks_for_them(tmp_path: Path) -> None:
    write(requests(), tmp_path / "all.spacy", "spacy")
    one, two, three = docs_of(tmp_path / "all.spacy")
    assert [doc.text for doc in (one, two, three)] == [item.text for item in requests()]
    assert [token.text for token in one] == ["wake", "me", " ", "at", "seven"]
    assert [(span.text, span.label_) for span in (*one.ents, *two.ents)] == [
        ("at seven", "time"),
        ("some jazz", "genre"),
    ]
    assert (one.cats, two.cats) == ({"alarm": 1, "music": 0}, {"alarm": 0, "music": 1})
    words = [token for token in one if not token.is_space]
    assert [(token.head.text, token.dep_, token.pos_) for token in words] == [
        ("wake", "ROOT", "VERB"),
        ("wake", "obj", "PRON"),
        ("seven", "case", "ADP"),
        ("wake", "obl", "NUM"),
    ]
    assert [token.head.text for token in two] == ["play", "jazz", "play"]
    assert (three.cats, three.ents) == ({}, ())
    assert not any(three.has_annotation(name) for name in ("ENT_IOB", "DEP", "POS"))
    assert (one.user_data["bursar"]["id"], one.user_data["bursar"]["group"]) == ("u1", "ann")


def test_spacy_trains_on_the_file(tmp_path: Path) -> None:
    write(requests(), tmp_path / "corpus", "spacy")
    assert sorted(file.name for file in (tmp_path / "corpus").iterdir()) == ["dev.spacy", "train.spacy"]
    nlp = spacy.blank("en")
    for pipe in ("ner", "textcat", "morphologizer"):
        nlp.add_pipe(pipe)
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    found = [doc for name in ("train", "dev") for doc in docs_of(tmp_path / "corpus" / f"{name}.spacy")]
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in found]
    nlp.initialize(lambda: examples)
    losses = nlp.update(examples)
    assert set(losses) == {"ner", "textcat", "morphologizer", "parser"}
    assert all(np.isfinite(loss) and loss > 0 for loss in losses.values())
    assert set(nlp.get_pipe("textcat").labels) == {"alarm", "music"}  # type: ignore[attr-defined]
    assert set(nlp.get_pipe("ner").labels) == {"genre", "time"}  # type: ignore[attr-defined]


def test_a_folder_is_read_back_and_the_files_are_guessed(tmp_path: Path) -> None:
    write(requests(), tmp_path / "corpus", "spacy")
    assert guess_format(tmp_path / "corpus").name == guess_format(tmp_path / "corpus" / "dev.spacy").name == "spacy"
    assert not differences(requests().take(np.array([0, 2, 1])), read(tmp_path / "corpus"))
    with pytest.raises(DataError, match="file of another corpus"):
        write(requests().take(np.array([0])), tmp_path / "corpus", "spacy")


def test_nested_spans_and_those_of_several_tasks_are_span_groups(tmp_path: Path) -> None:
    builder = CorpusBuilder({"slots": TAGGING})
    builder.add("u1", text="the bank of England", labels={"slots": [[0, 4, "ORG"], [3, 4, "LOC"]]})
    write(builder.build(), tmp_path / "nested.spacy", "spacy")
    (doc,) = docs_of(tmp_path / "nested.spacy")
    assert [(span.text, span.label_) for span in doc.spans["slots"]] == [
        ("the bank of England", "ORG"),
        ("England", "LOC"),
    ]
    assert not doc.ents
    builder = CorpusBuilder({"slots": TAGGING, "entities": TAGGING, "tone": CLASSES, "intent": CLASSES})
    labels = {"slots": [[0, 1, "x"]], "entities": [[1, 2, "PER"]], "tone": "calm", "intent": "greet"}
    builder.add("u1", text="hello Ann", labels=labels)
    write(builder.build(), tmp_path / "several.spacy", "spacy")
    (doc,) = docs_of(tmp_path / "several.spacy")
    assert [span.text for span in (*doc.ents, *doc.spans["slots"])] == ["Ann", "hello"]
    assert doc.cats == {"tone=calm": 1, "intent=greet": 1}


def foreign(tmp_path: Path, *docs: Doc) -> Path:
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    return tmp_path / "train.spacy"


def test_a_file_of_others_is_read_by_the_places_of_its_labels(tmp_path: Path) -> None:
    vocab = spacy.blank("en").vocab
    one = Doc(vocab, ["Ada", " ", "sings"], heads=[2, 0, 2], deps=["nsubj", "dep", "ROOT"], tags=["NNP", "_SP", "VBZ"])
    one.set_ents([Span(one, 0, 1, "PER")])
    one.spans["sc"] = [Span(one, 0, 3, "S")]
    one.cats = {"yes": 0.9, "no": 0.1}
    corpus = read(foreign(tmp_path, one, Doc(vocab, ["Hello"])))
    assert (corpus.ids.tolist(), corpus[0].words) == (["train-000001", "train-000002"], ["Ada", "sings"])
    assert corpus[0].labels == {
        "entities": [[0, 1, "PER"]],
        "xpos": ["NNP", "VBZ"],
        "dependencies": [[2, "nsubj"], [0, "ROOT"]],
        "label": "yes",
        "sc": [[0, 2, "S"]],
    }
    assert corpus[1].labels == {}


def test_what_others_label_in_our_file_is_read_too(tmp_path: Path) -> None:
    write(requests(), tmp_path / "all.spacy", "spacy")
    docs = docs_of(tmp_path / "all.spacy")
    docs[2].cats = {"alarm": 1.0, "music": 0.0}
    docs[2].set_ents([Span(docs[2], 0, 1, "time")])
    docs[2].spans["more"] = [Span(docs[2], 1, 2, "x")]
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "all.spacy")
    assert read(tmp_path / "all.spacy")[2].labels == {
        "intent": "alarm",
        "slots": [[0, 1, "time"]],
        "more": [[1, 2, "x"]],
    }


def test_words_that_are_not_all_of_the_text_are_kept(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": TAGGING})
    builder.add("u1", text=" ... Ada, (or) Bo!", words=[[5, 8], [15, 17]], labels={"entities": [[1, 2, "PER"]]})
    write(builder.build(), tmp_path / "all.spacy", "spacy")
    assert not differences(builder.build(), read(tmp_path / "all.spacy"))
    assert [span.text for span in docs_of(tmp_path / "all.spacy")[0].ents] == ["Bo"]


@pytest.mark.parametrize(
    ("cats", "tags", "said"),
    [
        ({"a": 1.0, "b": 1.0}, None, "2 of 2 categories"),
        ({"a": 0.0}, None, "0 of 1 categories"),
        ({}, ["UH", ""], "1 of 2 words are labelled"),
    ],
)
def test_labels_that_no_task_can_have_are_refused(tmp_path: Path, cats: Any, tags: Any, said: str) -> None:
    doc = Doc(spacy.blank("en").vocab, ["hello", "Ann"], tags=tags)
    doc.cats = cats
    with pytest.raises(DataError, match=said) as caught:
        read(foreign(tmp_path, doc))
    assert caught.value.item == "train-000001"


@pytest.mark.parametrize(
    "ours",
    [
        7,
        {"tasks": []},
        {"tasks": {"x": {"kind": "tagging"}}},
        {"tasks": {"x": ["nowhere", {"kind": "tagging"}]}},
        {"tasks": {"x": ["ents", {"kind": "classification"}]}},
        {"tasks": {"x": ["cats", {"kind": "song"}]}},
        {"id": "u", "split": 3},
        {"words": [[1, 3]]},
        {"words": 5},
        {"labels": {"x": 1}},
        {"tasks": {"x": ["ents", {"kind": "tagging"}]}, "empty": 3},
    ],
)
def test_user_data_that_is_not_ours_is_refused_with_the_file(tmp_path: Path, ours: Any) -> None:
    doc = Doc(spacy.blank("en").vocab, ["hello", "Ann"])
    doc.set_ents([])
    doc.user_data["bursar"] = ours
    DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "train.spacy")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "train.spacy")
    assert caught.value.path == str(tmp_path / "train.spacy")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write(requests(), tmp_path / "all.spacy", "spacy")
    data = (tmp_path / "all.spacy").read_bytes()
    for damaged in (
        data[:-9],
        b"not one",
        zlib.compress(b"attrs"),
        zlib.compress(srsly.msgpack_dumps({"attrs": [65]})),
    ):
        (tmp_path / "all.spacy").write_bytes(damaged)
        with pytest.raises(DataError, match="cannot be read as spaCy's DocBin") as caught:
            read(tmp_path / "all.spacy", "spacy")
        assert caught.value.path == str(tmp_path / "all.spacy")


def test_a_word_of_blanks_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder()
    builder.add("u1", text="a b", words=[[0, 1], [1, 2]])
    with pytest.raises(DataError, match="blanks"):
        write(builder.build(), tmp_path / "all.spacy", "spacy")


def test_spacy_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, bursar.corpus; sys.exit('spacy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_entities_keep_their_own_order_unless_they_were_edited(tmp_path: Path) -> None:
    builder = CorpusBuilder({"entities": TAGGING})
    builder.add("a", text="Ada met Bo", labels={"entities": [[2, 3, "PER"], [0, 1, "PER"]]})
    corpus, path = builder.build(), tmp_path / "people.spacy"
    write(corpus, path, "spacy")
    assert read(path)[0].labels["entities"] == [[2, 3, "PER"], [0, 1, "PER"]]
    (doc,) = DocBin().from_disk(path).get_docs(spacy.blank("en").vocab)
    for entities, order in ((doc.ents[:1], [1, 0]), (doc.ents[:1], [{}]), (doc.ents[:1], "10")):
        doc.user_data["bursar"]["order"] = order
        doc.set_ents([*entities])
        DocBin(store_user_data=True, docs=[doc]).to_disk(path)
        assert read(path)[0].labels["entities"] == [[0, 1, "PER"]]
