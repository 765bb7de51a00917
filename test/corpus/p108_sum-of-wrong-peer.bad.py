"""The last peer is added twice, the first one never.

From: postcondition: wrong peer
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
        total += x.peer(maximum(p, 1))[:]
    y[:] = total
    barrier()

K = k.specialize(n=64)
RANKS = 5
