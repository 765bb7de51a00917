"""NCCL's idiom: read the base, barrier, wait for the base + n; bad: the base is read behind the barrier.

From: NCCL device API: signals that are not reset
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, 4, n], s: i64[Signal, 1], y: f32[Array, 4, n]) -> None:
    barrier()
    base = read_signal(s[0])
    for p in range(4):
        box.peer(p)[rank()] = x[:]
        signal(s[0], p)
    wait_signal(s[0], ge=base + 4)
    for p in range(4):
        y[p] = box[p]
    barrier()


K = k.specialize(n=64)
