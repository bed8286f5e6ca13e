"""Items with stable ids, in splits, with whatever labels are known of them."""

from bursar.corpus.builder import CorpusBuilder
from bursar.corpus.corpus import Corpus, Item, Labels, concatenate
from bursar.corpus.formats import FORMATS, Format, guess_format, read, write
from bursar.corpus.words import Texts

__all__ = [
    "FORMATS",
    "Corpus",
    "CorpusBuilder",
    "Format",
    "Item",
    "Labels",
    "Texts",
    "concatenate",
    "guess_format",
    "read",
    "write",
]
