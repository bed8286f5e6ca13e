"""The code of the guide to Python runs as it is written there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
THINGS = ["lamp", "chair", "kettle"]


def annotate(item):
    spans = [[at, at + 1, "product"] for at, word in enumerate(item.words) if word in THINGS]
    return {"intent": "refund" if "money" in item.text else "order", "slots": spans}


@pytest.mark.filterwarnings("error::UserWarning:bursar")
def test_the_blocks_of_the_guide_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    rows = [(f"where is my {thing} number {n}", "order") for n in range(15) for thing in THINGS]
    rows += [(f"money back for the {thing} number {n}", "refund") for n in range(15) for thing in THINGS]
    (tmp_path / "messages.csv").write_text("\n".join(["body,ticket", *(f"{t},{n}" for n, (t, _) in enumerate(rows))]))
    (tmp_path / "labelled.csv").write_text("\n".join(["body,intent", *(f"{text},{label}" for text, label in rows)]))
    blocks = BLOCK.findall(GUIDE.read_text(encoding="utf-8"))
    assert len(blocks) == 6
    names = {"annotate": annotate}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert "3\n" in capsys.readouterr().out
    assert (tmp_path / "page.html").exists()
    assert names["learner"].ask()  # the function's
    assert names["result"].strategies == ["least_sure_half", "RANDOM"]
