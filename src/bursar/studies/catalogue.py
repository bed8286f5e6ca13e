"""Every study by its name. Looking one up imports them all, so ask only where studies are wanted."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bursar.registry import Registry
    from bursar.studies.study import Study

MODULES = (
    "complementing",
    "hierarchical",
    "granularity",
    "overall",
    "beyond",
    "demo",
    "learner",
    "training",
    "savings",
    "audit",
    "overlap",
    "bandit",
    "glue",
    "steering",
    "optimal",
    "laws",
    "allocation",
)


def known_studies() -> Registry[Study]:
    """The registry of studies, with ours in it and those of third parties.

    >>> "granularity" in known_studies()
    True
    """
    from bursar.studies.study import STUDIES

    for module in MODULES:
        import_module(f"bursar.studies.{module}")
    return STUDIES


def missing_data(study: Study, folder: Path) -> list[str]:
    """The data sets that a study reads and a folder has not."""
    return [name for name in study.reads if not (folder / name).exists()]
