"""Teams of one rank meet at once: that orders nobody; good: the team of all.

From: degenerate teams
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    one = team().inner(1)
    w[:] = x[:]
    barrier(one)
    y[:] = w.peer((rank() + 1) % size())[:]
    barrier()


K = k
RANKS = 3
