"""A row is fetched in context 1; the flush waits for context 0.

From: contexts of gets
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], tmp: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    get(x, tmp.local(), nxt, gin="context_id = 1")
    flush(gin="context_id = 0")
    y[:] = tmp[:]
    barrier()


K = k
RANKS = 2
