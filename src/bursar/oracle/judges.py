"""Judges by name: the probe, paper 4's networks, and a fine-tuned encoder."""

from __future__ import annotations

from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.oracle.encoder import EncoderJudge
from bursar.oracle.judge import Judge
from bursar.oracle.judge_registry import PROBE, SEARCHERS
from bursar.oracle.network import NetworkJudge
from bursar.oracle.probe import ProbeJudge
from bursar.oracle.problem import Problem

JUDGES = (*SEARCHERS, "encoder")


def make_judge(name: str, problem: Problem, *, seed: int = 0, progress: Progress = no_progress) -> Judge:
    """The judge of that name; the seed is that of its trainings, and the probe has none.

    >>> make_judge("prope", None)
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: there is no judge 'prope'. Fix: use probe, aoe, cnn, lstm, tagger, encoder
    """
    if name == PROBE:
        return ProbeJudge.of(problem, progress=progress)
    if name == "encoder":
        return EncoderJudge(problem, seed)
    if name in JUDGES:
        return NetworkJudge(problem, name, seed=seed)
    raise ConfigError(f"there is no judge {name!r}", fix=f"use {', '.join(JUDGES)}")
