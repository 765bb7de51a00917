"""The repaired twin of: The sum leaves out rank 0 and takes the own row twice.

From: loops that start at 1
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    total = x.peer(0)[:]
    for p in range(1, size()):
        total += x.peer(p)[:]
    y[:] = total
    barrier()


K = k.specialize(n=64)
