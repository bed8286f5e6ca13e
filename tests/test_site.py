"""The documentation, built as ``make docs`` does: complete, without dead links, and without anything from elsewhere."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import bursar

ROOT = Path(__file__).parents[1]
pytest.importorskip("mkdocs", reason="mkdocs is not installed")


@dataclass
class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found.get("href", ""))
        elif "src" in found:
            self.loads.append(found["src"])

    @classmethod
    def read(cls, path: Path) -> Page:
        page = cls()
        page.feed(path.read_text(encoding="utf-8"))
        return page


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page.read(path) for path in sorted(site.rglob("*.html"))}


def dead_links(site: Path, pages: dict[Path, Page]) -> list[str]:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            place, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link) or place.startswith("/"):  # the page for missing pages has absolute links
                continue
            target = (path.parent / unquote(place)).resolve() if place else path
            if not target.exists() or (anchor and target.suffix == ".html" and anchor not in pages[target].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    return dead


def test_every_link_of_the_site_leads_to_a_page_and_a_heading(site, pages):
    assert len(pages) > 40
    assert dead_links(site, pages) == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="one">One</h1> <a href="a.html#one"></a> <a href="#two"></a>')
    assert dead_links(tmp_path, {tmp_path / "a.html": Page.read(tmp_path / "a.html")}) == ["a.html: #two"]


def test_no_page_loads_anything_from_another_server(site, pages):
    loaded = {link for page in pages.values() for link in page.loads}
    assert [link for link in loaded if re.match(r"(https?:)?//", link)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//|@import", styles) == []


def test_every_public_name_is_in_the_reference(site, pages):
    """Those of ``import bursar`` and those of its packages."""
    import importlib

    anchors = set().union(*(page.anchors for path, page in pages.items() if "reference" in path.parts))
    names = {f"bursar.{name}" for name in bursar.__all__}
    for page in sorted((site / "reference" / "packages").glob("*.html")):
        public = importlib.import_module(f"bursar.{page.stem}").__all__
        names |= {f"bursar.{page.stem}.{name}" for name in public if name not in bursar.__all__}
    assert sorted(names - anchors) == []


def text_of(path: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))


def test_every_command_and_option_is_in_the_reference(site):
    import typer

    from bursar.cli import app

    text = text_of(site / "reference" / "command-line.html")

    def check(command, name):
        for each, below in getattr(command, "commands", {}).items():
            if not below.hidden:
                check(below, f"{name} {each}")
        if not hasattr(command, "commands"):
            part = text.split(f"{name}¶")[1].split("¶")[0]
            missing = [one.opts[-1] for one in command.params if one.opts[-1] not in part and not one.hidden]
            assert [flag for flag in missing if flag.startswith("--") and flag != "--help"] == [], name

    check(typer.main.get_command(app), "bursar")


def test_every_key_of_a_campaign_file_is_in_both_references(site):
    """On the page made from the code, and on the written one."""
    from bursar.campaign.config import CampaignConfig, section_of

    made = text_of(site / "reference" / "settings.html")
    written = (ROOT / "docs" / "reference" / "campaigns.md").read_text(encoding="utf-8")
    missing = []
    for name in CampaignConfig.model_fields:
        section = section_of(name)
        part = made.split("Top level¶" if section is None else f"[{name}]¶")[1].split("¶")[0]
        keys = [name] if section is None else section.model_fields
        missing += [f"{name}: {key}" for key in keys if not re.search(rf"^{key}$", part, re.MULTILINE)]
        missing += [f"{name}: {key}" for key in keys if not re.search(rf"[`.]{key}\b", written)]
    assert missing == []


def test_every_call_of_the_server_is_in_the_reference(site):
    from bursar.web.pages import calls_of
    from bursar.web.server import make_app

    class NoProject:
        def __getattr__(self, name):
            return None

    text = text_of(site / "reference" / "http.html")
    calls = [call for part in calls_of(make_app(NoProject()).app.openapi()).values() for call in part]
    assert len(calls) > 20
    assert [call["path"] for call in calls if f"{call['method']} {call['path']}" not in text] == []
