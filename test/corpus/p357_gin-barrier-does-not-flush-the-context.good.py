"""The repaired twin of: A put by GIN, then a barrier; the peer reads what the put wrote. Good: a signal in the put's context.

From: GIN barriers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    put(x.local(), box, nxt, gin="context_id = 2")
    signal(s[0], nxt, gin="context_id = 2")
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    flush(gin="context_id = 2")
    barrier()


K = k
RANKS = 2
