"""The repaired twin of: A reduction to rank 2 of five; bad: rank 2 takes its own data twice and leaves out rank 3.

From: reduce with a root
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    box[:] = x[:]
    barrier()
    if rank() == 2:
        total = zeros(64)
        for p in range(size()):
            total = total + box.peer(p)[:]
        y[:] = total
    barrier()


K = k
RANKS = 5
