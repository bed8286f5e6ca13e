"""Span scores on public corpora, read here with a few lines each, against seqeval and conlleval."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from sklearn.metrics import f1_score

from bursar.ragged import Ragged
from bursar.tasks import Tagging
from bursar.tasks.schemes import codes_of_spans, spans_of_codes, spans_of_tags
from tests.tasks import conlleval

DATA = Path(os.environ.get("BURSAR_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
MOST = 3000  # sentences of a split: all there are of the dev and test ones, nearly; the peers take their time
Sentences = list[list[str]]


def file(name: str) -> str:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in the data folder (set BURSAR_DATA)")
    return path.read_text(encoding="utf-8")


def seq_out(folder: str) -> dict[str, Sentences]:
    return {
        split: [line.split() for line in file(f"{folder}/{split}/seq.out").splitlines()]
        for split in ("train", "dev", "test")
    }


def conll2003() -> dict[str, Sentences]:
    def sentences(text: str) -> Iterable[list[str]]:
        for block in re.split(r"\n\s*\n", text):
            lines = [line.split() for line in block.splitlines() if line.strip() and "-DOCSTART-" not in line]
            if lines:
                yield [line[-1] for line in lines]

    return {split: list(sentences(file(f"conll2003/{split}.txt"))) for split in ("train", "valid", "test")}


def mit_restaurant() -> dict[str, Sentences]:
    def tags(line: str) -> list[str]:
        return [token.rsplit(":", 1)[1] for token in line.split(" <=> ")[0].split()]

    return {
        split: [tags(line) for line in file(f"mit_restaurant/{split}").splitlines()]
        for split in ("train", "valid", "test")
    }


def uner_ewt() -> dict[str, Sentences]:
    def tag(line: str) -> str:
        found = line.split("\t")[2]
        return "O" if found == "B-O" or found.endswith("OTH") else found

    def sentences(text: str) -> Iterable[list[str]]:
        for block in text.split("\n\n"):
            tags = [tag(line) for line in block.splitlines() if line and not line.startswith("#")]
            if tags:
                yield tags

    return {split: list(sentences(file(f"uner_ewt/en_ewt-ud-{split}.iob2"))) for split in ("train", "dev", "test")}


CORPORA = {
    "atis": lambda: seq_out("atis"),
    "snips": lambda: seq_out("snips"),
    "conll2003": conll2003,
    "mit_restaurant": mit_restaurant,
    "uner_ewt": uner_ewt,
}


def perturbed(sentences: Sentences, seed: int) -> Sentences:
    """A guess: one tag in eight is any other of the corpus, so that many sequences are not even valid."""
    rng = np.random.default_rng(seed)
    every = sorted({tag for tags in sentences for tag in tags})
    total = sum(map(len, sentences))
    wrong, other = (rng.random(total) < 0.125).tolist(), rng.integers(0, len(every), total).tolist()
    at, guess = 0, []
    for tags in sentences:
        guess.append([every[other[at + k]] if wrong[at + k] else tag for k, tag in enumerate(tags)])
        at += len(tags)
    return guess


def rows_of(task: Tagging, sentences: Sentences) -> Ragged:
    """The way of a reader: tags to spans to rows, sentence by sentence."""
    code = {label: at for at, label in enumerate(task.labels)}
    return Ragged.of([[(a, b, code[kind]) for a, b, kind in spans_of_tags(tags)] for tags in sentences], 3)


def codes_of(task: Tagging, sentences: Sentences) -> np.ndarray:
    """The way of a model: a class for every word."""
    classes = {"O": 0}
    for at, label in enumerate(task.labels):
        classes |= {f"B-{label}": 1 + 2 * at, f"I-{label}": 2 + 2 * at}
    return np.array([classes[tag] for tags in sentences for tag in tags])


@pytest.mark.parametrize("corpus", CORPORA)
def test_scores_on_a_corpus_are_seqevals_and_conllevals(corpus):
    gold = [tags for split in CORPORA[corpus]().values() for tags in split[:MOST]]
    guess = perturbed(gold, seed=7)
    words = np.array([len(tags) for tags in gold])
    task = Tagging("spans", tuple(sorted({tag[2:] for tags in gold for tag in tags if tag != "O"})))
    gold_rows, guess_rows = rows_of(task, gold), rows_of(task, guess)

    scores = task.evaluate(gold_rows, guess_rows, words)
    precision, recall, f1, _ = precision_recall_fscore_support(gold, guess, average="micro")
    spans = {name: scores[name] for name in ("precision", "recall", "f1")}
    assert 0.3 < scores["f1"] < 0.95  # the guess is neither perfect nor noise
    assert spans == pytest.approx({"precision": precision, "recall": recall, "f1": f1}, abs=1e-12)
    assert spans == pytest.approx(conlleval.scores(gold, guess), abs=1e-12)

    for tags, rows in ((gold, gold_rows), (guess, guess_rows)):
        assert spans_of_codes(codes_of(task, tags), words).equals(rows)
    iob2 = codes_of_spans(gold_rows, words), codes_of_spans(guess_rows, words)
    assert scores["token_weighted_f1"] == pytest.approx(f1_score(*iob2, average="weighted", zero_division=0))


def test_conll2003_has_the_entities_its_paper_counts():
    """Tjong Kim Sang and De Meulder (2003), table 2."""
    published = {
        "train": {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600},
        "valid": {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842},
        "test": {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617},
    }
    for split, sentences in conll2003().items():
        assert Counter(kind for tags in sentences for _, _, kind in spans_of_tags(tags)) == published[split]
