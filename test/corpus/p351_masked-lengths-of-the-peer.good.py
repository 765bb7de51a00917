"""The repaired twin of: A tile of a length that a peer has told is stored for the third rank; bad: all elements are.

From: forwarding ragged tiles
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 64], cnt: i64[Window, 1], box: f32[Window, 64], fwd: f32[Window, 128], y: f32[Array, 128]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    c = minimum(maximum(count[0], 0), 64)
    cnt.peer(nxt)[0] = c
    box.peer(nxt).store(x[:], 0, valid=c)
    barrier()
    h = minimum(maximum(cnt[0], 0), 64)
    fwd.peer(nxt).store(box.load(0, 64, valid=h), 0, valid=h)
    fwd.peer(prv).store(x[:], 64, valid=64 - h)
    barrier()
    y[:] = fwd[:]
    barrier()


K = k
RANKS = 3
