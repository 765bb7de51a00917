"""The repaired twin of: A barrier that only acquires on the writing side; good: acq_rel.

From: split orders of barriers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box[:] = x[:]
    barrier()
    y[:] = box.peer(nxt)[:]
    barrier()


K = k
RANKS = 2
