"""``bursar policy``: learn task policies from training logs, and show them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.cli.options import JsonOption, check_output_file
from bursar.errors import BursarError, ConfigError, DataError

if TYPE_CHECKING:
    from bursar.curriculum import Estimate, Improvement, Policy, StepLog

app = typer.Typer(
    help="Task policies, which choose the task of each training step: learn, show, list.", no_args_is_help=True
)

KINDS = ("fixed", "dynamic")
SELF_NORMALISED = "self-normalised"

# The features of a dynamic policy.
FEATURES = {
    "shortfall": "how far the task is from a perfect score",
    "pace": "whether it is still improving",
    "shortfall x pace": "far from perfect and still improving",
    "waiting": "steps since it was last trained",
    "shortfall x progress": "far from perfect late in training",
    "pace x progress": "still improving late in training",
}


@app.command()
def learn(
    logs: Annotated[list[Path], typer.Argument(help="Training logs: Parquet files.", metavar="LOG")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="POLICY.json", help="File to write the policy to.")],
    reward: Annotated[
        str | None,
        typer.Option(
            "--reward", metavar="NAME", help="Reward of a step; see bursar policy list. Default: depends on --kind."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            metavar="NAME",
            help="Off-policy estimator: importance, self-normalised, clipped or doubly-robust. Default: "
            "self-normalised, the only one for dynamic policies.",
        ),
    ] = None,
    entropy: Annotated[
        float | None,
        typer.Option(
            "--entropy",
            metavar="λ",
            help="Weight of the entropy bonus, which keeps tasks alike. Smaller values trust the logs more. Default: "
            "depends on --kind, such as 0.5 for fixed.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="fixed: constant share of steps per task. dynamic: probabilities depend on the progress of each task.",
        ),
    ] = "fixed",
    as_json: JsonOption = False,
) -> None:
    """Learn a policy from the logs of trainings on the same tasks.

    [bold]bursar policy learn runs/spring/logs/*.parquet --out learned.json[/bold]

    To use it in a campaign, set policy = "learned.json" in its \\[learner] section.
    """
    check_output_file("--out", out, ".json")
    method = _method(kind, reward, estimator, entropy)
    read = _read(logs, method["reward"])
    found = _learned(kind, read, method)
    about = _provenance(logs, read, found, method)
    found.policy.save(out, about)
    if as_json:
        typer.echo(json.dumps({"file": str(out), **_shown(found.policy, about)}, ensure_ascii=False))
        return
    _print(found.policy, about, out.name)
    typer.echo(f"Policy: {out}")


@app.command()
def show(
    policy: Annotated[str, typer.Argument(help="File of a policy, or a name from bursar policy list.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a policy does and how it was learned."""
    from bursar.curriculum import make_policy
    from bursar.curriculum.policy import is_file

    found = make_policy(policy)
    learned = json.loads(Path(policy).read_text(encoding="utf-8")).get("learned") if is_file(policy) else None
    about = learned if isinstance(learned, dict) else None
    if as_json:
        typer.echo(json.dumps(_shown(found, about), ensure_ascii=False))
    else:
        _print(found, about, Path(policy).name)


@app.command("list")
def list_policies(as_json: JsonOption = False) -> None:
    """List the built-in policies and rewards."""
    from bursar.cli.show import print_table
    from bursar.curriculum import POLICIES, REWARDS

    policies = {name: _first_line(POLICIES[name]) for name in POLICIES}
    rewards = {name: _first_line(REWARDS[name]) for name in REWARDS}
    if as_json:
        typer.echo(json.dumps({"policies": policies, "rewards": rewards}, ensure_ascii=False))
        return
    print_table(
        "Policies", ["policy", "how it divides training steps between tasks"], list(policies.items()), numbers=False
    )
    print_table("Rewards", ["reward", "value of a training step"], list(rewards.items()), numbers=False)


# -- learning ---------------------------------------------------------------------------------------------------------
def _method(kind: str, reward: str | None, estimator: str | None, entropy: float | None) -> dict[str, Any]:
    """Choose reward, estimator and entropy weight: as given, or the default of the kind."""
    from bursar.curriculum import ESTIMATORS, REWARDS, improve, learn_dynamic

    if kind not in KINDS:
        raise ConfigError(f"--kind {kind}: unknown kind", fix=f"use {' or '.join(KINDS)}")
    if entropy is not None and not 0 <= entropy < math.inf:
        raise ConfigError(f"--entropy {entropy} is out of range", fix="use a number of at least 0, such as 0.5")
    if kind == "dynamic" and estimator not in (None, SELF_NORMALISED):
        raise ConfigError(f"--estimator {estimator} cannot learn dynamic policies", fix=f"use {SELF_NORMALISED}")
    function: Callable[..., Improvement] = improve if kind == "fixed" else learn_dynamic
    given: dict[str, Any] = {"reward": reward, "estimator": estimator, "entropy": entropy}
    usual = {name: parameter.default for name, parameter in signature(function).parameters.items()}
    found = {name: value if value is not None else usual.get(name, SELF_NORMALISED) for name, value in given.items()}
    REWARDS[found["reward"]], ESTIMATORS[found["estimator"]]  # unknown names fail here, not as an error in a log
    return found


def _read(files: Sequence[Path], reward: str) -> list[StepLog]:
    """Read the logs; name the file of one without this reward."""
    from bursar.curriculum.logs import read_logs

    found = read_logs(files)
    for file, log in zip(files, found, strict=True):
        try:
            log.rewards(reward)
        except BursarError as wrong:
            raise DataError(f"--reward {reward}: {wrong.message}", path=file, fix=wrong.fix) from None
    return found


def _learned(kind: str, logs: Sequence[StepLog], method: Mapping[str, Any]) -> Improvement:
    from bursar.curriculum import improve, learn_dynamic

    if kind == "fixed":
        return improve(logs, **method)
    return learn_dynamic(logs, reward=method["reward"], entropy=method["entropy"])


def _provenance(
    files: Sequence[Path], logs: Sequence[StepLog], found: Improvement, method: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe how a policy was learned, for its file."""
    steps = sum(len(log) for log in logs)
    shares = sum(log.probabilities.sum(axis=0) for log in logs) / steps
    return {
        "logs": [file.name for file in files],
        "steps": steps,
        "policies": list(dict.fromkeys(str(log.policy.get("policy", "unknown")) for log in logs)),
        "shares": {task: round(float(share), 6) for task, share in zip(logs[0].tasks, shares, strict=True)},
        **method,
        "estimate": _written(found.estimate) | {"effective": round(found.estimate.effective, 1)},
        "logged": _written(found.logged),
        "warnings": list(found.warnings),
    }


def _written(estimate: Estimate) -> dict[str, float | None]:
    """Convert an estimate to JSON; an unbounded end is null."""
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: round(float(n), 6) if math.isfinite(n) else None for name, n in numbers.items()}


# -- output -----------------------------------------------------------------------------------------------------------
def _shares(policy: Policy) -> dict[str, float] | None:
    """Give the share of steps of each task, if it is constant."""
    from bursar.curriculum import FixedPolicy

    if not isinstance(policy, FixedPolicy):
        return None
    total = sum(policy.weights.values())
    return {task: weight / total if total else 0.0 for task, weight in policy.weights.items()}


def _shown(policy: Policy, learned: Mapping[str, Any] | None) -> dict[str, Any]:
    """Describe a policy as JSON."""
    return {
        "policy": policy.describe(),
        "description": _first_line(type(policy)),
        "shares": _shares(policy),
        "learned": learned,
    }


def _print(policy: Policy, learned: Mapping[str, Any] | None, title: str) -> None:
    from bursar.cli.show import print_table
    from bursar.curriculum import DynamicPolicy

    typer.echo(f"{policy.name}: {_first_line(type(policy))}\n")
    shares, logged = _shares(policy), _table_of(learned, "shares")
    if shares is not None:
        rows = [[task, _percent(share), _percent(logged.get(task))] for task, share in shares.items()]
        columns = ["task", "share", "in the logs"]
        width = 3 if logged else 2
        print_table(title, columns[:width], [row[:width] for row in rows])
        typer.echo("share: mean share of training steps; each step draws its task at random.")
        if logged:
            typer.echo("in the logs: its share in the trainings that the policy was learned from.")
    elif isinstance(policy, DynamicPolicy):
        rows = [[name, f"{weight:+.2f}", FEATURES.get(name, "")] for name, weight in policy.weights.items()]
        print_table(title, ["feature", "weight", "meaning"], rows, numbers=False)
        typer.echo("At each step, features with positive weights make a task more likely to be trained, and features")
        typer.echo("with negative weights less likely. The share of steps per task is therefore not known in advance.")
    else:
        settings = {key: json.dumps(value) for key, value in policy.describe().items() if key != "policy"}
        if settings:
            print_table(title, ["setting", "value"], list(settings.items()))
        typer.echo("The share of steps per task depends on the training, so it is not known in advance.")
    if learned is not None:
        _print_provenance(learned)


def _print_provenance(learned: Mapping[str, Any]) -> None:
    estimate, logged = _table_of(learned, "estimate"), _table_of(learned, "logged")
    logs, policies = _listed(learned.get("logs")), ", ".join(_listed(learned.get("policies")))
    typer.echo("")
    typer.echo(
        f"Learned from {_count(learned.get('steps'))} steps in {_some(logs)}"
        f"{f' (policy: {policies})' if policies else ''}."
    )
    typer.echo(
        f"Reward: {learned.get('reward')}. Estimator: {learned.get('estimator')}. "
        f"Entropy weight: {learned.get('entropy')}."
    )
    if estimate and logged:
        typer.echo(
            f"Estimated reward per step: {_number(estimate.get('value'))} "
            f"({_number(estimate.get('low'))} to {_number(estimate.get('high'))}); in the logs: "
            f"{_number(logged.get('value'))}. Effective sample size: {_count(estimate.get('effective'))} steps. "
            "The estimate is optimistic: it uses the logs that the policy was learned from."
        )
    for warning in _listed(learned.get("warnings")):
        typer.echo(f"Warning: {warning}", err=True)


def _table_of(about: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    """Read a table of a file that may have been edited by hand."""
    found = (about or {}).get(key)
    return found if isinstance(found, dict) else {}


def _listed(value: Any) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _some(logs: Sequence[str]) -> str:
    """Name the files, or the first few of many."""
    if len(logs) <= 3:
        return ", ".join(logs) or "unnamed logs"
    return f"{', '.join(logs[:2])} and {len(logs) - 2} more logs"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "unknown"


def _count(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else "unknown"


def _percent(share: Any) -> str:
    return f"{100 * share:.1f} %" if isinstance(share, int | float) else "–"


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
