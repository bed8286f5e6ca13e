"""``bursar policy``: learn from the logs of trainings on which tasks to spend steps, and look at what was learned."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bursar.errors import BursarError, ConfigError, DataError

if TYPE_CHECKING:
    from bursar.curriculum import Estimate, Improvement, Policy, StepLog

app = typer.Typer(help="Learn and show task policies: which task each training step is spent on.", no_args_is_help=True)

KINDS = ("fixed", "dynamic")
SELF_NORMALISED = "self-normalised"
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object, for machines.")]

# What a dynamic policy looks at, for people.
IN_WORDS = {
    "shortfall": "how far the task is from perfect",
    "pace": "whether it is still getting better",
    "shortfall x pace": "far from perfect and still getting better",
    "waiting": "how long it has not been trained",
    "shortfall x progress": "far from perfect late in the training",
    "pace x progress": "still getting better late in the training",
}


@app.command()
def learn(
    logs: Annotated[list[Path], typer.Argument(help="Logs of trainings' steps: Parquet files.", metavar="LOG…")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="POLICY.json", help="Where to write the policy.")],
    reward: Annotated[
        str | None,
        typer.Option(
            "--reward", metavar="NAME", help="What a step was worth: see bursar policy list. The usual of the kind."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            metavar="NAME",
            help="How the worth of another policy is estimated: importance, self-normalised, clipped or doubly-robust. "
            "self-normalised if not given; dynamic policies know no other.",
        ),
    ] = None,
    entropy: Annotated[
        float | None,
        typer.Option(
            "--entropy",
            metavar="λ",
            help="How much it is worth to treat tasks alike: the smaller, the more the logs are trusted. The usual of "
            "the kind, such as 0.5 for fixed.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="fixed: the same share of the steps for a task all along. dynamic: chances by how each task is doing.",
        ),
    ] = "fixed",
    as_json: JsonOption = False,
) -> None:
    """Learn a policy from the logs of one or more trainings of the same tasks.

    [bold]bursar policy learn runs/spring/logs/*.parquet --out learned.json[/bold]

    The policy is then named in a campaign: policy = "learned.json" in its \\[learner] section.
    """
    if out.suffix != ".json":
        raise ConfigError(f"--out {out}", fix="let the policy's file end in .json")
    if out.is_dir():
        raise ConfigError(f"--out {out} is a folder", fix="name a file in it")
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
    policy: Annotated[str, typer.Argument(help="The file of a policy, or a name: see bursar policy list.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a policy does and where it came from."""
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
    """List the policies there are, and the rewards that they learn from."""
    from bursar.cli.show import print_table
    from bursar.curriculum import POLICIES, REWARDS

    policies = {name: _first_line(POLICIES[name]) for name in POLICIES}
    rewards = {name: _first_line(REWARDS[name]) for name in REWARDS}
    if as_json:
        typer.echo(json.dumps({"policies": policies, "rewards": rewards}, ensure_ascii=False))
        return
    print_table("Policies", ["policy", "how it shares training steps between tasks"], _rows(policies), numbers=False)
    print_table("Rewards", ["reward", "what a step is worth"], _rows(rewards), numbers=False)


# -- learning ---------------------------------------------------------------------------------------------------------
def _method(kind: str, reward: str | None, estimator: str | None, entropy: float | None) -> dict[str, Any]:
    """Reward, estimator and weight of entropy: what was asked for, and else what is usual for the kind."""
    from bursar.curriculum import ESTIMATORS, REWARDS, improve, learn_dynamic

    if kind not in KINDS:
        raise ConfigError(f"--kind {kind}", fix=f"use {' or '.join(KINDS)}")
    if entropy is not None and not 0 <= entropy < math.inf:
        raise ConfigError(f"--entropy {entropy}", fix="use a number from 0 up, such as 0.5")
    if kind == "dynamic" and estimator not in (None, SELF_NORMALISED):
        raise ConfigError(f"--estimator {estimator}", fix=f"dynamic policies are learned by {SELF_NORMALISED} alone")
    function: Callable[..., Improvement] = improve if kind == "fixed" else learn_dynamic
    given: dict[str, Any] = {"reward": reward, "estimator": estimator, "entropy": entropy}
    usual = {name: parameter.default for name, parameter in signature(function).parameters.items()}
    found = {name: value if value is not None else usual.get(name, SELF_NORMALISED) for name, value in given.items()}
    REWARDS[found["reward"]], ESTIMATORS[found["estimator"]]  # unknown ones are no fault of a log
    return found


def _read(files: Sequence[Path], reward: str) -> list[StepLog]:
    """The logs; one that this reward says nothing of is refused by its file."""
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
    """Where a policy came from, as its file keeps it."""
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
    """An estimate as JSON, which has no infinity: an end that is not known is null."""
    numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {name: round(float(n), 6) if math.isfinite(n) else None for name, n in numbers.items()}


# -- showing ----------------------------------------------------------------------------------------------------------
def _shares(policy: Policy) -> dict[str, float] | None:
    """What share of the steps each task gets, where that is settled before a training."""
    from bursar.curriculum import FixedPolicy

    if not isinstance(policy, FixedPolicy):
        return None
    total = sum(policy.weights.values())
    return {task: weight / total if total else 0.0 for task, weight in policy.weights.items()}


def _shown(policy: Policy, learned: Mapping[str, Any] | None) -> dict[str, Any]:
    """All that a machine wants to know of a policy."""
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
        columns = ["task", "share", *(["in the logs"] if logged else [])]
        rows = [
            [task, _percent(share), *([_percent(logged.get(task))] if logged else [])] for task, share in shares.items()
        ]
        print_table(title, columns, rows)
        typer.echo("share: of all training steps, those that train this task, on average: each step draws its task.")
        if logged:
            typer.echo("in the logs: the share that it had in the trainings that this was learned from.")
    elif isinstance(policy, DynamicPolicy):
        rows = [[name, f"{weight:+.2f}", IN_WORDS.get(name, "")] for name, weight in policy.weights.items()]
        print_table(title, ["looks at", "weight", "which says"], rows, numbers=False)
        typer.echo("A task's share of the steps is not settled beforehand: at every step a task is likelier to be")
        typer.echo("trained, the more of what has a weight above 0 it shows, and the less of what has one below.")
    else:
        settings = {key: json.dumps(value) for key, value in policy.describe().items() if key != "policy"}
        if settings:
            print_table(title, ["setting", "value"], _rows(settings))
        typer.echo("What share of the training steps a task gets depends on the training, and is not settled here.")
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
        f"Weight of entropy: {learned.get('entropy')}."
    )
    if estimate and logged:
        typer.echo(
            f"By the logs a step should earn {_number(estimate.get('value'))} "
            f"({_number(estimate.get('low'))} to {_number(estimate.get('high'))}), where theirs earned "
            f"{_number(logged.get('value'))}; the {_count(learned.get('steps'))} steps tell as much of this policy as "
            f"{_count(estimate.get('effective'))} of its own would. It was chosen by the same logs, so that is rather "
            "too good."
        )
    for warning in _listed(learned.get("warnings")):
        typer.echo(f"Warning: {warning}", err=True)


def _table_of(about: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    """A table of a file that people may have edited."""
    found = (about or {}).get(key)
    return found if isinstance(found, dict) else {}


def _listed(value: Any) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _some(logs: Sequence[str]) -> str:
    """The files, or the first few of many."""
    if len(logs) <= 3:
        return ", ".join(logs) or "logs that it does not name"
    return f"{', '.join(logs[:2])} and {len(logs) - 2} more logs"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "unknown"


def _count(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else "unknown"


def _percent(share: Any) -> str:
    return f"{100 * share:.1f} %" if isinstance(share, int | float) else "–"


def _rows(table: Mapping[str, str]) -> list[list[str]]:
    return [[name, value] for name, value in table.items()]


def _first_line(thing: Any) -> str:
    lines: Iterable[str] = (thing.__doc__ or "").strip().splitlines()
    return next(iter(lines), "")
