"""The repaired twin of: Two puts in two contexts, each with its signal; bad: the signals go in the other's context.

From: contexts by channel number
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 2, 64], box: f32[Window, 2, 64], s: i64[Signal, 2], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    put(x[0], box[0], nxt, gin="context_id = 0")
    put(x[1], box[1], nxt, gin="context_id = 1")
    signal(s[0], nxt, gin="context_id = 0")
    signal(s[1], nxt, gin="context_id = 1")
    flush(gin="context_id = 0")
    flush(gin="context_id = 1")
    for i in range(2):
        wait_signal(s[i], ge=epoch())
        y[i] = box[i]
    barrier()


K = k
RANKS = 2
