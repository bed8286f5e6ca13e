"""Panels of the watch page are found by registration: one file adds one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from bursar.web import panels
from bursar.web.pages import STATIC, watch_panels
from bursar.web.panels import PANELS, sorted_panels

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "extending.md"
FOLLOW = """
import json, sys
from bursar.annotation.session import SessionState
from bursar.web.panels import dashboard
from bursar.web.pages import watch_panels
from tests.report.results import make_result
import my_panel
result = make_result()
shown = dashboard(result, SessionState(3, "ended", 1, 1, 0, 1, 1))["panels"]
json.dump({"panels": list(shown), "shown": shown["strategies"], "page": watch_panels()}, sys.stdout)
"""


def test_the_page_on_extending_adds_a_panel_as_it_says(tmp_path):
    section = PAGE.read_text(encoding="utf-8").split("## A panel of the watch page")[1]
    code = re.search(r"```python\n(.*?)```", section, re.S).group(1)
    (tmp_path / "my_panel.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{FOLLOW}"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["panels"][1:4] == ["spending", "strategies", "next"]  # by its order
    assert found["shown"]["words"] == ["1 in 4 rounds."]
    assert found["shown"]["tables"] == [{"title": "All", "columns": ["Strategy"], "rows": [["MT-AVG"]]}]
    (added,) = [entry for entry in found["page"] if entry["name"] == "strategies"]
    assert added == {"name": "strategies", "title": "Which strategies were used?", "link": "Strategies", "script": ""}


def test_every_file_of_the_folder_is_a_panel_of_that_name_and_every_script_belongs_to_one():
    files = {path.stem for path in Path(panels.__file__).parent.glob("*.py")} - {"__init__", "panel"}
    assert files == set(PANELS) == set(sorted_panels())
    scripts = {path.stem for path in (STATIC / "watch" / "panels").glob("*.js")}
    assert scripts <= files
    assert {entry["name"] for entry in watch_panels() if entry["script"]} == scripts
