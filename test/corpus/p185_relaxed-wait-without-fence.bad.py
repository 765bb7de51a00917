"""A wait without order, and a fence behind it; without the fence the data are read too early.

From: polls that are relaxed
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch(), order="relaxed")
    fence("release")
    y[:] = box[:]
    barrier()


K = k
