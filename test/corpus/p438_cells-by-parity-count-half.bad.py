"""Two cells by the parity of the launch, each counts every second launch; bad: the odd cell is expected one launch early.

From: alternating cells
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 2, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    e = epoch()
    box.peer(other)[e % 2] = x[:]
    signal(s[e % 2], other)
    wait_signal(s[e % 2], ge=e // 2)
    y[:] = box[e % 2]


K = k
RANKS = 2
