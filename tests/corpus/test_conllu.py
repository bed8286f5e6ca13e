from __future__ import annotations

from pathlib import Path

import conllu
import pytest

from bursar.corpus import CorpusBuilder, read, write
from bursar.corpus.words import align
from bursar.errors import DataError
from tests.same import differences

ROWS = """# newdoc id = letters
# sent_id = l-1
# text = Don't, Ada!
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tDo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
3\t,\t,\tPUNCT\t,\t_\t1\tpunct\t_\t_
3.1\tsing\tsing\tVERB\tVB\t_\t_\t_\t_\t_
4\tAda\tAda\tPROPN\tNNP\t_\t1\tvocative:name\t_\tSpaceAfter=No
5\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_

# sent_id = l-2
# text = du vin
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\t_\t3\tdet\t_\t_
3\tvin\tvin\tNOUN\t_\t_\t0\troot\t_\t_

"""
LAYER = """# sent_id = l-1
# text = Don't, Ada!
1\tDo\tO\t-\t-
2\tn't\tB-O
3\t,\tO
4\tAda\tB-PER\t-\tsomebody
5\t!\tB-OTH\t-\tsomebody

# sent_id = l-2
1\tde\tO
2\tle\tO
3\tvin\tB-LOC\t-\t-

"""


def put(folder: Path, text: str, name: str = "x-train.conllu") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_words_are_placed_in_the_text(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS))
    assert (corpus[0].id, corpus[0].group, corpus[0].text) == ("l-1", "letters", "Don't, Ada!")
    assert corpus[0].words == ["Do", "n't", ",", "Ada", "!"]
    assert corpus.texts is not None
    assert corpus.texts.spans[0].tolist() == [[0, 2], [2, 5], [5, 6], [7, 10], [10, 11]]


def test_empty_nodes_are_left_out_and_labels_are_whole(tmp_path: Path) -> None:
    labels = read(put(tmp_path, ROWS))[0].labels
    assert labels["dependencies"] == [[0, "root"], [1, "advmod"], [1, "punct"], [1, "vocative:name"], [1, "punct"]]
    assert labels["upos"] == ["AUX", "PART", "PUNCT", "PROPN", "PUNCT"]


def test_a_column_that_says_nothing_is_no_label(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS))
    assert corpus.labels["xpos"].present.tolist() == [True, False]


def test_words_written_as_one_share_its_characters(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS))
    assert corpus[1].text == "du vin"
    assert corpus.texts is not None
    assert corpus.texts.spans[1].tolist() == [[0, 1], [1, 2], [3, 6]]


def test_a_token_shorter_than_its_words_gives_a_text_of_the_words(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS.replace("du vin", "u vin").replace("\tdu\t", "\tu\t")))
    assert corpus[1].text == "de le vin"
    assert corpus[1].words == ["de", "le", "vin"]


def test_without_a_text_the_text_is_made_of_tokens_and_their_spaces(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS.replace("# text = Don't, Ada!\n", "")))
    assert corpus[0].text == "Don't, Ada!"


def test_our_parser_agrees_with_the_conllu_library(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS))
    for at, sentence in enumerate(conllu.parse(ROWS)):
        words = [token for token in sentence if isinstance(token["id"], int)]
        assert corpus[at].labels["dependencies"] == [[word["head"], word["deprel"]] for word in words]
        assert corpus[at].labels["upos"] == [word["upos"] for word in words]


def test_what_is_written_is_read_by_the_conllu_library(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS))
    write(corpus, tmp_path / "again", "conllu")
    theirs = conllu.parse((tmp_path / "again" / "train.conllu").read_text())
    assert [[token["form"] for token in sentence] for sentence in theirs] == [corpus[at].words for at in range(2)]
    assert theirs[0].metadata["newdoc id"] == "letters"
    assert not differences(corpus, read(tmp_path / "again"))


def test_a_sentence_without_an_id_is_named_by_its_place(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS.replace("# sent_id = l-1\n", "").replace("# newdoc id = letters", "# newdoc")))
    assert (corpus[0].id, corpus[0].group) == ("train-000001", "train-doc-000001")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("3\t,\t", "4\t,\t", 7, "expected word 3"),
        ("\t1\tvocative", "\tone\tvocative", 9, "not a number"),
        ("Don't, Ada!\n1-2", "Don't, Bo!\n1-2", 1, "do not add up"),
        ("# sent_id = l-2", "# sent_id = l-1", 12, "used before"),
        ("1-2\tdu", "2-1\tdu", 14, "expected word 1"),
        ("1-2\tdu", "1-4\tdu", 12, "lacks words"),
        ("\n\n# sent_id = l-2", "\n# sent_id = l-2", 11, "middle of a sentence"),
        ("3\tvin\tvin\t", "3\tvin\t", 17, "expected 10 cells"),
        ("3\tvin\tvin", "3\t\tvin", 17, "expected 10 cells"),
        ("# sent_id = l-2\n", "# sent_id = l-2\n# sent_id = l-3\n", 13, "second"),
        ("\t3\tcase", "\t1\tcase", 12, "cannot have head"),
    ],
)
def test_a_broken_sentence_is_refused_with_its_line(old: str, new: str, line: int, words: str, tmp_path: Path) -> None:
    assert old in ROWS
    with pytest.raises(DataError, match=words) as caught:
        read(put(tmp_path, ROWS.replace(old, new)), "conllu")
    assert caught.value.line == line


def test_comments_without_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="words that it announces"):
        read(put(tmp_path, ROWS + "# sent_id = l-3\n\n"))


def test_tokens_that_do_not_fit_a_text_have_no_place() -> None:
    assert align("du vin", [("de", ["de"])]) is None
    assert align("du vin", [("du", ["du"])]) is None
    assert align(" a  b ", [("a", ["a"]), ("b", ["b"])]) == [(1, 2), (4, 5)]


# -- layers -----------------------------------------------------------------------------------------------------------
def test_a_layer_joins_on_the_sentence_id(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, ROWS), layer=put(tmp_path, LAYER, "x-train.iob2"))
    assert [corpus[at].labels["entities"] for at in range(2)] == [[[3, 4, "PER"]], [[2, 3, "LOC"]]]


def test_a_layer_is_read_alone(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, LAYER, "x-train.iob2"))
    assert corpus[0].labels == {"entities": [[3, 4, "PER"]]}
    assert (corpus[0].text, corpus[1].text) == ("Don't, Ada!", "de le vin")
    write(corpus, tmp_path / "again", "iob2")
    assert not differences(corpus, read(tmp_path / "again"))


def test_types_that_mean_none_can_be_kept(tmp_path: Path) -> None:
    corpus = read(put(tmp_path, LAYER, "x-train.iob2"), drop=())
    assert read(tmp_path / "x-train.iob2", drop="OTH")[0].labels["entities"] == [[1, 2, "O"], [3, 4, "PER"]]
    assert corpus[0].labels["entities"] == [[1, 2, "O"], [3, 4, "PER"], [4, 5, "OTH"]]
    with pytest.raises(DataError, match="for no entity"):
        write(corpus, tmp_path / "again", "iob2")
    write(corpus, tmp_path / "again", "iob2", drop=())
    assert not differences(corpus, read(tmp_path / "again", drop=()))


def test_a_word_that_differs_is_refused_in_the_layer_with_its_line(tmp_path: Path) -> None:
    layer = put(tmp_path, LAYER.replace("3\tvin", "3\teau"), "x-train.iob2")
    with pytest.raises(DataError, match="'eau', in the treebank 'vin'") as caught:
        read(put(tmp_path, ROWS), layer=layer)
    assert (caught.value.path, caught.value.line, caught.value.item) == (str(layer), 9, "l-2")


def test_a_sentence_that_the_layer_does_not_have_is_refused(tmp_path: Path) -> None:
    layer = put(tmp_path, LAYER.replace("l-2", "l-9"), "x-train.iob2")
    with pytest.raises(DataError, match="does not have this sentence") as caught:
        read(put(tmp_path, ROWS), layer=layer)
    assert (caught.value.line, caught.value.item) == (12, "l-2")


def test_a_sentence_that_only_the_layer_has_is_refused(tmp_path: Path) -> None:
    layer = put(tmp_path, LAYER + LAYER.replace("l-1", "l-3").replace("l-2", "l-4"), "x-train.iob2")
    with pytest.raises(DataError, match="no such sentence") as caught:
        read(put(tmp_path, ROWS), layer=layer)
    assert caught.value.item == "l-3"


def test_a_broken_tag_of_a_layer_is_refused_with_its_line(tmp_path: Path) -> None:
    layer = put(tmp_path, LAYER.replace("vin\tB-LOC", "vin\tB-"), "x-train.iob2")
    with pytest.raises(DataError, match="has no type") as caught:
        read(put(tmp_path, ROWS), layer=layer)
    assert caught.value.line == 12


def test_a_text_with_more_than_its_words_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder({"upos": {"kind": "tagging", "every_word": True}})
    builder.add("s", text="a, b", words=[(0, 1), (3, 4)], labels={"upos": ["X", "X"]})
    with pytest.raises(DataError, match=r"item 's'.*more than its words"):
        write(builder.build(), tmp_path / "out", "conllu")


def test_a_sentence_outside_of_documents_after_one_inside_is_not_written(tmp_path: Path) -> None:
    builder = CorpusBuilder()
    builder.add("s1", text="a", group="d")
    builder.add("s2", text="b")
    with pytest.raises(DataError, match="cannot keep group None"):
        write(builder.build(), tmp_path / "out", "conllu")
