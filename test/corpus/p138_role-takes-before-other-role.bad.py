"""The role that takes does not wait for the role that fetches in its own rank.

From: warp-specialized pipelines
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel
def k(x: f32[Window, n], stage: f32[Array, n], s: i64[Signal, 2], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    with role("fetch", 0, 1):
        barrier()
        stage[:] = x.peer(nxt)[:]
        signal(s[0], rank())
        wait_signal(s[1], ge=epoch())
        barrier()
    with role("take", 1, 2):
        y[:] = stage[:] * 2.0
        signal(s[1], rank())
        wait_signal(s[0], ge=epoch())


K = k.specialize(n=64)
