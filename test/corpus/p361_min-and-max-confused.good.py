"""The repaired twin of: The range of all ranks; bad: the minimum twice.

From: quantization ranges
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    a, b = x.peer(0)[:], x.peer(1)[:]
    y[:] = maximum(a, b) - minimum(a, b)
    barrier()


K = k
RANKS = 2
