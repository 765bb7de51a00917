"""As many steps as the host says over three buffers, one barrier each; bad: two buffers and the read behind the barrier of the next.

From: time steps
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(steps: index, x: f32[Array, 64], box: f32[Window, 3, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    for t in range(steps):
        box.peer(nxt)[t % 3 % 2] = x[:]
        barrier()
        y[:] = box[(t + 1) % 2]
    barrier()


K = k
RANKS = 3
