"""A vocabulary-parallel log-sum-exp: maximum over all ranks, then sums; bad: each rank subtracts its own maximum.

From: Megatron vocab-parallel loss
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], m: f32[Window, 1], t: f32[Window, 1], y: f32[Array, 1]) -> None:
    mine = x[:].max()
    m[0] = mine[0]
    barrier()
    top = maximum(m.peer(0)[0], m.peer(1)[0])
    t[0] = exp(x[:] - m[0]).sum()[0]
    barrier()
    y[0] = t.peer(0)[0] + t.peer(1)[0]
    barrier()


K = k
RANKS = 2
