"""The repaired twin of: The last elements of a row are not added: the loop over tiles is one too short.

From: ceil against floor in the number of tiles
"""

from __future__ import annotations

import commsir
from commsir import *

@commsir.kernel
def k(x: f32[Window, 100], y: f32[Array, 100]) -> None:
    barrier()
    for i in range(0, 100, 25):
        total = zeros(25)
        for p in range(size()):
            total += x.peer(p)[i : i + 25]
        y[i : i + 25] = total
    barrier()


K = k
