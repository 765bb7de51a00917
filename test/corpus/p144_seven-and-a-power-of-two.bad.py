"""An exchange by distances 1, 2 and 4 on seven ranks reaches all but the last step's wrap-around.

From: dissemination barriers
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], s: i64[Signal, 3], y: f32[Array, n]) -> None:
    w[:] = x[:]
    for k in range(2):
        signal(s[k], (rank() + (1 << k)) % size())
        wait_signal(s[k], ge=epoch())
    y[:] = w.peer((rank() + 1) % size())[:] + w.peer((rank() + 3) % size())[:]
    barrier()


K = k.specialize(n=64)
RANKS = 7
