"""The repaired twin of: The last rows of the output are left as they were.

From: uneven split
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Window, 4, n], y: f32[Array, 4, n]) -> None:
    barrier()
    for i in range(4):
        y[i] = x.peer((rank() + i) % size())[i]
    barrier()


K = k.specialize(n=64)
