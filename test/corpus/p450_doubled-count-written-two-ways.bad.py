"""The sender doubles a count by a product, the receiver by a sum; bad: it adds one.

From: equal lengths, other code
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], cnt: i64[Window, 1], x: f32[Array, 64], box: i64[Window, 64], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    c = minimum(maximum(count[0], 0), 30)
    cnt.peer(other)[0] = c
    barrier()
    packet_store(x[:], box.peer(other), 0, i32(epoch()), valid=c * 2)
    g = cnt[0]
    y[:] = packet_load(box, 0, 64, f32, i32(epoch()), valid=g + g + 1)
    barrier()


K = k
RANKS = 2
