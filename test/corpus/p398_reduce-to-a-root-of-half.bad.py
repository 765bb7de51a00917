"""A reduction to rank 2 of five; bad: rank 2 takes its own data twice and leaves out rank 3.

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
            q = p if p != 3 else 2
            total = total + box.peer(q)[:]
        y[:] = total
    barrier()


K = k
RANKS = 5
