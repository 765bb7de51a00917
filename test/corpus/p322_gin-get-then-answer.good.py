"""The repaired twin of: Gets by GIN; the owner writes again when it has heard; bad: the answer goes before the flush.

From: RDMA reads
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 64], v: f32[Window, 64], y: f32[Array, 64], s: i64[Signal, 1]) -> None:
    nxt = (rank() + 1) % size()
    w[:] = x[:]
    barrier()
    get(w, v.local(), nxt, gin="context_id = 0")
    flush(gin="context_id = 0")
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    w[:] = zeros(64)
    y[:] = v[:]
    barrier()


K = k
RANKS = 2
