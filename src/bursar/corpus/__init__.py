"""Corpora: items with stable ids, splits and known labels; readers and writers of file formats."""

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus, Item, Labels, concatenate
from bursar.corpus.formats import FORMATS, Format, columns_left_out, guess_format, read, write
from bursar.corpus.metadata import Metadata
from bursar.corpus.schema import describe_task, spans, with_schema
from bursar.corpus.words import Texts

__all__ = [
    "FORMATS",
    "Corpus",
    "CorpusBuilder",
    "Format",
    "Item",
    "Labels",
    "Metadata",
    "Texts",
    "columns_left_out",
    "concatenate",
    "describe_task",
    "guess_format",
    "read",
    "spans",
    "with_schema",
    "write",
]
