"""The repaired twin of: All ranks read one word of rank 0, which says whether they meet; bad: each reads its own.

From: control words
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(go: i64[Array, 1], word: i64[Window, 1], x: f32[Array, 64], w: f32[Window, 64], y: f32[Array, 64]) -> None:
    word[0] = minimum(maximum(go[0], 0), 1)
    barrier()
    if word.peer(0)[0] > 0:
        w[:] = x[:]
        barrier()
        y[:] = w.peer((rank() + 1) % size())[:]
    barrier()


K = k
RANKS = 2
