"""The repaired twin of: A put to one peer, a signal to another one that reads it there by a get; nothing orders them.

From: GIN orders by peer
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    put(x.local(), box, nxt, gin="")
    signal(s[0], nxt, gin="")
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


K = k
