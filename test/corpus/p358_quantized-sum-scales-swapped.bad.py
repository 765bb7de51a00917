"""Rows travel with scales; bad: the scale of the receiver is used.

From: fp8 all-gather with scales
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], scale: f32[Array, 1], bx: f32[Window, 64], bs: f32[Window, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    bx.peer(nxt)[:] = x[:]
    bs.peer(nxt)[0] = scale[0]
    barrier()
    y[:] = bx[:] * scale[0]
    barrier()


K = k
RANKS = 2
