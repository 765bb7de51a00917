"""Flags of all ranks by or; bad: the last rank's by and.

From: votes
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: i32[Array, 64], box: i32[Window, 64], y: i32[Array, 64]) -> None:
    box[:] = x[:]
    barrier()
    t = box.peer(0)[:]
    for p in range(1, size()):
        if p < size() - 1:
            t = t | box.peer(p)[:]
        else:
            t = t & box.peer(p)[:]
    y[:] = t
    barrier()


K = k
RANKS = 4
