"""Puts to two peers, but a signal to one, which tells the other by a plain signal.

From: fan-out by the adapter
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], box: f32[Window, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    if rank() == 0:
        put(x.local(), box, 1, gin="")
        put(x.local(), box, 2, gin="")
        signal(s[0], 1, gin="")
        flush(gin="")
    if rank() == 1:
        wait_signal(s[0], ge=epoch())
        signal(s[1], 2)
        y[:] = box[:]
    if rank() == 2:
        wait_signal(s[1], ge=epoch())
        y[:] = box[:]
    barrier()


K = k
RANKS = 3
