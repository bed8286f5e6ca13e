"""Judges by name, and which tasks each supports. Judges are imported when they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.learners.learner import Progress, no_progress
from bursar.tasks import Classification, Tagging, Task

if TYPE_CHECKING:
    from bursar.oracle.judge import Judge
    from bursar.oracle.problem import LabellingProblem

PROBE = "probe"
ARCHITECTURES = {  # paper 4's networks, by name and kind of task: the class in learners.lockstep
    ("aoe", "classification"): "AverageNetwork",
    ("cnn", "classification"): "TextConvolution",
    ("lstm", "classification"): "BiLSTM",
    ("cnn", "images"): "ImageConvolution",
    ("tagger", "tagging"): "Tagger",
}
JUDGES = (PROBE, *dict.fromkeys(name for name, _ in ARCHITECTURES))


def make_judge(name: str, problem: LabellingProblem, *, seed: int = 0, progress: Progress = no_progress) -> Judge:
    """Make a judge; the seed is that of its trainings (the probe has none)."""
    if name == PROBE:
        from bursar.oracle.probe import ProbeJudge

        return ProbeJudge.of(problem, progress=progress)
    from bursar.oracle.network import NetworkJudge

    return NetworkJudge(problem, known_judge(name), seed=seed)


def known_judge(name: str) -> str:
    """Return the name if there is such a judge."""
    if name not in JUDGES:
        raise ConfigError(f"there is no judge {name!r}", fix=f"use {', '.join(JUDGES)}")
    return name


def judges_for(corpus: Corpus) -> dict[str, list[str]]:
    """The judges that support each task of a corpus; only classification and tagging have any."""
    return {name: [judge for judge in JUDGES if _fits(judge, task, corpus)] for name, task in corpus.schema.items()}


def check_fit(judge: str, corpus: Corpus) -> None:
    """Refuse a judge that does not support all tasks of a corpus, and name those that do."""
    fitting = judges_for(corpus)
    unfit = [name for name, judges in fitting.items() if judge not in judges]
    if unfit:
        of_all = [name for name in JUDGES if all(name in judges for judges in fitting.values())]
        tasks = ", ".join(f"{name} ({task.kind})" for name, task in corpus.schema.items())
        items = "texts" if corpus.pairs is None else "pairs of texts"
        if corpus.images is not None:
            items = f"images of {' × '.join(map(str, corpus.images.shape[1:]))}"
        raise ConfigError(
            f"the judge {judge!r} cannot judge {', '.join(unfit)}: the tasks are {tasks}, of {items}",
            fix=f"choose a judge that fits all of them: {', '.join(of_all)}" if of_all else "choose other tasks",
        )


def _fits(judge: str, task: Task, corpus: Corpus) -> bool:
    """The probe fits classification and tagging; networks read single texts, or images of one size."""
    if judge == PROBE:
        return isinstance(task, (Classification, Tagging))
    if corpus.pairs is not None:
        return False
    if corpus.images is None:
        return (judge, task.kind) in ARCHITECTURES
    from bursar.learners.lockstep.convolution import SIDE

    sized = corpus.images.shape[1:] == (SIDE, SIDE)
    return sized and isinstance(task, Classification) and (judge, "images") in ARCHITECTURES
