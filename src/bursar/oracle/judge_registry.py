"""Judges that a search can be made with, by name, and which tasks each of them fits. Nothing is loaded to tell."""

from __future__ import annotations

from bursar.corpus import Corpus
from bursar.errors import ConfigError
from bursar.tasks import Classification, Tagging, Task

PROBE = "probe"
ARCHITECTURES = {  # paper 4's networks, by name and kind of task; the name of the class in lockstep
    ("aoe", "classification"): "AverageNetwork",
    ("cnn", "classification"): "TextConvolution",
    ("lstm", "classification"): "BiLSTM",
    ("cnn", "images"): "ImageConvolution",
    ("tagger", "tagging"): "Tagger",
}
SEARCHERS = (PROBE, *dict.fromkeys(name for name, _ in ARCHITECTURES))


def known_searcher(name: str) -> str:
    """The name, if there is such a judge.

    >>> known_searcher("encoder")
    Traceback (most recent call last):
        ...
    bursar.errors.ConfigError: there is no judge 'encoder' to search with. Fix: use probe, aoe, cnn, lstm, tagger
    """
    if name not in SEARCHERS:
        raise ConfigError(f"there is no judge {name!r} to search with", fix=f"use {', '.join(SEARCHERS)}")
    return name


def searchers_for(corpus: Corpus) -> dict[str, list[str]]:
    """For each task of a corpus the judges that fit it; none but for classes and tags."""
    return {name: [judge for judge in SEARCHERS if _fits(judge, task, corpus)] for name, task in corpus.schema.items()}


def check_fit(judge: str, corpus: Corpus) -> None:
    """Refuse a judge that does not fit all tasks of a corpus, and say who does."""
    fitting = searchers_for(corpus)
    unfit = [name for name, judges in fitting.items() if judge not in judges]
    if unfit:
        of_all = [name for name in SEARCHERS if all(name in judges for judges in fitting.values())]
        tasks = ", ".join(f"{name} ({task.kind})" for name, task in corpus.schema.items())
        raise ConfigError(
            f"the judge {judge!r} cannot judge {', '.join(unfit)}: the tasks are {tasks}, of {_items(corpus)}",
            fix=f"choose a judge that fits all of them: {', '.join(of_all)}" if of_all else "choose other tasks",
        )


def _fits(judge: str, task: Task, corpus: Corpus) -> bool:
    """The probe fits whatever has classes or tags; networks read single texts, or images of one size."""
    if judge == PROBE:
        return isinstance(task, (Classification, Tagging))
    if corpus.pairs is not None:
        return False
    if corpus.images is None:
        return (judge, task.kind) in ARCHITECTURES
    from bursar.learners.lockstep.image_convolution import SIDE

    sized = corpus.images.shape[1:] == (SIDE, SIDE)
    return sized and isinstance(task, Classification) and (judge, "images") in ARCHITECTURES


def _items(corpus: Corpus) -> str:
    if corpus.images is not None:
        return f"images of {' × '.join(map(str, corpus.images.shape[1:]))}"
    return "texts" if corpus.pairs is None else "pairs of texts"
