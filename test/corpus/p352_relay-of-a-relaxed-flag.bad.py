"""A relay passes a flag on with fences on both sides; bad: the relay has none.

From: WRC over three ranks
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    if rank() == 0:
        box.peer(2)[:] = x[:]
        signal(s[0], 1)
    if rank() == 1:
        wait_signal(s[0], ge=epoch(), order="relaxed")
        signal(s[1], 2, order="relaxed")
    if rank() == 2:
        wait_signal(s[1], ge=epoch())
        y[:] = box[:]
    barrier()


K = k
RANKS = 3
