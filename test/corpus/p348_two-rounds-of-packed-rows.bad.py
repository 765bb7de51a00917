"""Two packed rounds behind each other, the second behind the sums of the first; bad: the second begins at the first's own end.

From: multi-round dispatch
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 2], x: f32[Array, 64], cnt: i64[Window, 2, 2], box: f32[Window, 256], y: f32[Array, 256]) -> None:
    a = minimum(maximum(count[0], 0), 64)
    b = minimum(maximum(count[1], 0), 64)
    for p in range(2):
        cnt.peer(p)[0, rank()] = a
        cnt.peer(p)[1, rank()] = b
    barrier()
    first = 0
    second = cnt[0, rank()]
    if rank() == 1:
        first = cnt[0, 0]
        second = second + cnt[1, 0]
    box.peer(0).store(x[:], minimum(maximum(first, 0), 192), valid=a)
    box.peer(0).store(x[:], minimum(maximum(second, 0), 192), valid=b)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
