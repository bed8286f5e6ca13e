"""``bursar policy``: learn task policies from training logs, and show them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from bursar.cli.options import JsonOption, check_output_file, grouped, one_of
from bursar.cli.output import print_json, print_table, print_warnings
from bursar.errors import BursarError, ConfigError, DataError

if TYPE_CHECKING:
    from bursar.curriculum import Estimate, Improvement, Policy, StepLog

app = typer.Typer(
    help="Task policies, which choose the task of each training step: learn, show, list.", no_args_is_help=True
)

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


@dataclass(frozen=True)
class Method:
    """How to learn a policy. None stands for the default of the kind."""

    reward: str | None = Option(
        None, metavar="NAME", help="Reward of a step; see bursar policy list. Default: depends on --kind."
    )
    estimator: str | None = Option(
        None,
        metavar="NAME",
        help="Off-policy estimator: importance, self-normalised, clipped or doubly-robust. Default: "
        "self-normalised, the only one for dynamic policies.",
    )
    entropy: float | None = Option(
        None,
        metavar="λ",
        help="Weight of the entropy bonus, which keeps tasks alike. Smaller values trust the logs more. Default: "
        "depends on --kind, such as 0.5 for fixed.",
    )
    kind: str = Option(
        "fixed",
        metavar="KIND",
        help="fixed: constant share of steps per task. dynamic: probabilities depend on the progress of each task.",
    )

    def settings(self) -> dict[str, Any]:
        """Reward, estimator and entropy weight: as given, or the default of the kind."""
        from bursar.curriculum import ESTIMATORS, REWARDS, improve, learn_dynamic

        one_of("--kind", self.kind, ("fixed", "dynamic"))
        if self.entropy is not None and not 0 <= self.entropy < math.inf:
            raise ConfigError(f"--entropy {self.entropy} is out of range", fix="use 0 or more, such as 0.5")
        if self.kind == "dynamic" and self.estimator not in (None, SELF_NORMALISED):
            fix = f"use {SELF_NORMALISED}"
            raise ConfigError(f"--estimator {self.estimator} cannot learn dynamic policies", fix=fix)
        function: Callable[..., Improvement] = improve if self.kind == "fixed" else learn_dynamic
        usual = {name: parameter.default for name, parameter in signature(function).parameters.items()}
        given: dict[str, Any] = {"reward": self.reward, "estimator": self.estimator, "entropy": self.entropy}
        found = {name: usual.get(name, SELF_NORMALISED) if value is None else value for name, value in given.items()}
        REWARDS[found["reward"]], ESTIMATORS[found["estimator"]]  # unknown names fail here, not as an error in a log
        return found

    def learn(self, logs: Sequence[StepLog], settings: Mapping[str, Any]) -> Improvement:
        from bursar.curriculum import improve, learn_dynamic

        if self.kind == "fixed":
            return improve(logs, **settings)
        return learn_dynamic(logs, reward=settings["reward"], entropy=settings["entropy"])


@app.command()
@grouped
def learn(
    logs: Annotated[list[Path], Argument(help="Training logs: Parquet files.", metavar="LOG")],
    out: Annotated[Path, Option("--out", "-o", metavar="POLICY.json", help="File to write the policy to.")],
    method: Method,
    as_json: JsonOption = False,
) -> None:
    """Learn a policy from the logs of trainings on the same tasks.

    [bold]bursar policy learn runs/spring/logs/*.parquet --out learned.json[/bold]

    To use it in a campaign, set policy = "learned.json" in its \\[learner] section.
    """
    check_output_file("--out", out, ".json")
    settings = method.settings()
    read = _read(logs, settings["reward"])
    found = method.learn(read, settings)
    about = _provenance(logs, read, found) | settings
    found.policy.save(out, about)
    if as_json:
        print_json({"file": str(out), **_shown(found.policy, about)})
        return
    _print(found.policy, about, out.name)
    typer.echo(f"Policy: {out}")


@app.command()
def show(
    policy: Annotated[str, Argument(help="File of a policy, or a name from bursar policy list.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a policy does and how it was learned."""
    from bursar.curriculum import make_policy
    from bursar.curriculum.policy import is_file

    found = make_policy(policy)
    learned = json.loads(Path(policy).read_text(encoding="utf-8")).get("learned") if is_file(policy) else None
    about = learned if isinstance(learned, dict) else None
    if as_json:
        print_json(_shown(found, about))
    else:
        _print(found, about, Path(policy).name)


@app.command("list")
def list_policies(as_json: JsonOption = False) -> None:
    """List the built-in policies and rewards."""
    from bursar.curriculum import POLICIES, REWARDS

    policies, rewards = ({name: _first_line(known[name]) for name in known} for known in (POLICIES, REWARDS))
    if as_json:
        print_json({"policies": policies, "rewards": rewards})
        return
    columns = ["policy", "how it divides training steps between tasks"]
    print_table("Policies", columns, list(policies.items()), numbers=False)
    print_table("Rewards", ["reward", "value of a training step"], list(rewards.items()), numbers=False)


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


def _provenance(files: Sequence[Path], logs: Sequence[StepLog], found: Improvement) -> dict[str, Any]:
    """Describe what a policy was learned from, for its file."""
    steps = sum(len(log) for log in logs)
    shares = sum(log.probabilities.sum(axis=0) for log in logs) / steps

    def written(estimate: Estimate) -> dict[str, float | None]:  # an unbounded end is null
        numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
        return {name: round(float(n), 6) if math.isfinite(n) else None for name, n in numbers.items()}

    return {
        "logs": [file.name for file in files],
        "steps": steps,
        "policies": list(dict.fromkeys(str(log.policy.get("policy", "unknown")) for log in logs)),
        "shares": {task: round(float(share), 6) for task, share in zip(logs[0].tasks, shares, strict=True)},
        "estimate": written(found.estimate) | {"effective": round(found.estimate.effective, 1)},
        "logged": written(found.logged),
        "warnings": list(found.warnings),
    }


def _shares(policy: Policy) -> dict[str, float] | None:
    """Give the share of steps of each task, if it is constant."""
    from bursar.curriculum import FixedPolicy

    if not isinstance(policy, FixedPolicy):
        return None
    total = sum(policy.weights.values())
    return {task: weight / total if total else 0.0 for task, weight in policy.weights.items()}


def _shown(policy: Policy, learned: Mapping[str, Any] | None) -> dict[str, Any]:
    about = {"policy": policy.describe(), "description": _first_line(type(policy))}
    return about | {"shares": _shares(policy), "learned": learned}


def _print(policy: Policy, learned: Mapping[str, Any] | None, title: str) -> None:
    from bursar.curriculum import DynamicPolicy

    typer.echo(f"{policy.name}: {_first_line(type(policy))}\n")
    shares = _shares(policy)
    try:
        story, logged = (_story(learned), learned["shares"]) if learned is not None else ([], {})
        in_logs = [f"{100 * logged[task]:.1f} %" if task in logged else "–" for task in shares or ()]
    except (KeyError, TypeError, ValueError):  # edited by hand
        story, logged = ["The file does not say how the policy was learned, or not in the usual form."], {}
    if shares is not None:
        table = {"task": list(shares), "share": [f"{100 * share:.1f} %" for share in shares.values()]}
        table |= {"in the logs": in_logs} if logged else {}
        print_table(title, list(table), zip(*table.values(), strict=True))
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
    for line in ["", *story]:
        typer.echo(line)
    print_warnings(learned["warnings"] if logged and learned else [])


def _story(learned: Mapping[str, Any]) -> list[str]:
    """Say how a policy was learned, and what is expected of it."""

    def number(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.4g}"

    logs, estimate = learned["logs"], learned["estimate"]
    named = ", ".join(logs) if len(logs) <= 3 else f"{', '.join(logs[:2])} and {len(logs) - 2} more logs"
    return [
        f"Learned from {learned['steps']:,} steps in {named} (policy: {', '.join(learned['policies'])}).",
        f"Reward: {learned['reward']}. Estimator: {learned['estimator']}. Entropy weight: {learned['entropy']}.",
        f"Estimated reward per step: {number(estimate['value'])} ({number(estimate['low'])} to "
        f"{number(estimate['high'])}); in the logs: {number(learned['logged']['value'])}. Effective sample size: "
        f"{estimate['effective']:,.0f} steps. The estimate is optimistic: it uses the logs that the policy was learned "
        "from.",
    ]


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]
