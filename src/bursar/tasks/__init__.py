"""Task kinds, one file each: label encoding, scores, annotation cost, and the choice of neural head."""

from importlib import import_module
from pkgutil import iter_modules

from bursar.tasks.beliefs import AnyBeliefs, Beliefs, Estimates
from bursar.tasks.classification import Classification
from bursar.tasks.costs import CostModel, Prices
from bursar.tasks.parsing import Parsing
from bursar.tasks.regression import Regression
from bursar.tasks.relations import Relations
from bursar.tasks.tagging import Tagging
from bursar.tasks.task import KINDS, Task, Vocabulary, make_task

__all__ = [
    "KINDS",
    "AnyBeliefs",
    "Beliefs",
    "Classification",
    "CostModel",
    "Estimates",
    "Parsing",
    "Prices",
    "Regression",
    "Relations",
    "Tagging",
    "Task",
    "Vocabulary",
    "make_task",
]

for module in iter_modules(__path__, prefix=f"{__name__}."):  # a new file registers its kind
    if not module.ispkg:
        import_module(module.name)
