"""The append-only record of annotations, money and decisions."""

from bursar.ledger.ledger import Ledger
from bursar.ledger.records import Annotation, Charge, Receipt, Submission

__all__ = ["Annotation", "Charge", "Ledger", "Receipt", "Submission"]
