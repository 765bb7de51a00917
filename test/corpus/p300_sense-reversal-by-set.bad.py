"""A sense-reversing flag set to the parity of the launch; bad: it is waited for with ge.

From: sense-reversing barriers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    other = 1 - rank()
    box.peer(other)[:] = x[:]
    signal(s[0], other, set=epoch() % 2)
    wait_signal(s[0], ge=epoch() % 2)
    y[:] = box[:]
    barrier()


K = k
RANKS = 2
