"""The page of a split shows the split, why, who informs whom, and what else there is."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from bursar.allocation import Context, Informativeness, ReductionRate, SplitEstimates, SplitProblem, advise
from bursar.report.allocation import render_allocation
from bursar.report.page import write_page


@pytest.fixture
def split():
    known = Informativeness(
        ("intent", "<slots>"), np.array([[1, 0.5], [-0.2, 1]]), np.array([[0, 0.1], [0.05, 0]]), {"informer": "given"}
    )
    rates = {"intent": ReductionRate(0.5, 0.4, 0.6, 100), "<slots>": ReductionRate(0.9, 0.8, 1.0, 100)}
    problem = SplitProblem(SplitEstimates(known, rates), prices=(4, 9), budget=3000, joint=10)
    return advise(problem, Context({"intent": 0.8, "<slots>": 0.4}), method="together")


def test_it_shows_the_split_the_reasons_and_all_other_splits(split):
    page = render_allocation(split, "my tasks", {"informer": "given"})
    assert f"{split.split.counts[0]:,} labels of intent" in page
    assert "are labelled for all tasks at once" in page
    assert all(other.method in page.replace("&lt;", "<").replace("&gt;", ">") for other in split.others)
    assert "<slots>" not in page
    assert "&lt;slots&gt;" in page


def test_its_figures_are_the_estimates(split):
    page = render_allocation(split, "my tasks", {})
    data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S).group(1))
    heat = data["informs"]
    rows = {heat["y"]["names"][cell["row"]]: [] for cell in heat["cells"]}
    for cell in heat["cells"]:
        rows[heat["y"]["names"][cell["row"]]].append((cell["label"], cell["shade"]))
    assert rows == {"<slots>": [("−0.2", -0.2), ("1", 1.0)], "intent": [("1", 1.0), ("0.5", 0.5)]}
    gains = data["curves"]["lines"]
    assert [line["points"][0][1] for line in gains[:2]] == [0.0, 0.0]


def test_it_is_written_whole(split, tmp_path):
    path = write_page(render_allocation(split, "my tasks", {}), tmp_path / "split.html")
    assert path.read_text().rstrip().endswith("</html>")
    assert [file.name for file in tmp_path.iterdir()] == ["split.html"]
