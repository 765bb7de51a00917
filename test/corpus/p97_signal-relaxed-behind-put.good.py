"""The repaired twin of: A put and then a relaxed signal: the data may be overtaken.

From: nvshmem put then atomic without fence
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, n], s: i64[Signal, 1], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    put(x, box, nxt)
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


K = k.specialize(n=64)
