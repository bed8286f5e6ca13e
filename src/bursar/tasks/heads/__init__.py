"""The layers that turn an encoder's vectors into beliefs. The only folder of this room that imports torch."""

from bursar.tasks.heads.head import Dropout, Encoded, Head, enough_rows, sampled

__all__ = ["Dropout", "Encoded", "Head", "enough_rows", "sampled"]
