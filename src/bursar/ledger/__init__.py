"""The append-only record of annotations, money and decisions."""

from bursar.ledger.ledger import Ledger
from bursar.ledger.records import Annotation, Answer, Charge, Receipt, Skip, Submission, Timing

__all__ = ["Annotation", "Answer", "Charge", "Ledger", "Receipt", "Skip", "Submission", "Timing"]
