"""The page of a law: everything on its card, and its residuals as charts."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from bursar.report.law import front_table, points_table, render_law, residual_charts, variables_table
from bursar.report.page import write_page
from tests.laws.planted import card, planted_laws

LAWS = planted_laws().named()
LAW = LAWS["balanced"]


@pytest.fixture(scope="module")
def page():
    return render_law(LAW, "balanced")


def test_the_page_has_the_formula_in_text_and_latex_its_range_error_and_rates(page):
    for said in (
        LAW.formula.text,
        LAW.formula.exact,
        "\\sqrt{n}",
        "1,000 to 6,000",
        f"{LAW.held_out.mean_absolute:.4f}",
    ):
        assert said in page
    assert "sqrt(n) for large values" in page
    assert "0.50 (0.40 to 0.60)" in page
    assert "Learned from 300 models (shared) on news." in page


def test_a_chart_for_the_prediction_and_for_every_variable_shows_all_residuals(page):
    charts = residual_charts(LAW)
    assert list(charts) == ["predicted", "n", "tasks", "ami"]
    for key, chart in charts.items():
        (line,) = chart.lines
        assert [point.y for point in line.points] == pytest.approx(LAW.held_out.residuals.tolist())
        assert [point.x for point in line.points] == pytest.approx(LAW.residual_points()[key])
        assert f'data-chart="{key}"' in page
    data = json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1])
    assert list(data) == list(charts)


def test_the_band_is_the_interval_and_is_left_out_where_there_is_none():
    (band,) = residual_charts(LAW)["n"].bands
    assert band.high == pytest.approx([LAW.held_out.half_width(0.9)] * 2)
    few = card("0.01 * sqrt(n)", np.array([[1000.0], [2000.0]]), np.array([0.3, 0.4]), ("n",))
    assert not residual_charts(few)["n"].bands
    assert "too few held-out settings" in render_law(few, "few")


def test_tables_have_every_variable_point_and_formula():
    assert [row[0] for row in variables_table(LAW).rows] == ["n", "tasks", "ami"]
    assert len(points_table(LAW).rows) == 60
    assert front_table(LAW).rows[0][0] == LAW.formula.text


@pytest.mark.parametrize("name", list(LAWS))
def test_every_law_has_a_page_that_loads_nothing(name, tmp_path):
    text = write_page(render_law(LAWS[name], name), tmp_path / "law.html").read_text()
    assert f"<h1>{name.capitalize()}</h1>" in text
    body = text[: text.index('<script type="application/json"')]
    assert "http" not in body.replace("http-equiv", "")


def test_hostile_cards_never_become_markup():
    hostile = "<script>alert(1)</script>"
    law = card(
        "0.01 * sqrt(n)", np.array([[1000.0], [2000.0]]), np.array([0.3, 0.4]), ("n",), about={"sources": [hostile]}
    )
    assert hostile not in render_law(law, hostile)
