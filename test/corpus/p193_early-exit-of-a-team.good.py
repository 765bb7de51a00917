"""The repaired twin of: A team of pairs, and a barrier of the world that only even pairs reach.

From: barriers of the wrong team
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    pair = team().inner(2)
    barrier(pair)
    y[:] = x.peer(1 - pair.rank, pair)[:]
    if rank() // 2 == 0:
        barrier(pair)
    else:
        barrier(pair)


K = k
