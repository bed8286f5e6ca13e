"""The layers: the same in the documentation, in the contract that is checked, and on disk."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def layers_in_the_docs() -> list[set[str]]:
    """The list in docs/explanations/architecture.md, lowest first."""
    text = (ROOT / "docs" / "explanations" / "architecture.md").read_text(encoding="utf-8")
    block = text.split("## Layers, lowest first")[1].split("```")[1]
    return [set(line.split(" · ")) for line in block.strip().splitlines()]


def contract() -> dict[str, object]:
    """The contract of import-linter in pyproject.toml."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (only,) = tables["contracts"]
    return only


def layers_in_the_contract() -> list[set[str]]:
    """Those of the contract, lowest first, without the package they are all in."""
    layers = [layer.split(" | ") for layer in reversed(contract()["layers"])]
    return [{name.removeprefix("bursar.") for name in layer} for layer in layers]


def test_the_documented_layers_are_those_that_are_checked():
    assert layers_in_the_docs() == layers_in_the_contract()


def test_the_contract_has_no_exceptions():
    assert contract()["type"] == "layers"
    assert "ignore_imports" not in contract()


def test_every_package_has_a_layer():
    package = ROOT / "src" / "bursar"
    found = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} | {"experiments"} == set().union(*layers_in_the_contract())


def test_the_table_of_packages_has_the_layers_in_the_same_order():
    text = (ROOT / "docs" / "explanations" / "architecture.md").read_text(encoding="utf-8")
    rows = text.split("| package | modules |")[1].split("\n\n")[0].splitlines()[2:]
    named = [name.strip().strip("`") for row in rows for name in row.split("|")[1].split("·")]
    order = {name: at for at, layer in enumerate(layers_in_the_docs()) for name in layer}
    assert sorted(named) == sorted(order)
    assert [order[name] for name in named] == sorted(order.values())


def test_a_campaign_imports_no_adviser_before_it_asks_one():
    asked = (
        "import sys, bursar.campaign\n"
        "def advisers(): return sorted({n.split('.')[1] for n in sys.modules if n.startswith('bursar.')}"
        " & {'allocation', 'oracle', 'laws'})\n"
        "print(advisers())\n"
        "bursar.campaign.CampaignConfig(oracle={'steps': 5})\n"
        "print(advisers())"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "['oracle']"]
