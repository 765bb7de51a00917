"""The repaired twin of: The same two levels; the bad leader adds its own node's sum twice.

From: hierarchical all-reduce
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], part: f32[Window, 4, 64], mid: f32[Window, 2, 64], out: f32[Window, 64], s: i64[Signal, 3], y: f32[Array, 64]) -> None:
    node, local_ = rank() // 4, rank() % 4
    leader = node * 4
    part.peer(leader)[local_] = x[:]
    signal(s[0], leader)
    if local_ == 0:
        wait_signal(s[0], ge=4 * epoch())
        total = part[0] + part[1] + part[2] + part[3]
        mid.peer((1 - node) * 4)[node] = total
        mid[node] = total
        signal(s[1], (1 - node) * 4)
        wait_signal(s[1], ge=epoch())
        for q in range(4):
            out.peer(node * 4 + q)[:] = mid[0] + mid[1]
            signal(s[2], node * 4 + q)
    wait_signal(s[2], ge=epoch())
    y[:] = out[:]
    barrier()


K = k
RANKS = 8
