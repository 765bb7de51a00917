"""The switch adds into a window, which each rank reads plainly; bad: the alias fence is left out on rank 0.

From: multimem_reduce
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    w[:] = zeros(64)
    fence(proxy="alias")
    barrier()
    multimem_reduce("sum", x[:], w.multimem(), 0)
    if rank() != 0:
        fence(proxy="alias")
    barrier()
    y[:] = w[:]
    barrier()


K = k
RANKS = 3
