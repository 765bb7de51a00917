"""A ring of five passes rows on for three steps: the farthest row never comes.

From: ring all-gather
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], ring: f32[Window, 5, n], s: i64[Signal, 5], y: f32[Array, 5, n]) -> None:
    nxt = (rank() + 1) % size()
    ring[rank()] = x[:]
    barrier()
    for step in range(3):
        c = (rank() + size() - step) % size()
        ring.peer(nxt)[c] = ring[c]
        signal(s[step], nxt)
        wait_signal(s[step], ge=epoch())
    barrier()
    for i in range(5):
        y[i] = ring[i]
    barrier()


K = k.specialize(n=64)
RANKS = 5
