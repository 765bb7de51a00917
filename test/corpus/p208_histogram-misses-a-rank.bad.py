"""Counts of all ranks are added element by element, without the last one.

From: expert counts
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: i64[Window, 8], y: i64[Array, 8]) -> None:
    barrier()
    for i in range(8):
        y[i] = x.peer(0)[i]
    for p in range(1, size() - 1):
        for i in range(8):
            y[i] = y[i] + x.peer(p)[i]
    barrier()


K = k
