"""Corpora: items with stable ids, splits and known labels; readers and writers of file formats."""

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus, Labels, concatenate
from bursar.corpus.formats import FORMATS, columns_left_out, guess_format, read, write
from bursar.corpus.schema import spans

__all__ = [
    "FORMATS",
    "Corpus",
    "CorpusBuilder",
    "Labels",
    "columns_left_out",
    "concatenate",
    "guess_format",
    "read",
    "spans",
    "write",
]
