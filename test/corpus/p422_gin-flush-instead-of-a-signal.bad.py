"""A put by the adapter and a flush; then a plain signal; the flush says only that the source was read.

From: quiet and fence
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    put(x.local(), box, nxt, gin="")
    flush(gin="")
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    flush(gin="")
    barrier()


K = k
RANKS = 2
