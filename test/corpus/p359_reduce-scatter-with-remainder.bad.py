"""5 rows over 2 ranks: the first takes 3; bad: the last row is left out.

From: uneven reduce-scatter
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 5, 64], y: f32[Array, 3, 64]) -> None:
    barrier()
    first = rank() * 3
    rows = 2
    for i in range(rows):
        y[i] = x.peer(0)[first + i] + x.peer(1)[first + i]
    barrier()


K = k
RANKS = 2
