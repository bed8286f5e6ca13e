"""The layers that turn an encoder's vectors into predictions. The only part of ``tasks`` that imports torch."""

from bursar.tasks.heads.head import Dropout, Encoded, Head, dropout_sample, enough_rows

__all__ = ["Dropout", "Encoded", "Head", "dropout_sample", "enough_rows"]
