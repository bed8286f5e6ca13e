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
#   "dill==0.4.1",
# ]
# ///
"""One round of active learning with small-text: train on the labelled sentences, score the pool, then the test set.

Reads JSON lines with ``part`` (train, pool or test), ``text`` and ``label`` (a number) from standard input; prints one
JSON line with the seconds of training and of scoring and the accuracy on the test sentences.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any


def main() -> None:
    """What small-text needs of time, given every advantage that its interface offers.

    Texts are tokenised before the clock runs, and padded to the longest of them rather than to 512 pieces. All
    labelled sentences are trained on: the validation set that it insists on is one of them.
    """
    options = _options()

    import numpy as np
    import torch
    from small_text import (  # type: ignore[import-not-found]
        TransformerBasedClassification,
        TransformerModelArguments,
        TransformersDataset,
    )
    from transformers import AutoTokenizer

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)  # noqa: NPY002 - small-text draws from it
    lines = [json.loads(line) for line in sys.stdin]
    classes = 1 + max(line["label"] for line in lines)
    tokenizer = AutoTokenizer.from_pretrained(options.encoder)
    longest = max(len(ids) for ids in tokenizer([line["text"] for line in lines])["input_ids"])

    def part(name: str) -> Any:
        chosen = [line for line in lines if line["part"] == name]
        labels = np.array([line["label"] for line in chosen])
        texts = [line["text"] for line in chosen]
        return TransformersDataset.from_arrays(texts, labels, tokenizer, np.arange(classes), max_length=longest)

    train, pool, test = part("train"), part("pool"), part("test")
    model = TransformerBasedClassification(
        TransformerModelArguments(options.encoder),
        classes,
        num_epochs=options.epochs,
        mini_batch_size=options.batch_size,
        lr=options.learning_rate,
        device="cpu",
    )
    start, busy = time.perf_counter(), time.process_time()
    model.fit(train, validation_set=train[:1], early_stopping="none", model_selection="none")
    trained = time.perf_counter()
    model.predict_proba(pool)
    scored, busy = time.perf_counter(), time.process_time() - busy
    found = {
        "training_seconds": trained - start,
        "scoring_seconds": scored - trained,
        "processor_seconds": busy,
        "accuracy": float((model.predict(test) == test.y).mean()),
    }
    sys.stdout.write(json.dumps(found) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
