"""A cell is set to minus the launch; a wait for at least that is met by the launch before.

From: signed flags
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    signal(s[0], nxt, set=-epoch())
    wait_signal(s[0], ge=-epoch())
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
