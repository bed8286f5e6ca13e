"""The corpus is neither too easy nor too hard for a plain model: there is something to learn at every budget."""

import numpy as np
import pytest


def test_a_plain_intent_model_climbs_from_about_60_to_about_92_percent(default_corpus):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    linear = pytest.importorskip("sklearn.linear_model")
    threads = pytest.importorskip("threadpoolctl")
    texts = np.array(default_corpus.texts.strings.tolist(), dtype=object)
    intents = default_corpus.labels["intent"].rows.values[:, 0]
    train = np.random.default_rng(0).permutation(default_corpus.in_split("train"))
    test = default_corpus.in_split("test")[:1000]

    def accuracy(budget: int) -> float:
        vectors = text.TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\S+")
        model = linear.LogisticRegression(C=20, max_iter=60, tol=1e-2)
        with threads.threadpool_limits(1):  # on so small a problem more threads only wait for each other
            model.fit(vectors.fit_transform(texts[train[:budget]]), intents[train[:budget]])
        return float(model.score(vectors.transform(texts[test]), intents[test]))

    assert 0.50 < accuracy(100) < 0.70
    assert 0.75 < accuracy(500) < 0.87
    assert 0.87 < accuracy(2000) < 0.95
