"""The repaired twin of: A put of each half of a tile, and a flag that is set between them with the launch's number.

From: flags instead of counts
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 128], box: f32[Window, 128], s: i64[Signal, 1], y: f32[Array, 128]) -> None:
    nxt = (rank() + 1) % size()
    put(x[0:64], box[0:64], nxt)
    put(x[64:128], box[64:128], nxt)
    signal(s[0], nxt, set=epoch())
    wait_signal(s[0], eq=epoch())
    y[:] = box[:]
    barrier()


K = k
