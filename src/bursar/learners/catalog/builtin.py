"""The learners that come with the package."""

from __future__ import annotations

from bursar.learners.encoders import IMAGES, STATIC
from bursar.learners.learner import LEARNERS, PASSES, VECTORS, LazyLearner, Options

# Paper 4's small networks are trained as by its authors (errata 26): Adam at one rate, plain cross-entropy.
SMALL: Options = {
    "epochs": 100,
    "patience": 20,
    "evaluate_every": 1,
    "learning_rate": 1e-3,
    "head_learning_rate": 1e-3,
    "weight_decay": 0.0,
    "warmup": 0.0,
    "decay": False,
    "smoothing": 0.0,
    "dropout": 0.0,
    "tag_head": "linear",
}
WITHOUT_DROPOUT = (*STATIC, IMAGES)  # encoders that have no dropout


def neural_gives(options: Options) -> frozenset[str]:
    """Dropout passes, unless neither the encoder nor the heads have dropout."""
    drops = options.get("dropout") != 0 or str(options.get("encoder", "")).partition(":")[0] not in WITHOUT_DROPOUT
    return frozenset({PASSES, VECTORS} if drops else {VECTORS})


NEURAL = "bursar.learners.neural:NeuralLearner"
LEARNERS.add("transformer", LazyLearner(NEURAL, neural_gives))
for _name in WITHOUT_DROPOUT:
    LEARNERS.add(_name, LazyLearner(NEURAL, neural_gives, {**SMALL, "encoder": _name}))
LEARNERS.add("probe", LazyLearner("bursar.learners.probe:ProbeLearner", lambda options: frozenset({VECTORS})))
# Models that are objects of a Python program: a campaign's file can name them, and cannot hold them.
LEARNERS.add(
    "function", LazyLearner("bursar.learners.function:FunctionLearner", lambda options: frozenset()), listed=False
)
LEARNERS.add(
    "huggingface",
    LazyLearner("bursar.learners.classifiers:HuggingFaceLearner", lambda options: frozenset({VECTORS})),
    listed=False,
)
LEARNERS.add("scikit", LazyLearner("bursar.learners.scikit:ScikitLearner", lambda options: frozenset()))
