"""The repaired twin of: The receiver waits for one element more than the sender has announced.

From: DeepEP: counts sent ahead of tokens
"""

from __future__ import annotations

import commsir
from commsir import *

@commsir.kernel(blocks=1)
def k(
    count: i64[Array, 1], x: f32[Array, 64], box: i64[Window, 128], cnt: i64[Window, 1], s: i64[Signal, 1], y: f32[Array, 64]
) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 0), 60)
    cnt.peer(nxt)[0] = c
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    packet_store(x[:], box.peer(nxt), 0, i32(epoch()), valid=c)
    y[:] = packet_load(box, 0, 64, f32, i32(epoch()), valid=cnt[0])
    barrier()


K = k
