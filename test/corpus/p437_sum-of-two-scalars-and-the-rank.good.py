"""The repaired twin of: The sum of two scalars decides; bad: with the rank added.

From: flags combined
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(a: i64, b: i64, x: f32[Array, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    w[:] = x[:]
    barrier()
    if a + b > 3:
        barrier()
    y[:] = w.peer((rank() + 1) % size())[:]
    barrier()


K = k
RANKS = 2
