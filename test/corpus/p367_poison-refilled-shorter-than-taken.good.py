"""The repaired twin of: The receiver takes as many poisoned elements as a peer announces; bad: it clears at most half.

From: lamport buffers with a length of data
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 64], cnt: i64[Window, 1], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    if epoch() == 1:
        poison_fill(box, 0, 64)
    c = minimum(maximum(count[0], 0), 64)
    cnt.peer(nxt)[0] = c
    barrier()
    poison_store(x[:], box.peer(nxt), 0, valid=c)
    got = cnt[0]
    y[:] = poison_load(box, 0, 64, valid=got)
    poison_fill(box, 0, got)
    barrier()


K = k
RANKS = 3
