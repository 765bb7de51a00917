"""A tree adds up to rank 0 and broadcasts down; the bad parent waits for one child only.

From: tree all-reduce
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], up: f32[Window, 2, 64], down: f32[Window, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    r = rank()
    total = x[:]
    if 2 * r + 2 < size():
        wait_signal(s[0], ge=epoch() * 2 - 1)
        total = total + up[0] + up[1]
    if r > 0:
        up.peer((r - 1) // 2)[(r - 1) % 2] = total
        signal(s[0], (r - 1) // 2)
        wait_signal(s[1], ge=epoch())
    else:
        down[:] = total
    if 2 * r + 2 < size():
        for c in range(2):
            down.peer(2 * r + 1 + c)[:] = down[:]
            signal(s[1], 2 * r + 1 + c)
    y[:] = down[:]
    barrier()


K = k
RANKS = 7
