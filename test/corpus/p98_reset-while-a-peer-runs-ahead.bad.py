"""The cell is reset behind the wait, while a fast peer may have signaled the next launch already.

From: signals that are reset by the receiver
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, n], s: i64[Signal, 1], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=1)
    reset_signal(s[0])
    y[:] = box[:]


K = k.specialize(n=64)
