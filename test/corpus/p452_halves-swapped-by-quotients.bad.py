"""Launches work in groups of three: the group's parity picks the buffers; a barrier ends each group; bad: it ends every eighth launch only.

From: graphs of several steps
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 6, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    e = epoch() - 1
    at = e // 3 % 2 * 3 + e % 3
    box.peer(nxt)[at] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=e + 1)
    y[:] = box[at]
    if e % 8 == 2:
        barrier()


K = k
RANKS = 8
