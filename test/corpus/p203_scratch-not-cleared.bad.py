"""A sum is gathered element by element in scratch memory, which begins with what was there.

From: accumulators in shared memory
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 16], y: f32[Array, 16]) -> None:
    s = scratch(f32, 16)
    barrier()
    for i in range(15):
        s[i] = 0.0
    for p in range(size()):
        for i in range(16):
            s[i] = s[i] + x.peer(p)[i]
    for i in range(16):
        y[i] = s[i]
    barrier()


K = k
