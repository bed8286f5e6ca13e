# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "modAL-python==0.4.2.1",
#   "sentence-transformers==6.2.0",
#   "torch==2.13.0",
#   "scikit-learn==1.5.2",
#   "numpy==2.2.6",
#   "scipy==1.14.1",
#   "pandas==2.3.3",
# ]
# ///
"""The job with modAL: logistic regression on sentence vectors, margin sampling.

Its last release stops with scikit-learn 1.6 and later.
"""

from loop import Given, main


def job(given: Given) -> float:
    """The accuracy on the test texts after the last round."""
    import numpy as np
    import pandas as pd
    from modAL.models import ActiveLearner
    from modAL.uncertainty import margin_sampling
    from sentence_transformers import SentenceTransformer
    from sklearn.linear_model import LogisticRegression

    pool, test = pd.read_csv(given.pool), pd.read_csv(given.test)
    gold, start = pool["label"].to_numpy(), np.array(given.start)
    encoder = SentenceTransformer(given.encoder, device="cpu")
    x, x_test = encoder.encode(pool["text"].tolist()), encoder.encode(test["text"].tolist())
    left = np.delete(np.arange(len(x)), start)
    learner = ActiveLearner(LogisticRegression(C=10, max_iter=1000), margin_sampling, x[start], gold[start])
    for _ in range(given.rounds):
        chosen, _ = learner.query(x[left], n_instances=given.per_round)
        learner.teach(x[left[chosen]], gold[left[chosen]])
        left = np.delete(left, chosen)
    return float(learner.score(x_test, test["label"].to_numpy()))


if __name__ == "__main__":
    main(job)
