"""Ranks of six meet in teams of two, but read within teams of three.

From: hierarchical teams
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], y: f32[Array, n]) -> None:
    w[:] = x[:]
    trio = team().inner(3)
    pair_ = team().inner(2)
    barrier(pair_)
    first = rank() // 3 * 3
    y[:] = w.peer(first)[:] + w.peer(first + 2)[:]
    barrier(pair_)


K = k.specialize(n=64)
RANKS = 6
