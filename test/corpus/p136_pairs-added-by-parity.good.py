"""The repaired twin of: Ranks add the pairs of a tree in an order that depends on their parity.

From: trees of reductions
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    a = x.peer(0)[:] + x.peer(1)[:]
    b = x.peer(2)[:] + x.peer(3)[:]
    y[:] = a + b
    barrier()


K = k.specialize(n=64)
