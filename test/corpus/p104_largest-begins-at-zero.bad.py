"""The maximum begins at 0 and not at the first rank's value.

From: initial value of a reduction
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel
def k(x: f32[Window, n], y: f32[Array, n]) -> None:
    barrier()
    best = zeros(n)
    for p in range(1, size()):
        best = maximum(best, x.peer(p)[:])
    y[:] = best
    barrier()


K = k.specialize(n=64)
