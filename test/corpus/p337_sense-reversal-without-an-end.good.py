"""The repaired twin of: Sense reversal by set and eq between two ranks; bad: nothing keeps the faster rank from turning the flag again.

From: sense-reversing barriers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 2, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    b = epoch() % 2
    box.peer(other)[b] = x[:]
    signal(s[0], other, set=b)
    wait_signal(s[0], eq=b)
    y[:] = box[b]
    signal(s[1], other, set=b)
    wait_signal(s[1], eq=b)


K = k
RANKS = 2
