"""The repaired twin of: Puts go to a rank of the other pair; the flush names the own pair.

From: flush by team
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    p = (rank() + 2) % 4
    barrier()
    put(x, box, p)
    flush()
    x[:] = zeros(64)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 4
