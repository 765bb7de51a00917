"""The repaired twin of: What was put under one condition is flushed under another, and then overwritten.

From: conditional quiet
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(go: i64[Array, 2], x: f32[Array, n], stage: f32[Window, n], box: f32[Window, n], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    stage[:] = x[:]
    if go[0] > 0:
        put(stage, box, nxt)
    flush()
    stage[:] = x[:] * 2.0
    barrier()
    y[:] = box[:]
    barrier()


K = k.specialize(n=64)
