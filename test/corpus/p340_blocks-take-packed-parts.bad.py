"""Ranks pack tiles of a length from data one behind the other; bad: the length of the next rank is taken.

From: ragged gather
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 64], cnt: i64[Window, 4], box: f32[Window, 256], y: f32[Array, 256]) -> None:
    c = minimum(maximum(count[0], 0), 64)
    for p in range(4):
        cnt.peer(p)[rank()] = c
    barrier()
    at = 0
    for q in range(4):
        if q < rank():
            at = at + cnt[(q + 1) % 4]
    assert 0 <= at <= 192
    box.peer(0).store(x[:], at, valid=c)
    barrier()
    y[:] = box[:]
    barrier()


K = k
RANKS = 4
