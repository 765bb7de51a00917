"""A flag that is the same on all ranks says whether they synchronize; it is compared with the rank.

From: conditional participation by data
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1, assumes="same_on_ranks(go)")
def k(go: i64[Array, 1], x: f32[Window, 64], y: f32[Array, 64]) -> None:
    if go[0] > rank():
        barrier()
        total = zeros(64)
        for p in range(size()):
            total += x.peer(p)[:]
        y[:] = total
        barrier()


K = k
