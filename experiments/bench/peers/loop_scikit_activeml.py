# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "scikit-activeml==1.0.1",
#   "sentence-transformers==6.2.0",
#   "torch==2.13.0",
#   "scikit-learn==1.9.1",
#   "numpy==2.4.6",
#   "pandas==2.3.3",
# ]
# ///
"""The job with scikit-activeml: logistic regression on sentence vectors, margin sampling."""

from loop import Given, main


def job(given: Given) -> float:
    """The accuracy on the test texts after the last round."""
    import numpy as np
    import pandas as pd
    from sentence_transformers import SentenceTransformer
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling
    from sklearn.linear_model import LogisticRegression

    pool, test = pd.read_csv(given.pool), pd.read_csv(given.test)
    classes = sorted(pool["label"].unique())
    gold = pool["label"].map(classes.index).to_numpy()
    encoder = SentenceTransformer(given.encoder, device="cpu")
    x, x_test = encoder.encode(pool["text"].tolist()), encoder.encode(test["text"].tolist())
    y = np.full(len(x), np.nan)
    y[list(given.start)] = gold[list(given.start)]
    model = SklearnClassifier(LogisticRegression(C=10, max_iter=1000), classes=range(len(classes)))
    strategy = UncertaintySampling(method="margin_sampling", random_state=given.seed)
    for _ in range(given.rounds):
        chosen = strategy.query(x, y, model, batch_size=given.per_round)
        y[chosen] = gold[chosen]
    return float(model.fit(x, y).score(x_test, test["label"].map(classes.index).to_numpy()))


if __name__ == "__main__":
    main(job)
