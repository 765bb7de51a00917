"""The repaired twin of: Two kernels use one barrier cell; the second starts from the wrong base.

From: signals shared by kernels
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def first(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=2 * epoch() - 1)
    y[:] = box[:]
    barrier()


@commsir.kernel(blocks=1)
def second(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], z: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:] * 2.0
    signal(s[0], nxt)
    wait_signal(s[0], ge=2 * epoch())
    z[:] = box[:]
    barrier()


ORDER = [first, second]
