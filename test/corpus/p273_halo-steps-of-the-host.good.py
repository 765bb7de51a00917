"""The repaired twin of: A stencil of as many steps as the host says, two halo buffers, one cell whose base is read first; the bad one has one buffer.

From: stencil codes with time steps
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(steps: i64, x: f32[Array, 64], halo: f32[Window, 2, 2, 64], y: f32[Array, 64]) -> None:
    left, right = (rank() + size() - 1) % size(), (rank() + 1) % size()
    barrier()
    for t in range(steps):
        b = t % 2
        halo.peer(left)[b, 1] = x[:]
        halo.peer(right)[b, 0] = x[:]
        barrier()
        x[:] = x[:] + halo[b, 0] + halo[b, 1]
    y[:] = x[:]
    barrier()


K = k
RANKS = 4
