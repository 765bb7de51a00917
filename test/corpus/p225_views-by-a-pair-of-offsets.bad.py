"""Blocks write parts of rows that two offsets choose; the columns of two blocks overlap.

From: tiles of a matrix
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=2)
def k(x: f32[Array, 32], box: f32[Window, 8, 64], y: f32[Array, 8, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    for r in range(8):
        box.peer(nxt)[r, block_id() * 16 : block_id() * 16 + 32] = x[:]
    barrier(extent="grid")
    if block_id() == 0:
        for r in range(8):
            y[r] = box[r]
    barrier(extent="grid")


K = k
