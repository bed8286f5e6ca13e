"""``bursar compare``: the arms of finished runs side by side, with paired differences where seeds match."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

import bursar
from bursar.cli.options import JsonOption, PluginOption, load_plugins
from bursar.cli.output import print_json, print_table
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.campaign.curves import LearningCurve
    from bursar.campaign.results import RunResult


def compare(
    runs: Annotated[list[Path], Argument(metavar="RUN...", help="Folders of runs, or of the seeds of one campaign.")],
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the strategies of several runs: scores, and differences seed by seed.

    Runs of one campaign with several seeds are taken together. The first strategy of the first run is compared with
    all others; differences are paired where both have a seed.

    [bold]bursar compare runs/cover runs/random[/bold]
    """
    load_plugins(plugin)
    results = {}
    for given in runs:  # the folder of a run, or those of its seeds
        seeds = sorted(given.glob("seed-*/campaign.json"), key=lambda path: (len(path.parent.name), path.parent.name))
        for folder in [path.parent for path in seeds] or [given]:
            results[folder] = bursar.Run.open(folder).result()
    _check_alike(results)
    labelled = _labelled(results)
    tables = _tables(next(iter(results.values())), labelled)
    if as_json:
        print_json(tables | {"differences": [asdict(difference) for difference in tables["differences"]]})
        return
    from bursar.report.across_seeds import difference_row
    from bursar.report.wording import mean_scale

    scale = mean_scale(next(iter(results.values())))
    columns = ["strategy", "seeds", *tables["tasks"], "mean along the curve"]
    rows = [
        [row["strategy"], str(row["seeds"]), *(scale.show(s) for s in row["scores"].values()), scale.show(row["mean"])]
        for row in tables["arms"]
    ]
    print_table("Scores after the last round, and along the curve, over seeds", columns, rows)
    if found := [difference_row(difference, scale) for difference in tables["differences"]]:
        header = ["comparison", "seeds", "difference", "90 % interval"]
        print_table("Differences along the curve, on the same seeds", header, found)
    elif len(labelled) > 1:
        typer.echo("No two strategies share a seed, so there are no paired differences.")


def _check_alike(results: dict[Path, RunResult]) -> None:
    (first, reference), *others = results.items()
    for folder, result in others:
        different = "tasks" if result.tasks != reference.tasks else None
        different = "numbers of test items" if result.corpus.test != reference.corpus.test else different
        if different is not None:
            raise ConfigError(f"{first} and {folder} have different {different}", fix="compare runs on the same data")


def _labelled(results: dict[Path, RunResult]) -> dict[str, dict[int, LearningCurve]]:
    """The curves by strategy and seed; strategies of several campaigns carry the name of theirs."""
    from bursar.campaign.curves import curves_of

    keys = {folder: result.config.model_copy(update={"seed": 0}).digest for folder, result in results.items()}
    several = len(set(keys.values())) > 1
    names: dict[str, str] = {}
    for folder, key in keys.items():
        base = folder.parent if folder.name.startswith("seed-") else folder
        name = base.resolve().name
        names.setdefault(key, name if name not in names.values() else str(base))
    found: dict[str, dict[int, LearningCurve]] = {}
    for folder, result in results.items():
        for arm, curve in curves_of(result).items():
            seeds = found.setdefault(f"{names[keys[folder]]}: {arm}" if several else arm, {})
            if result.config.seed in seeds:
                raise ConfigError(f"{folder} has the seed of another run", fix="name every run once")
            seeds[result.config.seed] = curve
    if not found:
        raise ConfigError("no run has test scores to compare", fix="run them on data with test items")
    return found


def _tables(reference: RunResult, labelled: dict[str, dict[int, LearningCurve]]) -> dict[str, Any]:
    """Scores of all strategies, and the differences between the first and the others."""
    from bursar.campaign.curves import area_by_seed, paired

    areas, first = area_by_seed(labelled), next(iter(labelled))
    found = (paired(first, other, areas) for other in labelled if other != first)
    arms = [
        {
            "strategy": arm,
            "seeds": len(by_seed),
            "scores": {name: fmean(float(c.scores[name][-1]) for c in by_seed.values()) for name in reference.tasks},
            "mean": fmean(areas[arm].values()),
        }
        for arm, by_seed in labelled.items()
    ]
    return {"tasks": list(reference.tasks), "arms": arms, "differences": [each for each in found if each is not None]}
