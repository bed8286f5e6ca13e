# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "small-text==1.4.1",
#   "torch==2.13.0",
#   "transformers==4.57.6",
#   "tokenizers==0.22.2",
#   "huggingface-hub==0.36.2",
#   "safetensors==0.8.0",
#   "numpy==2.4.6",
#   "scipy==1.17.1",
#   "scikit-learn==1.9.1",
#   "pandas==2.3.3",
#   "dill==0.4.1",
# ]
# ///
"""The job with small-text: its classifier fine-tunes the encoder, breaking ties chooses.

Its default learning rate does worse here, and it wants a validation set: it gets one labelled text, and trains to the
end.
"""

from loop import Given, main


def job(given: Given) -> float:
    """The accuracy on the test texts after the last round."""
    import numpy as np
    import pandas as pd
    import torch
    from small_text import (
        BreakingTies,
        PoolBasedActiveLearner,
        TransformerBasedClassificationFactory,
        TransformerModelArguments,
        TransformersDataset,
    )
    from transformers import AutoTokenizer

    torch.manual_seed(given.seed)
    np.random.seed(given.seed)  # noqa: NPY002 (small-text draws from this stream)
    pool, test = pd.read_csv(given.pool), pd.read_csv(given.test)
    classes = sorted(pool["label"].unique())
    gold = pool["label"].map(classes.index).to_numpy()
    truth = test["label"].map(classes.index).to_numpy()
    tokenizer = AutoTokenizer.from_pretrained(given.encoder)
    numbers = np.arange(len(classes))
    texts = TransformersDataset.from_arrays(
        pool["text"].tolist(), gold, tokenizer, target_labels=numbers, max_length=40
    )
    held_out = TransformersDataset.from_arrays(
        test["text"].tolist(), truth, tokenizer, target_labels=numbers, max_length=40
    )
    factory = TransformerBasedClassificationFactory(
        TransformerModelArguments(given.encoder),
        len(classes),
        kwargs={"device": "cpu", "num_epochs": 10, "mini_batch_size": 16, "lr": 3e-4},
    )
    to_the_end = {"early_stopping": "none", "model_selection": "none"}
    learner = PoolBasedActiveLearner(factory, BreakingTies(), texts, fit_kwargs=to_the_end)
    start, first = np.array(given.start), np.array([0])
    learner.initialize_data(start, gold[start], indices_validation=first)
    for _ in range(given.rounds):
        chosen = learner.query(num_samples=given.per_round)
        learner.update(gold[chosen], indices_validation=first)
    return float((learner.classifier.predict(held_out) == truth).mean())


if __name__ == "__main__":
    main(job)
