"""A small transformer, written as any other, and the plans that spread it over ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel


class Block(nn.Module):
    """Attention and a feed-forward network, each after a norm and before a residual addition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head = width // heads
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.gate = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        # Where ranks have a part of the heads, the layers' results are that much narrower.
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        result: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return result

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        y = self.second(x)
        result: torch.Tensor = x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))
        return result


class Transformer(nn.Module):
    """Tokens to the logits of the next one."""

    def __init__(self, tokens: int = 48, width: int = 32, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        result: torch.Tensor = self.head(self.norm(x))
        return result


#: What parallelize_module does with a Block: heads and hidden columns are shared out, sums of parts go to every rank.
PLAN: dict[str, Any] = {
    **{name: ColwiseParallel() for name in ("query", "key", "value", "up", "gate")},
    **{name: RowwiseParallel() for name in ("out", "down")},
}

#: With the norms and the sums between blocks shared out along the sequence, as training has it: a gather before what
#: PLAN shares out, a reduce-scatter after it.
SEQUENCE_PLAN: dict[str, Any] = {
    **{name: SequenceParallel() for name in ("first", "second")},
    **{name: ColwiseParallel(input_layouts=Shard(1)) for name in ("query", "key", "value", "up", "gate")},
    **{name: RowwiseParallel(output_layouts=Shard(1)) for name in ("out", "down")},
}

#: The rest of the model for SEQUENCE_PLAN.
ENDS_PLAN: dict[str, Any] = {
    "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
}
