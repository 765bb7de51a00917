"""The repaired twin of: A ticket lock: a rank takes a ticket from a window of rank 0 by load and store; bad: nothing makes the two one step.

From: ticket locks
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], ticket: i64[Window, 1], acc: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    if rank() > 0:
        wait_signal(s[0], ge=epoch())
    acc.peer(0)[:] = acc.peer(0)[:] + x[:]
    if rank() + 1 < size():
        signal(s[0], rank() + 1)
    barrier()
    y[:] = acc.peer(0)[:]
    barrier()


K = k
RANKS = 2
