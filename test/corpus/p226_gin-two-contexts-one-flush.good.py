"""The repaired twin of: Two puts by two contexts; a flush of one of them frees both sources.

From: GIN contexts
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 2, 64], box: f32[Window, 2, 64], s: i64[Signal, 2], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    put(x.local()[0], box[0], nxt, gin="context_id = 0")
    put(x.local()[1], box[1], nxt, gin="context_id = 1")
    signal(s[0], nxt, gin="context_id = 0")
    signal(s[1], nxt, gin="context_id = 1")
    wait_signal(s[0], ge=epoch())
    wait_signal(s[1], ge=epoch())
    flush(gin="context_id = 0")
    flush(gin="context_id = 1")
    x[0] = zeros(64)
    x[1] = zeros(64)
    barrier()


K = k
