"""The repaired twin of: Halving works for powers of two: at 6 ranks a partner is missing.

From: team size 6
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=1)
def k(x: f32[Window, n], w: f32[Window, n], s: i64[Signal, 3], y: f32[Array, n]) -> None:
    w[:] = x[:]
    barrier()
    y[:] = w.peer((rank() + 3) % size())[:]
    barrier()

K = k.specialize(n=64)
RANKS = 6
