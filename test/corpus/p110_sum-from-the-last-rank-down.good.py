"""The repaired twin of: Odd ranks add from the last rank down: other bits.

From: postcondition: order of float sums
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    total = zeros(n)
    for p in range(size()):
        total += x.peer(p)[:]
    y[:] = total
    barrier()

K = k.specialize(n=64)
RANKS = 6
