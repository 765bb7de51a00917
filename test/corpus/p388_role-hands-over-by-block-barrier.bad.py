"""One role fills the window, the other sends it on; bad: they meet at a barrier of equal blocks, which does not join two blocks of a rank.

From: roles and extents
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(x: f32[Array, 64], w: f32[Window, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    with role("fill", 0, 1):
        w[:] = x[:] * 2.0
    barrier()
    with role("send", 1, 2):
        box.peer(nxt)[:] = w[:]
    barrier(extent="grid")
    with role("take", 0, 1):
        y[:] = box[:]
    barrier(extent="grid")


K = k
RANKS = 2
