"""Every rank gets the row of the rank with its bits in reverse; bad: the outer bits only.

From: FFT and Bruck permutations
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    r = rank()
    to = (r & 1) * 4 + (r >> 2)
    box[:] = x[:]
    barrier()
    y[:] = box.peer(to)[:]
    barrier()


K = k
RANKS = 8
