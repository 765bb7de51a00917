"""The repaired twin of: A put into a window of the host, and a signal behind it that nobody waits for.

From: outputs handed to the host too early
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], y: f32[HostWindow, n], s: i64[Signal, 1]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    put_signal(x, y, nxt, s[0])
    wait_signal(s[0], ge=epoch())


K = k.specialize(n=64)
