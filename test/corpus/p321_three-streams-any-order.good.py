"""The repaired twin of: Two kernels that may run in any order share one box; bad: one of them does not end with a barrier.

From: streams
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def a(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    box.peer(nxt)[:] = x[:]
    barrier()
    y[:] = box[:]
    barrier()


@commsir.kernel(blocks=1)
def b(x: f32[Array, 64], box: f32[Window, 64], z: f32[Array, 64]) -> None:
    prv = (rank() + size() - 1) % size()
    box.peer(prv)[:] = x[:]
    barrier()
    z[:] = box[:]
    barrier()


ORDER = [a, b]
