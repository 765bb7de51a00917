"""A peer's row is fetched by the adapter; its owner writes it again after a barrier; bad: the barrier stands before the flush.

From: completion of gets
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], tmp: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    get(x, tmp.local(), nxt, gin="")
    barrier()
    flush(gin="")
    x[:] = zeros(64)
    y[:] = tmp[:]


K = k
RANKS = 2
