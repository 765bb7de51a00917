"""A block takes the stripe of the next block.

From: postcondition: wrong tile offset
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=4)
def k(x: f32[Window, 4, n], y: f32[Array, 4, n]) -> None:
    barrier()
    total = zeros(n)
    for p in range(size()):
        total += x.peer(p)[(block_id() + 1) % 4]
    y[block_id()] = total
    barrier()

K = k.specialize(n=64)
RANKS = 3
