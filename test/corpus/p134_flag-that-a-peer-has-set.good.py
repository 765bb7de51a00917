"""The repaired twin of: A rank takes its flags for what it stored, but a peer has set one.

From: barrier decided by memory
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=1)
def k(flags: i64[Window, 4], x: f32[Array, 8, n], y: f32[Array, 8, n]) -> None:
    flags[:] = 3
    barrier()
    if flags[2] != 3:
        barrier()
    y[0] = x[0]

K = k.specialize(n=64)
RANKS = 3
