"""Your model, your confidences: which items to label for which tasks, and a proof that no selection is better."""

import numpy as np

from bursar import Candidates, make_strategy
from bursar.tasks import Prices

random = np.random.default_rng(0)
ids = [f"u{n:04d}" for n in range(2000)]
confidence = random.beta(4, 2, size=(2000, 2))  # (items, tasks), from your model
reading = random.integers(3, 20, 2000)  # the price of reading an item, paid once for both tasks
labels = np.column_stack([np.full(2000, 3), random.integers(0, 5, 2000)])  # the price of a label, by task
pool = Candidates(ids, confidence, Prices(("intent", "slots"), reading, labels))

for name in ("UDJS", "UDJS+RATIO_AL", "UDJS+BLP_AL"):  # greedy, by ratio, exact
    chosen = make_strategy(name).select(pool, budget=1000)
    proof = chosen.certificate
    print(f"{name:14} {proof.objective:7.2f} of at most {proof.bound:7.2f}", chosen.total, proof.optimal)
