"""The repaired twin of: Two flags of the host switch two exchanges; bad: the second's barrier depends on the first, too, on one rank.

From: optional phases
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(a: i64, b: i64, x: f32[Array, 64], box: f32[Window, 2, 64], y: f32[Array, 2, 64]) -> None:
    nxt = (rank() + 1) % size()
    barrier()
    if a > 0:
        box.peer(nxt)[0] = x[:]
        barrier()
        y[0] = box[0]
    if b > 0:
        box.peer(nxt)[1] = x[:] * 2.0
        barrier()
        y[1] = box[1]
    barrier()


K = k
RANKS = 2


def inputs() -> dict[str, object]:
    return {"a": 1, "b": 1}
