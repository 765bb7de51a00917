"""The sum of weighted tiles is written as a weighted sum of tiles, by a weight that is one element off.

From: fused epilogues
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], w: f32[Array, 65], y: f32[Array, 64]) -> None:
    barrier()
    total = zeros(64)
    for p in range(size()):
        total += x.peer(p)[:]
    y[:] = total * w[1:65]
    barrier()


K = k
