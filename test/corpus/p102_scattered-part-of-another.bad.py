"""Each rank reduces the part of its neighbor.

From: reduce-scatter with a shifted rank
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel
def k(x: f32[Window, 4, n], y: f32[Array, n]) -> None:
    barrier()
    total = zeros(n)
    for p in range(size()):
        total += x.peer(p)[(rank() + 1) % size()]
    y[:] = total
    barrier()


K = k.specialize(n=64)
