"""Encoders in Hugging Face's layout: BERT over word-pieces laid end to end, without padding, or any other.

BERT reads the weights of any model of type ``bert``. The arithmetic is that of transformers' ``BertModel`` (a test
compares them). Two things differ: a batch is one long row of real pieces, and the layers can be run in two parts, so
that frozen ones run only once. Any other encoder is run by the transformers library.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

from bursar.errors import LearnerError
from bursar.learners.encoders.encoder import Layers, PieceBatch, PieceMaker, TextEncoder
from bursar.tasks.heads import Dropout, enough_rows

MARKS = {"start": "[CLS]", "end": "[SEP]", "unknown": "[UNK]"}
BLOCK = 64  # rows: bfloat16 products compile a kernel for every new number of rows, so they get a multiple of this


class BertLayer(nn.Module):
    """Self-attention and feed-forward, each followed by a residual connection and normalisation.

    With ``precision`` bfloat16, products with weights are computed in bfloat16; the weights themselves, attention
    (faster in float32 on a CPU), residuals and normalisations stay float32.
    """

    def __init__(self, width: int, inner: int, heads: int, epsilon: float, drop: float) -> None:
        super().__init__()
        self.heads, self.width = heads, width // heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.attended_dropout = Dropout(drop)
        self.attention_norm = nn.LayerNorm(width, eps=epsilon)
        self.inner = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, width)
        self.outer_dropout = Dropout(drop)
        self.output_norm = nn.LayerNorm(width, eps=epsilon)
        self.precision = torch.float32

    def attend(self, x: Tensor, runs: list[tuple[int, int]]) -> Tensor:
        """The layer up to its first dropout."""
        mixed = self._mix(self._product(self.query_key_value, x).float(), runs)
        return self._product(self.attended, mixed).float()

    def _product(self, weights: nn.Linear, x: Tensor) -> Tensor:
        to = self.precision
        return linear(x.to(to), weights.weight.to(to), weights.bias.to(to))

    def forward(self, x: Tensor, runs: list[tuple[int, int]], attended: Tensor | None = None) -> Tensor:
        attended = self.attend(x, runs) if attended is None else attended
        x = self.attention_norm(x + self.attended_dropout(attended))
        fed = self._product(self.outer, gelu(self._product(self.inner, x))).float()
        normed: Tensor = self.output_norm(x + self.outer_dropout(fed))
        return normed

    def _mix(self, qkv: Tensor, runs: list[tuple[int, int]]) -> Tensor:
        """Attention within each window, for all windows of one length at a time."""
        sizes = [pieces for _, pieces in runs]
        parts = []
        for (length, pieces), part in zip(runs, torch.split(qkv[: sum(sizes)], sizes), strict=True):
            q, k, v = part.view(-1, length, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
            attended = scaled_dot_product_attention(q, k, v)
            parts.append(attended.transpose(1, 2).reshape(pieces, -1))
        if (blank := len(qkv) - sum(sizes)) > 0:
            parts.append(qkv.new_zeros(blank, qkv.shape[1] // 3))
        return torch.cat(parts)


class BertEncoder(TextEncoder):
    """A BERT model for batches without padding."""

    pretrained = True

    def __init__(self, settings: dict[str, Any], pieces: PieceMaker) -> None:
        super().__init__()
        self.width, self.depth = int(settings["hidden_size"]), int(settings["num_hidden_layers"])
        self.pieces = pieces
        self.precision = torch.float32
        epsilon = float(settings.get("layer_norm_eps", 1e-12))
        drop = float(settings.get("hidden_dropout_prob", 0.1))
        self.word_embedding = nn.Embedding(int(settings["vocab_size"]), self.width)
        self.place_embedding = nn.Embedding(int(settings["max_position_embeddings"]), self.width)
        self.type_embedding = nn.Embedding(int(settings.get("type_vocab_size", 2)), self.width)
        self.embedding_norm = nn.LayerNorm(self.width, eps=epsilon)
        heads, inner = int(settings["num_attention_heads"]), int(settings["intermediate_size"])
        self.layers = nn.ModuleList(BertLayer(self.width, inner, heads, epsilon, drop) for _ in range(self.depth))

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> BertEncoder:
        """Load from a folder with config.json, model.safetensors and tokenizer.json."""
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        if settings.get("hidden_act", "gelu") != "gelu":
            raise LearnerError(f"{folder}: activation {settings['hidden_act']!r} is not supported")
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            weights = load_file(folder / "model.safetensors")
        except Exception as wrong:  # tokenizers raises nothing narrower for unreadable files
            raise LearnerError(f"{folder} cannot be loaded as an encoder: {wrong}") from None
        tokenizer.no_padding()
        tokenizer.no_truncation()
        marks = {name: tokenizer.token_to_id(mark) for name, mark in MARKS.items()}
        longest = int(settings["max_position_embeddings"])
        known = {name: int(mark or 0) for name, mark in marks.items()}
        maker = PieceMaker(tokenizer, longest=longest, mask=tokenizer.token_to_id("[MASK]"), **known)
        with torch.device("meta"):  # skips random initialisation of weights that are replaced below
            encoder = cls(settings, maker)
        try:
            encoder.load_state_dict(_renamed(weights, encoder.depth), assign=True)
        except (KeyError, RuntimeError) as wrong:
            raise LearnerError(f"{folder}: the weights do not fit config.json: {wrong}") from None
        return encoder

    def embed(self, batch: PieceBatch) -> Tensor:
        hidden: Tensor = self.embedding_norm(
            self.word_embedding(batch.ids) + self.type_embedding(batch.types) + self.place_embedding(batch.places)
        )
        return hidden

    def piece_embeddings(self) -> Tensor:
        return self.word_embedding.weight

    def run(self, hidden: Tensor, batch: PieceBatch, layers: Layers, begun: Tensor | None = None) -> Tensor:
        """Run some layers. An item's vectors are the same to the bit, whatever else is in the batch.

        Attention runs over windows of equal length, so nothing is masked. Very small batches get blank rows, because
        matrix products of few rows are computed in another order than those of many.
        """
        real = len(hidden)
        hidden = self._with_blank_rows(hidden)
        for layer in [self.layers[at] for at in layers] if isinstance(layers, range) else layers:
            hidden, begun = layer(hidden, batch.runs, begun), None
        return hidden[:real]

    def begin(self, hidden: Tensor, batch: PieceBatch, start: int) -> Tensor | None:
        if start == self.depth:
            return None
        layer = self.layers[start]
        assert isinstance(layer, BertLayer)
        return layer.attend(self._with_blank_rows(hidden), batch.runs)

    def _with_blank_rows(self, hidden: Tensor) -> Tensor:
        return enough_rows(hidden, 1 if self.precision == torch.float32 else BLOCK)

    def compute_in(self, precision: torch.dtype) -> None:
        self.precision = precision
        for layer in self.layers:
            assert isinstance(layer, BertLayer)
            layer.precision = precision

    def shorten(self, layers: int) -> None:
        self.layers, self.depth = self.layers[:layers], layers

    def copy_layers(self, start: int) -> nn.ModuleList:
        return deepcopy(self.layers[start:])

    def trainable(self, frozen: int) -> list[nn.Parameter]:
        return list(self.layers[frozen:].parameters())


def parameter_names(depth: int) -> Iterator[tuple[str, list[str]]]:
    """Our parameters with Hugging Face's: three for the projections of attention, which are one matrix here."""
    yield "word_embedding.weight", ["embeddings.word_embeddings.weight"]
    yield "place_embedding.weight", ["embeddings.position_embeddings.weight"]
    yield "type_embedding.weight", ["embeddings.token_type_embeddings.weight"]
    parts = {
        "query_key_value": [f"attention.self.{name}" for name in ("query", "key", "value")],
        "attended": ["attention.output.dense"],
        "attention_norm": ["attention.output.LayerNorm"],
        "inner": ["intermediate.dense"],
        "outer": ["output.dense"],
        "output_norm": ["output.LayerNorm"],
    }
    for kind in ("weight", "bias"):
        yield f"embedding_norm.{kind}", [f"embeddings.LayerNorm.{kind}"]
        for number in range(depth):
            for ours, theirs in parts.items():
                yield f"layers.{number}.{ours}.{kind}", [f"encoder.layer.{number}.{name}.{kind}" for name in theirs]


def _renamed(weights: dict[str, Tensor], depth: int) -> dict[str, Tensor]:
    """Rename Hugging Face's parameters to ours."""
    weights = {name.removeprefix("bert."): value for name, value in weights.items()}
    found = {ours: [weights[name] for name in theirs] for ours, theirs in parameter_names(depth)}
    return {ours: torch.cat(parts) if len(parts) > 1 else parts[0] for ours, parts in found.items()}


class HuggingFaceEncoder(TextEncoder):
    """A model of the transformers library. Its layers run as one, so none of them can be frozen separately."""

    pretrained = True

    def __init__(self, model: Any, pieces: PieceMaker) -> None:
        super().__init__()
        self.model, self.pieces = model, pieces
        _with_our_dropout(model)
        self.width = int(model.config.hidden_size)

    @classmethod
    def load(cls, name: str) -> HuggingFaceEncoder:
        """Load from a folder or, online, from the hub. Code that comes with a model is never run."""
        from transformers import AutoModel, AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                name, use_fast=True, add_prefix_space=True, trust_remote_code=False
            )
            model = AutoModel.from_pretrained(name, trust_remote_code=False, weights_only=True)
        except UnpicklingError:
            raise LearnerError(
                f"the encoder {name!r} cannot be loaded: its weights are a pickle with more than arrays",
                fix="use an encoder with the file model.safetensors",
            ) from None
        except (OSError, ValueError) as wrong:
            raise LearnerError(
                f"the encoder {name!r} cannot be loaded: {str(wrong).splitlines()[0]}",
                fix="name a folder with an encoder, or 'minilm' for the bundled one",
            ) from None
        start = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None or start is None or end is None:
            raise LearnerError(f"the encoder {name!r} has no fast tokeniser with start and end tokens")
        backend.no_padding()
        backend.no_truncation()
        longest = int(min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512)))
        unknown = tokenizer.unk_token_id if tokenizer.unk_token_id is not None else start
        mask = tokenizer.mask_token_id
        return cls(model, PieceMaker(backend, start=start, end=end, unknown=unknown, longest=longest, mask=mask))

    def embed(self, batch: PieceBatch) -> Tensor:
        """Run the whole model with padding; return the states of the real pieces, end to end."""
        lengths = torch.tensor(batch.windows)
        keep = torch.arange(int(lengths.max())) < lengths[:, None]
        ids = torch.zeros(keep.shape, dtype=torch.long)
        ids[keep] = batch.ids
        inputs = {"input_ids": ids, "attention_mask": keep.long()}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            types = torch.zeros_like(ids)
            types[keep] = batch.types
            inputs["token_type_ids"] = types
        hidden: Tensor = self.model(**inputs).last_hidden_state[keep]
        return hidden

    def piece_embeddings(self) -> Tensor:
        table: Tensor = self.model.get_input_embeddings().weight
        return table

    def trainable(self, frozen: int) -> list[nn.Parameter]:
        embeddings = {id(p) for p in self.model.get_input_embeddings().parameters()}
        return [p for p in self.model.parameters() if id(p) not in embeddings]


def _with_our_dropout(model: nn.Module) -> None:
    """Replace torch's dropout by one that can be seeded per pass."""
    for part in list(model.modules()):
        for name, child in list(part.named_children()):
            if type(child) is nn.Dropout:
                setattr(part, name, Dropout(child.p))
