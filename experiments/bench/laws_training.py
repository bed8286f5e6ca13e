"""Multi-task models trained in lockstep, against a plain module trained one model after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import t
from torch import Tensor, nn
from torch.nn import functional as F

from bursar.corpus.formats import read
from bursar.learners import lockstep
from bursar.learners.lockstep import FitJob, Settings
from bursar.learners.lockstep.trainer import one_torch_thread, walk
from experiments.bench.harness import CannotMeasureError, Case, Measured, Sides, seconds
from experiments.bench.judged import Judged
from experiments.studies.laws_network import DENSE, HIDDEN, MultitaskTagger
from experiments.studies.laws_trainings import LANES, Material, Setting, drawn_tasks, held_out_f1, network_of

CASES: list[Case] = []

MODELS, PLAIN = 16, 8  # trained by each side
HOW = Settings(batch=100, epochs=10, lanes=LANES)
SIDES = ("", "_reverse")
READER = {"weight_ih": "input.weight", "bias_ih": "input.bias", "weight_hh": "again.weight"}
GATES = [1, 0, 3, 2]  # ours are keep, let in, let out, new; torch's let in, keep, new, let out


# -- the plain way -----------------------------------------------------------------------------------------------------
class PlainTagger(nn.Module):
    """The network of paper 2 as one would write it, with the first values of one of ours."""

    def __init__(self, network: MultitaskTagger, seed: int) -> None:
        super().__init__()
        shared, own = network.layers
        sizes = [2 * HIDDEN, *[DENSE] * (shared + own)]
        self.reader = nn.LSTM(network.size, HIDDEN, bidirectional=True, batch_first=True)
        self.shared = nn.Sequential(*(_dense(sizes[k]) for k in range(shared)))
        self.tasks = nn.ModuleList(
            nn.Sequential(*(_dense(sizes[shared + k]) for k in range(own)), nn.Linear(sizes[-1], network.labels))
            for _ in range(network.tasks)
        )
        self.to(network.dtype)
        for end in SIDES:  # one bias is enough
            nn.init.zeros_(getattr(self.reader, f"bias_hh_l0{end}").requires_grad_(False))
        for name, (values, of) in self.named(network).items():
            for at, value in enumerate(values):
                first = network.begin(seed)[name]
                value.data.copy_(of(first[at] if len(values) > 1 else first.view_as(value)))

    def named(self, network: MultitaskTagger) -> Mapping[str, tuple[list[Tensor], Callable[[Tensor], Tensor]]]:
        """Our names to the parameters that stand for them, a direction or a task each, and how ours become theirs."""
        found = {
            ours: ([getattr(self.reader, f"{theirs}_l0{end}") for end in SIDES], in_torchs_order)
            for theirs, ours in READER.items()
        }
        shared, tasks = _linear(self.shared), [_linear(task) for task in self.tasks]
        layers = {f"shared{k}": [layer] for k, layer in enumerate(shared)}
        layers |= {f"own{k}": [task[k] for task in tasks] for k in range(network.layers.own)}
        layers["output"] = [task[-1] for task in tasks]
        for name, some in layers.items():
            for part in ("weight", "bias"):
                found[f"{name}.{part}"] = [getattr(layer, part) for layer in some], lambda value: value
        return found

    def parameters_like_ours(self, network: MultitaskTagger) -> dict[str, Tensor]:
        """The parameters under our names, in our shapes."""
        first = network.begin(0)
        return {
            name: torch.stack([of(value.detach()) for value in values]).view_as(first[name])
            for name, (values, of) in self.named(network).items()
        }

    def forward(self, x: Tensor) -> list[Tensor]:
        said = self.shared(self.reader(x)[0][:, 1])
        return [task(said) for task in self.tasks]


def _linear(module: nn.Module) -> list[nn.Module]:
    return [part for part in module.modules() if isinstance(part, nn.Linear)]


def _dense(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, DENSE), nn.ReLU())


def in_torchs_order(value: Tensor) -> Tensor:
    """Rows of gates as torch has them, and back again."""
    return value.view(4, HIDDEN, *value.shape[1:])[GATES].flatten(0, 1)


def plainly_trained(network: MultitaskTagger, job: FitJob, how: Settings) -> PlainTagger:
    """One model, by automatic differentiation and torch's own Adam."""
    model = PlainTagger(network, job.seed)
    adam = torch.optim.Adam([value for value in model.parameters() if value.requires_grad], lr=how.rate)
    windows, targets = torch.from_numpy(network.windows), torch.from_numpy(network.targets)
    for epoch in range(1, how.epochs + 1):
        for rows, real in zip(*walk(job, how, epoch), strict=True):
            chosen = torch.from_numpy(rows[real])
            wanted = targets[chosen]
            labelled = (wanted >= 0).any(dim=0).tolist()
            adam.zero_grad()
            scores = model(network.vectors[windows[chosen]])
            losses = [
                F.cross_entropy(said, wanted[:, task], ignore_index=-1)
                for task, said in enumerate(scores)
                if labelled[task]
            ]
            torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
            adam.step()
    return model


# -- the case ----------------------------------------------------------------------------------------------------------
@cache
def _material() -> Material:
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    folder = Path(os.environ.get("BURSAR_DATA", beside)) / "conll2003"
    if not folder.exists():
        raise CannotMeasureError("CoNLL-2003 is not here: say where the data sets are, BURSAR_DATA")
    return Material.of(read(folder), "entities")


def _prepared() -> tuple[MultitaskTagger, list[FitJob]]:
    """Models of 2,000 tokens and five tasks; the first few differ in seed and relatedness."""
    alphas = (0.6, 0.8, 0.9, 0.95)
    settings = [Setting(2000, 5, alphas[at % 4], seed=at % 5) for at in range(MODELS)]
    return network_of(_material(), settings, [drawn_tasks(_material(), setting) for setting in settings])


def seconds_a_model(side: Callable[[], Sequence[Callable[[], float]]]) -> Measured:
    """How long one model takes; calling a side returns for each of its models what tells its F1."""
    made: list[Sequence[Callable[[], float]]] = []
    taken = seconds(lambda: made.append(side()))
    scores = [told() for told in made[0][:PLAIN]]  # of the same models on both sides
    return Measured(taken / len(made[0]), {"models": len(made[0]), "f1": scores})


def paired(line: dict[str, Any]) -> dict[str, Any]:
    """The mean F1 of both sides, and the mean of what single models differ by, with its interval of 95 %."""
    ours, theirs = (np.array(line.pop(name)) for name in ("f1", "theirs_f1"))
    differences = ours - theirs
    half = float(t.ppf(0.975, len(ours) - 1) * differences.std(ddof=1) / np.sqrt(len(ours)))
    middle = float(differences.mean())
    return {
        "f1": round(float(ours.mean()), 4),
        "theirs_f1": round(float(theirs.mean()), 4),
        "f1_difference": round(middle, 5),
        "f1_interval": [round(middle - half, 5), round(middle + half, 5)],
        "f1_covers_0": float(abs(middle) <= half + 1e-12),
    }


def _training() -> Sides:
    network, jobs = _prepared()

    def ours() -> list[Callable[[], float]]:
        models = lockstep.train(network, jobs, HOW)
        return [lambda model=model: held_out_f1(_material(), network, model) for model in models]  # type: ignore[misc]

    def plain() -> list[Callable[[], float]]:
        with one_torch_thread():
            models = [plainly_trained(network, job, HOW) for job in jobs[:PLAIN]]
        return [lambda model=model: _plain_f1(network, model) for model in models]  # type: ignore[misc]

    return ours, plain


CASES.append(
    Judged(
        "batched-training",
        "a model of five tasks, 8 in lockstep, against a plain module and torch's Adam; one thread, batches of 100, "
        "single precision; F1 of the same eight models on both sides, and what they differ by",
        _training,
        repeats=3,
        unit="s/model",
        measure=seconds_a_model,
        compare=paired,
        at_least={"ratio": 4.0, "f1_covers_0": 1.0},
    )
)


def _plain_f1(network: MultitaskTagger, model: PlainTagger) -> float:
    material = _material()
    words = int(material.held_out.words.sum())
    with one_torch_thread(), torch.no_grad():
        guesses = model(network.vectors[torch.from_numpy(network.windows[-words:])])[0].argmax(dim=1)
    return material.f1(guesses.numpy())
