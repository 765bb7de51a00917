"""The repaired twin of: A tile is copied by TMA to a peer's box from scratch memory that is written again before the copy is over.

From: double-buffered stores
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 2, 64], y: f32[Array, 2, 64]) -> None:
    s = scratch(f32, 64, space="shared")
    s[:] = x[0]
    fence(proxy="async")
    t = bulk_copy(s, y[0])
    bulk_wait(t)
    s[:] = x[1]
    fence(proxy="async")
    u = bulk_copy(s, y[1])
    bulk_wait(u)


K = k
