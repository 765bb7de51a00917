"""Ten tiles a launch are signaled, but the wait grows by nine: from launch 11 on it is met early.

From: sequence numbers with a wrong stride
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 2, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[epoch() % 2] = x[:]
    signal(s[0], nxt, add=10)
    wait_signal(s[0], ge=epoch() * 9 + 1)
    y[:] = box[epoch() % 2]


K = k
RANKS = 2
