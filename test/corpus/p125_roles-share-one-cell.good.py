"""The repaired twin of: Two roles count on one cell: either may be met by the other's signals.

From: roles: one cell for two
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel
def k(x: f32[Array, n], a: f32[Window, n], b: f32[Window, n], s: i64[Signal, 2], y: f32[Array, n], z: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    with role("left", 0, 1):
        a.peer(nxt)[:] = x[:]
        signal(s[0], nxt)
        wait_signal(s[0], ge=epoch())
        y[:] = a[:]
        barrier()
    with role("right", 1, 2):
        b.peer(nxt)[:] = x[:] * 2.0
        signal(s[1], nxt)
        wait_signal(s[1], ge=epoch())
        z[:] = b[:]
        barrier()

K = k.specialize(n=64)
RANKS = 3
