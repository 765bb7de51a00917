"""The own part is added before the loop and in it.

From: postcondition: double count
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    total = x[:]
    for p in range(size()):
        total += x.peer(p)[:]
    y[:] = total
    barrier()

K = k.specialize(n=64)
RANKS = 3
