"""The sum of seven ranks is divided by 8.

From: postcondition: scale
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
    y[:] = total * 0.125
    barrier()

K = k.specialize(n=64)
RANKS = 7
