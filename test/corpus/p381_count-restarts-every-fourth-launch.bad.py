"""A cell counts to four and is set back; bad: without the barrier behind the reset.

From: counters kept small
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 2, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    e = epoch()
    box.peer(other)[e % 2] = x[:]
    signal(s[0], other)
    wait_signal(s[0], ge=(e - 1) % 4 + 1)
    y[:] = box[e % 2]
    if e % 4 == 0:
        reset_signal(s[0])


K = k
RANKS = 2
