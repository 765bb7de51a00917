"""An exclusive prefix sum over ranks; the bad one includes the rank itself.

From: MPI_Exscan
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    total = zeros(64)
    for p in range(size()):
        if p <= rank():
            total += x.peer(p)[:]
    y[:] = total
    barrier()


K = k
RANKS = 4
