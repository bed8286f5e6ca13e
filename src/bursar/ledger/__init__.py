"""The append-only record of annotations, money and decisions."""

from bursar.ledger.ledger import Ledger
from bursar.ledger.records import Annotation, Answer, Charge, Decision, Receipt, Skip, SpendingLine, Submission, Timing

__all__ = [
    "Annotation",
    "Answer",
    "Charge",
    "Decision",
    "Ledger",
    "Receipt",
    "Skip",
    "SpendingLine",
    "Submission",
    "Timing",
]
