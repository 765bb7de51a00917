"""The repaired twin of: The product over ranks; bad: it begins with the own row and multiplies it again.

From: prod
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    box[:] = x[:]
    barrier()
    t = full(64, 1.0)
    for p in range(size()):
        t = t * box.peer(p)[:]
    y[:] = t
    barrier()


K = k
RANKS = 3
