# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "baal==2.1.0",
#   "torch==2.13.0",
#   "transformers==4.57.6",
#   "scikit-learn==1.9.1",
#   "numpy==2.4.6",
#   "pandas==2.3.3",
# ]
# ///
"""The job with Baal: the encoder is fine-tuned, BALD by dropout chooses, ten passes."""

from loop import Given, main


def job(given: Given) -> float:
    """The accuracy on the test texts after the last round."""
    from copy import deepcopy

    import numpy as np
    import pandas as pd
    import torch
    from baal.active import ActiveLearningDataset
    from baal.active.active_loop import ActiveLearningLoop
    from baal.active.heuristics import BALD
    from baal.bayesian.dropout import patch_module
    from baal.modelwrapper import ModelWrapper, TrainingArgs
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(given.seed)
    pool, test = pd.read_csv(given.pool), pd.read_csv(given.test)
    classes = sorted(pool["label"].unique())
    tokenizer = AutoTokenizer.from_pretrained(given.encoder)

    def collate(rows):
        texts, labels = zip(*rows, strict=True)
        return dict(tokenizer(list(texts), padding=True, return_tensors="pt")), torch.tensor(labels)

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = AutoModelForSequenceClassification.from_pretrained(given.encoder, num_labels=len(classes))

        def forward(self, batch):
            return self.encoder(**batch).logits

    texts = list(zip(pool["text"], pool["label"].map(classes.index), strict=True))
    held_out = list(zip(test["text"], test["label"].map(classes.index), strict=True))
    dataset = ActiveLearningDataset(texts)
    dataset.label(list(given.start))
    model = patch_module(Classifier())
    args = TrainingArgs(
        criterion=torch.nn.CrossEntropyLoss(),
        batch_size=16,
        epoch=10,
        use_cuda=False,
        workers=0,
        collate_fn=collate,
        replicate_in_memory=False,
    )
    wrapper = ModelWrapper(model, args)
    loop = ActiveLearningLoop(dataset, wrapper.predict_on_dataset, BALD(), given.per_round, iterations=10)
    pretrained = deepcopy(model.state_dict())
    for number in range(given.rounds + 1):
        wrapper.load_state_dict(pretrained)
        args.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        wrapper.train_on_dataset(dataset)
        if number < given.rounds:
            loop.step()
    predicted = wrapper.predict_on_dataset(held_out, iterations=10).mean(axis=-1).argmax(axis=1)
    return float((predicted == np.array([label for _, label in held_out])).mean())


if __name__ == "__main__":
    main(job)
