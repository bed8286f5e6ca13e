"""The layers that turn an encoder's vectors into beliefs. The only folder of this room that imports torch."""

from bursar.tasks.heads.head import Dropout, Encoded, Head, sampled

__all__ = ["Dropout", "Encoded", "Head", "sampled"]
