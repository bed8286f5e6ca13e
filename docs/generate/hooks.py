"""What ``mkdocs build`` calls: adds the pages that are made from code and notebooks, and fits links to the site."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

import notebooks  # noqa: E402
import reference  # noqa: E402

RESULTS = "explanations/results.md"  # where a page from outside of docs/ is shown
OUTSIDE = {"experiments/results/README.md": RESULTS, "README.md": "index.md"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def on_config(config: Any) -> Any:
    """Add the pages of packages to the navigation."""
    (of_reference,) = (part["Reference"] for part in config.nav if "Reference" in part)
    pages = [{f"bursar.{name}": f"reference/packages/{name}.md"} for name in reference.packages()]
    of_reference.insert(-1, {"Python packages": pages})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, not written."""
    made = {
        "reference/command-line.md": reference.commands(),
        "reference/settings.md": reference.settings(),
        "reference/http.md": reference.calls(),
        "reference/python.md": reference.names(),
        RESULTS: (ROOT / "experiments" / "results" / "README.md").read_text(encoding="utf-8"),
    }
    made |= {f"reference/packages/{name}.md": page for name, page in reference.packages().items()}
    for found in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        files.remove(files.src_uris[f"tutorials/{found.name}"])
        made[f"tutorials/{found.stem}.md"] = notebooks.page_of(found)
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **kwargs: Any) -> str:
    """Links that work in the repository, as links of the site."""
    uri = page.file.src_uri
    source = "experiments/results/README.md" if uri == RESULTS else f"docs/{uri}"

    def fit(found: re.Match[str]) -> str:
        before, link, after = found.groups()
        path, mark, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", link):
            return found[0]
        target = normpath(join(dirname(source), path))
        target = OUTSIDE.get(target, target.removeprefix("docs/"))
        target = re.sub(r"\.ipynb$", ".md", target)
        return f"{before}{relpath(target, dirname(uri) or '.')}{mark}{anchor}{after}"

    return LINK.sub(fit, markdown)
