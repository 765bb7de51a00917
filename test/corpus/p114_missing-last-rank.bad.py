"""The loop ends one rank early in teams of 3.

From: postcondition: missing rank
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    total = zeros(n)
    for p in range(size() - 1):
        total += x.peer(p)[:]
    y[:] = total
    barrier()

K = k.specialize(n=64)
RANKS = 3
