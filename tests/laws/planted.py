"""Tables whose law is known."""

from __future__ import annotations

import numpy as np

from bursar.laws import Formula, Law, Observations
from bursar.laws.advice import Laws
from bursar.laws.cards import GrowthRate, HeldOut, Range
from bursar.laws.forms import Exponent


def settings_of(rows, seed=0):
    """Settings as paper 2 varies them: n, T and AMI."""
    rng = np.random.default_rng(seed)
    n = rng.choice(np.arange(1000, 20001, 500), rows).astype(float)
    return np.stack([n, rng.integers(2, 16, rows), rng.uniform(0.1, 1.0, rows)], axis=1)


def observed(score, rows=120, noise=0.005, seeds=1, seed=0):
    """A table of models whose scores follow ``score(n, tasks, ami)``, with noise."""
    rng = np.random.default_rng([seed, 1])
    made = []
    for at, (n, tasks, ami) in enumerate(settings_of(rows, seed)):
        for run in range(seeds):
            value = float(np.clip(score(n, tasks, ami) + rng.normal(0, noise), 0, 1))
            setting = {"n": int(n), "n_other": int(n), "tasks": int(tasks), "ami": float(ami), "alpha": at / rows}
            made.append(setting | {"architecture": "shared", "seed": run, "score": value})
    return Observations.of(made)


# -- laws that nobody had to search for ---
def card(text, X, scores, variables, *, alone=(), about=None):
    """A law with this formula, whose held-out settings are given: (settings, variables)."""
    formula = Formula.parse(text, variables)
    ranges = {name: Range(*map(float, np.quantile(X[:, at], [0, 0.5, 1]))) for at, name in enumerate(variables)}
    rows = HeldOut(
        {name: tuple(X[:, at].tolist()) for at, name in enumerate(variables)},
        tuple(scores.tolist()),
        tuple(formula.predict(X).tolist()),
        tuple(alone),
    )
    return Law(
        formula=formula,
        origin="operon",
        ranges=ranges,
        rates={
            name: GrowthRate(f"sqrt({name})", name == "ami", 0.5, 0.5, Exponent(0.5, 0.4, 0.6)) for name in variables
        },
        held_out=rows,
        scaling={"score": 1.0},
        baselines={"constant": 0.01, "monotone": 0.001, "noise": float("nan")},
        front=({"size": 5, "error": 0.001, "doubt": 0.0001, "text": formula.text, "origin": "operon"},),
        about={"rows": len(X), "seed": 0} | dict(about or {}),
    )


def planted_laws(noise=0.004, settings=60, about=None):
    """Training together helps from an AMI of 0.25 on: scores are 0.004 √(n AMI) together and 0.002 √n alone."""
    rng = np.random.default_rng(3)
    n, tasks = rng.choice(np.arange(1000, 6001, 500), settings).astype(float), rng.integers(2, 9, settings)
    ami = np.append(rng.uniform(0, 1, settings - 2), [0.0, 1.0])
    alone = 0.002 * np.sqrt(n) + rng.normal(0, noise / 2, settings)
    about = {"models": 300, "sources": ["news"], "architectures": ["shared"], "kinds": ["tagging"]} | (about or {})

    def joint(columns, variables, text):
        scores = 0.004 * np.sqrt(n * ami) + rng.normal(0, noise / 2, settings)
        return card(text, np.stack(columns, axis=1), scores, variables, alone=alone, about=about)

    balanced = joint([n, tasks, ami], ("n", "tasks", "ami"), "0.004 * sqrt(n * ami)")
    more = ([n, n + 3000, tasks, ami], ("n", "n_other", "tasks", "ami"), "0.004 * sqrt(n * ami)")
    single = card("0.002 * sqrt(n)", n[:, None], alone, ("n",), about=about | {"by_seed": True})
    return Laws({"balanced": balanced, "unbalanced": joint(*more)}, single)
