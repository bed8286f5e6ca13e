"""Every study by its name. Looking one up imports all modules of the package."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bursar.registry import Registry
    from experiments.studies.study import Study


def known_studies() -> Registry[Study]:
    """The registry of studies: a module that adds one to it needs no other mention.

    >>> "granularity" in known_studies()
    True
    """
    import experiments.studies as package
    from experiments.studies.study import STUDIES

    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return STUDIES


def missing_data(study: Study, folder: Path) -> list[str]:
    """The data sets that a study reads and a folder has not."""
    return [name for name in study.reads if not (folder / name).exists()]
