"""TMA loads from a window what a peer has stored plainly; bad: no async fence behind the wait.

From: TMA and plain stores
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    t = scratch(f32, 64, space="shared")
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    c = bulk_copy(box.local()[0:64], t)
    bulk_wait(c)
    y[:] = t[:]
    barrier()


K = k
RANKS = 2
