"""Tasks whose relatedness is known, in one corpus."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from bursar.simulation import assistant_corpus
from experiments.related import adjusted_mutual_information, related_corpus, unit_codes


def related(task, amis, items=200, seed=0):
    """A real task of the built-in corpus, and synthetic ones that share so much information with it."""
    train = assistant_corpus(1500, seed=seed).split("train")
    some = train.take(np.random.default_rng(seed).permutation(len(train))[:items])
    return related_corpus(some, task, tasks=len(amis) + 1, ami=list(amis), seed=seed)


def ranked(found, made):
    """Spearman's correlation of what synthetic tasks are found to be worth to the real one, with their relatedness."""
    return float(spearmanr(found.value[1:, 0], made.ami[1:])[0])


def ranked_pairs(found, made):
    """The same of all pairs of different tasks, by what their labels say of each other."""
    codes = [unit_codes(made.corpus, task) for task in made.corpus.schema.values()]
    shared = np.array([[adjusted_mutual_information(a, b) for b in codes] for a in codes])
    pairs = ~np.eye(len(codes), dtype=bool)
    return float(spearmanr(found.value[pairs], shared[pairs])[0])
