"""The repaired twin of: Rabenseifner: recursive halving, then recursive doubling; the bad one sends the half that it should keep.

From: Rabenseifner's all-reduce
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 256], box: f32[Window, 256], acc: f32[Window, 256], y: f32[Array, 256]) -> None:
    r = rank()
    for c in range(4):
        acc[c * 64 : c * 64 + 64] = x[c * 64 : c * 64 + 64]
    p = r ^ 2
    keep = r // 2
    barrier()
    for j in range(2):
        box.peer(p)[((1 - keep) * 2 + j) * 64 : ((1 - keep) * 2 + j) * 64 + 64] = acc[((1 - keep) * 2 + j) * 64 : ((1 - keep) * 2 + j) * 64 + 64]
    barrier()
    for j in range(2):
        o = (keep * 2 + j) * 64
        acc[o : o + 64] = acc[o : o + 64] + box[o : o + 64]
    p2 = r ^ 1
    other = keep * 2 + (1 - r % 2)
    barrier()
    box.peer(p2)[other * 64 : other * 64 + 64] = acc[other * 64 : other * 64 + 64]
    barrier()
    acc[r * 64 : r * 64 + 64] = acc[r * 64 : r * 64 + 64] + box[r * 64 : r * 64 + 64]
    barrier()
    for c in range(4):
        y[c * 64 : c * 64 + 64] = acc.peer(c)[c * 64 : c * 64 + 64]
    barrier()


K = k
RANKS = 4
