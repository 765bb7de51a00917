"""Everybody hands on with stride 2, which reaches all of five ranks; bad: with stride 5, to itself, and the cell is that of the sender's left neighbor.

From: ring strides
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 5], y: f32[Array, 64]) -> None:
    to = (rank() + 5) % size()
    of = (rank() + size() - 2) % size()
    box.peer(to)[:] = x[:]
    signal(s[rank()], to)
    wait_signal(s[of], ge=epoch())
    y[:] = box[:]
    barrier()


K = k
RANKS = 5
