"""The study of laws: its grid, a small one that is trained, and a planted law that its findings must find again."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from bursar.compute import ResultStore, address, run_units
from bursar.corpus import Labels
from bursar.laws import forms, regression
from bursar.ragged import Ragged
from bursar.simulation import assistant_corpus
from bursar.tasks import Tagging
from experiments.studies import laws, laws_findings, laws_tables
from experiments.studies.arms import Place
from experiments.studies.findings import Findings
from experiments.studies.laws import PLANS, Plan, fit_of, grid, observe, settings_of
from experiments.studies.laws_findings import analyse
from experiments.studies.laws_models import Seen
from experiments.studies.laws_trainings import Material
from experiments.studies.page import write_study_report
from experiments.studies.study import Results

TINY = Plan(
    seeds=2,
    epochs=1,
    n=(300, 500, 700),
    more_n=(400,),
    tasks=(2, 3),
    more_tasks=(),
    n_real=(300, 400),
    n_other=(500, 700),
    other_tasks=(2, 3),
)

# As many settings as a planted law needs to be found again.
FEWER = Plan(
    seeds=3,
    epochs=30,
    n=(1000, 2000, 4000),
    more_n=(1500,),
    tasks=(2, 5, 15),
    more_tasks=(8,),
    n_real=(1000, 2000),
    n_other=(3000, 6000),
    other_tasks=(2, 5, 15),
)


@cache
def small_material():
    """The built-in corpus with three labels instead of 35: chance is then quickly reckoned with."""
    corpus = assistant_corpus(400).with_tasks(["slots"])
    column = corpus.labels["slots"]
    rows = column.rows.values.copy()
    rows[:, 2] %= 3
    labels = {"slots": Labels(column.present, Ragged(rows, column.rows.offsets))}
    few = replace(corpus, schema={"slots": Tagging("slots", ("a", "b", "c"))}, labels=labels)
    return Material.of(few, "slots", held_out="dev", size=4)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A small grid on the built-in corpus, and short searches for laws."""
    monkeypatch.setitem(PLANS, "small", TINY)
    monkeypatch.setattr(laws, "material_of", lambda data: small_material())
    for module in (laws, laws_findings, laws_tables):
        monkeypatch.setattr(module, "FIGURE_N", 500)
    monkeypatch.setattr(laws, "ALPHAS", (0.6, 0.8, 0.95, 1.0))
    monkeypatch.setattr(laws, "OTHER_ALPHAS", (0.6, 0.8, 0.9, 1.0))
    monkeypatch.setattr(laws, "ARCHITECTURES", ("mixed",))
    monkeypatch.setattr(laws, "LAWS", {table: some[-1:] for table, some in laws.LAWS.items()})
    monkeypatch.setitem(regression.EFFORTS, "operon", regression.Effort(30, 3))
    monkeypatch.setattr(forms, "PowerLawSettings", partial(forms.PowerLawSettings, draws=10))
    monkeypatch.setattr(regression, "TREES", 3)
    return Place(tmp_path, tmp_path)


def planted(unit):
    """What a unit would have found, were F1 a power law with noise; single tasks are a little above unrelated ones."""
    rng = np.random.default_rng([unit["seed"], unit["tasks"], len(unit["n"])])
    models = []
    for setting in settings_of(unit):
        single = setting.tasks == 1
        ami = None if single else float(np.clip((setting.alpha - 0.2) / 0.8, 0, 1) ** 3)
        level = 0.004 * np.sqrt(setting.n) * (0.5 if single else np.sqrt(ami) * setting.tasks**0.2)
        if ami == 0.0:  # tasks that have nothing to do with each other: what is measured is noise about 0
            ami, level = float(rng.normal(0, 3e-4)), 0.002
        other = 0 if single else setting.n if setting.n_other is None else setting.n_other
        score = round(float(np.clip(level + rng.normal(0, 0.004), 0, 1)), 5)
        models.append({"n": setting.n, "n_other": other, "alpha": setting.alpha, "ami": ami, "score": score})
    return {"models": models, "seconds": 1.0}


# -- the grid ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", ["small", "paper"])
def test_no_unit_and_no_model_is_there_twice(scale):
    units = grid(scale)
    assert len({json.dumps(unit, sort_keys=True) for unit in units}) == len(units)
    models = [setting for unit in units if unit["kind"] != "fit" for setting in settings_of(unit)]
    assert len(set(models)) == len(models)


def test_there_are_at_least_600_balanced_and_600_unbalanced_settings_of_the_usual_architecture():
    for kind in ("balanced", "unbalanced"):
        units = [u for u in grid("small") if u["kind"] == kind and u["architecture"] == "shared" and u["seed"] == 0]
        assert sum(len(settings_of(unit)) for unit in units) >= 600


def test_synthetic_tasks_of_unbalanced_models_have_more_tokens_than_the_real_one():
    units = [unit for unit in grid("small") if unit["kind"] == "unbalanced"]
    assert all(setting.n_other > setting.n for unit in units for setting in settings_of(unit))


def test_every_joint_model_of_the_usual_architecture_has_a_single_task_beside_it():
    settings = [s for unit in grid("small") if unit["kind"] != "fit" for s in settings_of(unit)]
    alone = {(s.architecture, s.n, s.seed) for s in settings if s.tasks == 1}
    assert all((s.architecture, s.n, s.seed) in alone for s in settings)


def test_a_fit_is_another_unit_when_what_it_reads_is_another(monkeypatch):
    before = fit_of("balanced", "small")
    monkeypatch.setitem(PLANS, "small", TINY)
    assert fit_of("balanced", "small") != before


# -- what is found ----------------------------------------------------------------------------------------------------
def test_every_unit_of_a_small_grid_runs_and_its_findings_are_a_page(tiny, tmp_path):
    units, store = grid("small"), ResultStore(tmp_path / "results")
    results = run_units(partial(observe, place=tiny), units, store=store)
    runs = [{"unit": unit, "result": result} for unit, result in zip(units, results, strict=True)]
    for run in runs[:-2]:
        assert len(run["result"]["models"]) == len(settings_of(run["unit"]))
    found = analyse(runs, "small")
    kept = json.dumps(found.as_json(), allow_nan=False)
    assert json.dumps(Findings.from_json(json.loads(kept)).as_json()) == kept
    assert {figure.name for figure in found.figures} == {"Figure 3a", "Figure 3b", "Figure 3c", "Unbalanced"}
    page = write_study_report(Results("laws", "small", "python -m …", runs, len(units)), tmp_path / "page.html")
    assert "Figure 3a" in page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def planted_runs(tmp_path_factory):
    """A grid with planted scores, and laws fitted to them."""
    folder = tmp_path_factory.mktemp("laws")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PLANS, "small", FEWER)
        patch.setitem(regression.EFFORTS, "operon", regression.Effort(30, 3))
        patch.setattr(forms, "PowerLawSettings", partial(forms.PowerLawSettings, draws=60))
        patch.setattr(regression, "TREES", 3)
        patch.setattr(laws, "ALPHAS", laws.ALPHAS[::2])
        patch.setattr(laws, "LAWS", {table: some[-1:] for table, some in laws.LAWS.items()})
        units, store = grid("small"), ResultStore(folder / "results")
        for unit in units:
            if unit["kind"] != "fit":
                store.put(address(observe, unit), unit, planted(unit))
        results = run_units(partial(observe, place=Place(folder, folder)), units, store=store)
    return [{"unit": unit, "result": result} for unit, result in zip(units, results, strict=True)]


def test_a_planted_law_is_found_again(planted_runs):
    found = analyse(planted_runs, "small")
    answers = {answer.question: answer for answer in found.answers}
    assert answers["5.1, √n"].verdict == "yes"
    assert answers["5.1, √AMI"].verdict == "yes"
    assert answers["5.1, √T"].verdict == "no"  # it is T to the power of 0.2
    assert "0.20" in answers["5.1, √T"].why
    assert answers["5.1, high AMI"].verdict == "yes"
    assert answers["5.1, few tokens"].verdict == "no"
    assert "rises for 8 of 9 values of α, falls for 0" in answers["5.1, more tasks"].why  # not where AMI is 0
    assert answers["5.1, all above"].verdict == "no"
    assert answers["5.2, high AMI"].verdict == "yes"
    assert "where closely related tasks have more words" in found.headline
    assert answers["5.2, closely related"].verdict == "not decided here"  # their tokens do not count
    assert "n^0.50, AMI^0.50 and T^0.20" in found.headline


def test_the_papers_equations_stand_beside_ours(planted_runs):
    tables = {table.name: table for table in analyse(planted_runs, "small").tables}
    numbers = [int(row.split(":")[0].removeprefix("eq. ")) for row in tables["Equations"].rows]
    assert numbers == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert len(tables["Laws"].rows) == 2
    assert list(tables["Architectures"].rows) == ["shared", "own", "mixed", "deep"]


def test_findings_follow_from_any_part_of_the_runs():
    units = [unit for unit in grid("small") if unit["kind"] != "fit"]
    runs = [{"unit": unit, "result": planted(unit)} for unit in units]
    assert "nothing to compare" in analyse([], "small").headline
    assert "nothing to compare" in analyse([run for run in runs if run["unit"]["kind"] == "balanced"], "small").headline
    first = [run for run in runs if run["unit"]["seed"] == 0 and run["unit"]["architecture"] == "shared"]
    found = analyse(first, "small")
    assert "have not been fitted yet" in found.answers[0].why
    assert {answer.verdict for answer in found.answers} <= {"not decided here", "no"}  # one seed decides nothing
    json.dumps(found.as_json(), allow_nan=False)


def test_gains_are_over_single_tasks_of_the_same_sentences():
    units = [unit for unit in grid("small") if unit["kind"] in ("balanced", "single")]
    seen = Seen([{"unit": unit, "result": planted(unit)} for unit in units])
    mine = seen.joint(lambda m: m.n == 1000 and m.tasks == 2 and m.alpha == 1.0)
    gain = seen.gain(mine)
    assert gain["n"] == len(mine) == PLANS["small"].seeds
    expected = np.mean([m.score - seen.single["shared", 1000, m.seed] for m in mine])
    assert gain["difference"] == pytest.approx(expected)
