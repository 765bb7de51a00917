"""Packets say how many rows come, poison carries them, a counter frees the source; bad: the source is written before the counter.

From: three protocols in one kernel
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], mail: i64[Window, 64], pool: f32[Window, 64], big: f32[Window, 64], c: i64[Counter, 1], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    e = epoch()
    if e == 1:
        poison_fill(pool, 0, 64)
        barrier()
    put(x.local(), big, other, counted=c[0], gin="")
    signal(s[0], other, gin="")
    packet_store(x[:], mail.peer(other), 0, i32(e))
    poison_store(x[:] * 2.0, pool.peer(other), 0)
    x[:] = zeros(64)
    wait_counter(c[0], ge=e)
    a = packet_load(mail, 0, 64, f32, i32(e))
    b = poison_load(pool, 0, 64)
    wait_signal(s[0], ge=e)
    y[:] = a + b + big[:]
    barrier()
    poison_fill(pool, 0, 64)
    barrier()


K = k
RANKS = 2
