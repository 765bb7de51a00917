"""The window of unanswered launches grows from one to three and stays; three buffers; bad: it grows to four.

From: slow start
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 3, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    prv = (rank() + size() - 1) % size()
    e = epoch()
    lag = minimum(e, 4)
    wait_signal(s[1], ge=e - lag)
    box.peer(nxt)[e % 3] = x[:]
    signal(s[0], nxt)
    wait_signal(s[0], ge=e)
    y[:] = box[e % 3]
    signal(s[1], prv)


K = k
RANKS = 5
