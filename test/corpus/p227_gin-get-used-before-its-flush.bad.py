"""A get by GIN; what it brings is read before a flush.

From: GIN gets
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], tmp: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    get(x, tmp.local(), nxt, gin="")
    y[:] = tmp[:]
    flush(gin="")
    barrier()


K = k
