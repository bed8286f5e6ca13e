"""Any encoder of the transformers library, by folder or by name on the hub."""

from __future__ import annotations

from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from bursar.errors import LearnerError
from bursar.learners.encoders.encoder import PieceBatch, PieceMaker, TextEncoder
from bursar.tasks.heads import Dropout


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
