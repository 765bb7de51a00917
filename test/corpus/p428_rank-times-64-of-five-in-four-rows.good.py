"""The repaired twin of: Five ranks put their rows at rank times 64 into room for four.

From: sizes fixed for four GPUs
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], w: f32[Window, 320], y: f32[Array, 64]) -> None:
    barrier()
    w.peer(0)[rank() * 64:rank() * 64 + 64] = x[:]
    barrier()
    y[:] = w[0:64]
    barrier()


K = k
RANKS = 5
