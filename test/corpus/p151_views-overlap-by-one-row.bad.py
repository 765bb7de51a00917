"""Two views of one window overlap by a row: a peer's rows are written twice.

From: views of parts
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, 4, n], box: f32[Window, 8, n], s: i64[Signal, 1], y: f32[Array, 8, n]) -> None:
    nxt = (rank() + 1) % size()
    other = (rank() + 2) % size()
    for i in range(4):
        box.peer(nxt)[i] = x[i]
    for i in range(4):
        box.peer(other)[3 + i] = x[i]
    barrier()
    for i in range(8):
        y[i] = box[i]
    barrier()


K = k.specialize(n=64)
