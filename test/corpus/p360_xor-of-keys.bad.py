"""Keys of all ranks are combined by xor; bad: by or.

From: checksums
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: i32[Window, 64], y: i32[Array, 64]) -> None:
    barrier()
    t = x.peer(0)[:]
    for p in range(1, 3):
        t = t | x.peer(p)[:]
    y[:] = t
    barrier()


K = k
RANKS = 3
