"""A TMA store to a peer, then a signal; bad: the copy is not waited for before the signal.

From: warp-specialized stores
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    t = scratch(f32, 64, space="shared")
    t[:] = x[:]
    fence(proxy="async")
    c = bulk_copy(t, box.peer(nxt)[0:64])
    signal(s[0], nxt)
    bulk_wait(c)
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
