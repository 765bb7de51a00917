"""The repaired twin of: Three buffers, one barrier in every third launch; bad: in every fourth.

From: barriers saved by buffers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 3, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    e = epoch()
    box.peer(nxt)[e % 3] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=e)
    y[:] = box[e % 3]
    if e % 3 == 0:
        barrier()


K = k
RANKS = 5
