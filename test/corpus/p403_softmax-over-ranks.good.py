"""The repaired twin of: Weights of the ranks by a softmax over their scores; bad: the sum leaves out the largest.

From: attention over sequence shards
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    box[:] = x[:]
    barrier()
    total = zeros(64)
    for p in range(size()):
        total = total + exp(box.peer(p)[:])
    y[:] = exp(x[:]) / total
    barrier()


K = k
RANKS = 2
