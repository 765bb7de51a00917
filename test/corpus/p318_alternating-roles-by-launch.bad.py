"""Even launches push, odd launches pull; bad: pull does not wait for the owner.

From: adaptive kernels
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    if epoch() % 2 == 0:
        box.peer(nxt)[:] = x[:]
        barrier()
        y[:] = box[:]
    else:
        box[:] = x[:]
        y[:] = box.peer(nxt)[:]
    barrier()


K = k
RANKS = 2
