"""A rank puts to itself and reads its window at once; good: after a signal to itself.

From: self sends
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    put(x, box, rank())
    y[:] = box[:]
    barrier()


K = k
RANKS = 1
