"""Tokens go to box[fill[e]]: a counter for each expert on every rank, but rows for all ranks alike.

From: DeepEP: slot counter per rank
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(expert: i64[Array, 4], x: f32[Array, 4, n], box: f32[Window, 16, n], y: f32[Array, 16, n]) -> None:
    barrier()
    for t in range(4):
        e = minimum(maximum(expert[t], 0), 3)
        box.peer(e)[t] = x[t]
    barrier()
    for i in range(16):
        y[i] = box[i]
    barrier()


K = k.specialize(n=64)
