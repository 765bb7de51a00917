"""A rank stores its row into the peer's box at a place from data; the peer copies the box; bad: the place of the peer is used.

From: dispatch by slots
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(slot: i64[Array, 1], slots: i64[Window, 1], x: f32[Array, 64], box: f32[Window, 3, 64], y: f32[Array, 3, 64]) -> None:
    nxt = (rank() + 1) % size()
    slots.peer(nxt)[0] = slot[0]
    for i in range(3):
        box[i] = zeros(64)
    barrier()
    at = minimum(maximum(slots[0], 0), 2)
    box.peer(nxt)[at] = x[:]
    barrier()
    for i in range(3):
        y[i] = box[i]
    barrier()


K = k
RANKS = 2
