"""Halving works for powers of two: at 6 ranks a partner is missing.

From: team size 6
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=1)
def k(x: f32[Window, n], w: f32[Window, n], s: i64[Signal, 3], y: f32[Array, n]) -> None:
    w[:] = x[:]
    for k in range(2):
        partner = rank() ^ (1 << k)
        signal(s[k], minimum(partner, size() - 1))
        wait_signal(s[k], ge=epoch())
    y[:] = w.peer(minimum(rank() ^ 2, size() - 1))[:]
    barrier()

K = k.specialize(n=64)
RANKS = 6
