"""Blocks share out an array of bytes; bad: by stripes of 64 of an element size of two.

From: sizes in bytes and in elements
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=4)
def k(x: i8[Array, 256], w: i8[Window, 256], y: i8[Array, 256]) -> None:
    o = block_id() * 32
    w[o:o + 64] = x[o:o + 64]
    barrier()
    y[o:o + 64] = w.peer((rank() + 1) % size())[o:o + 64]
    barrier()


K = k
RANKS = 2
