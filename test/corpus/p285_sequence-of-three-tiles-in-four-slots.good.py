"""The repaired twin of: Three tiles a launch go through four slots by a sequence number over all launches; bad: credits for five.

From: FIFOs that persist over launches
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(x: f32[Array, 3, 64], box: f32[Window, 4, 64], s: i64[Signal, 2], y: f32[Array, 3, 64]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    with role("send", 0, 1):
        for t in range(3):
            n = (epoch() - 1) * 3 + t
            wait_signal(s[1], ge=n - 3)
            box.peer(nxt)[n % 4] = x[t]
            signal(s[0], nxt)
    with role("take", 1, 2):
        for t in range(3):
            n = (epoch() - 1) * 3 + t
            wait_signal(s[0], ge=n + 1)
            y[t] = box[n % 4]
            signal(s[1], prv)


K = k
RANKS = 8
