"""The repaired twin of: good: as many steps as the host says on all ranks; bad: the even ranks make one more.

From: pipeline depth given at launch
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(steps: index, x: f32[Array, n], box: f32[Window, n], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    for i in range(minimum(maximum(steps, 0), 4)):
        box.peer(nxt)[:] = x[:]
        barrier()
        y[:] = box[:]
        barrier()


K = k.specialize(n=64)
