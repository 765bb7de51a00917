"""The square of the launch by 4 is 0 or 1: two buffers; bad: two launches of the same remainder by 3 share one.

From: hashes of the launch number
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 4, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    b = epoch() * epoch() % 3
    box.peer(other)[b] = x[:]
    signal(s[0], other)
    wait_signal(s[0], ge=epoch())
    y[:] = box[b]


K = k
RANKS = 2
