"""The repaired twin of: Launches 5, 10, 15 leave the closing barrier out.

From: launches: period 5
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, n], s: i64[Signal, 1], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    if epoch() % 5 != 0:
        barrier()
    if epoch() % 5 == 0:
        barrier()

K = k.specialize(n=64)
RANKS = 7
