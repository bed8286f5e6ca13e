"""The panels of the watch page, one file each. A new file in this folder is found by itself."""

from importlib import import_module
from pkgutil import iter_modules

from bursar.web.panels.panel import PANELS, Panel, RunView, Section, panel, table_section

__all__ = ["PANELS", "Panel", "RunView", "Section", "panel", "sorted_panels", "table_section"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def sorted_panels() -> dict[str, Panel]:
    """All panels by name, in the order of the page."""
    return {name: PANELS[name] for name in sorted(PANELS, key=lambda name: PANELS[name].order)}
