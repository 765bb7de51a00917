"""Blocks sum stripes that overlap by a row, while the owner still writes.

From: blocks: overlap
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=3)
def k(x: f32[Array, 6, n], w: f32[Window, 6, n], y: f32[Array, 6, n]) -> None:
    w[block_id() * 2] = x[block_id() * 2]
    w[block_id() * 2 + 1] = x[block_id() * 2 + 1]
    barrier()
    y[block_id() * 2] = w.peer((rank() + 1) % size())[minimum(block_id() * 2 + 2, 5)]
    barrier()

K = k.specialize(n=64)
RANKS = 3
