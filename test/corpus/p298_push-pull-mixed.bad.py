"""A rank pushes its tile to the next and pulls the one of the rank before; bad: it pulls what the pusher may overwrite.

From: bidirectional exchange
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], a: f32[Window, 64], b: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 2, 64]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    b[:] = x[:] + 1.0
    a.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    y[0] = a[:]
    y[1] = a.peer(prv)[:]
    barrier()


K = k
RANKS = 3
