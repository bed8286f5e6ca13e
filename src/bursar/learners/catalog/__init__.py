"""Learners by name: each file of this folder is imported with ``bursar.learners`` and registers learners.

To add a learner, add a file that ends with ``LEARNERS.add("name", MyLearner)``. Import torch and scikit-learn inside
functions, or register a ``LazyLearner``: they take seconds to import, and most commands train nothing.
"""

from importlib import import_module
from pkgutil import iter_modules


def discover() -> None:
    """Import every file of this folder."""
    for module in iter_modules(__path__, prefix=f"{__name__}."):
        import_module(module.name)


discover()
