"""A counted put's counter is set back before the wait has seen it.

From: counter reuse
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], box: f32[Window, 64], c: i64[Counter, 1], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    put(x.local(), box, nxt, counted=c[0], gin="")
    signal(s[0], nxt, gin="")
    reset_counter(c[0])
    wait_counter(c[0], ge=1)
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
