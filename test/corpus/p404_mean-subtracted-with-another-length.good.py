"""The repaired twin of: Rows minus their mean over all ranks; bad: divided by the row's own length only.

From: layer norm across shards
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    box[:] = x[:]
    barrier()
    total = zeros(1)
    for p in range(size()):
        total = total + box.peer(p)[:].sum()
    y[:] = x[:] - total / 128.0
    barrier()


K = k
RANKS = 2
