"""The largest is taken of partial sums.

From: postcondition: mixed reductions
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    total = x.peer(0)[:]
    for p in range(1, size()):
        total = maximum(total + x.peer(p)[:], x.peer(p)[:])
    y[:] = total
    barrier()

K = k.specialize(n=64)
RANKS = 5
