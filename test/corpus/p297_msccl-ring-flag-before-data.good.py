"""The repaired twin of: MSCCL++ ring: put with a flag in the same channel; bad: the flag is a relaxed signal that goes before the flush.

From: MSCCL++ ring
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 4, 64], box: f32[Window, 3, 64], s: i64[Signal, 3], y: f32[Array, 4, 64]) -> None:
    nxt = (rank() + 1) % size()
    y[rank()] = x[rank()]
    for t in range(3):
        c = (rank() + size() - t) % size()
        put(y[c], box[t], nxt)
        signal(s[t], nxt)
        wait_signal(s[t], ge=epoch())
        y[(rank() + size() - t - 1) % size()] = box[t]
    flush()
    barrier()


K = k
RANKS = 4
