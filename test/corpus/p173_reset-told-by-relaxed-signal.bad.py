"""The receiver resets its cell and lets the sender go on by a relaxed signal: the reset may come after the next signal.

From: counts that the receiver resets between two steps
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(s: i64[Signal, 2]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    for turn in range(2):
        signal(s[0], nxt)
        wait_signal(s[0], ge=1)
        reset_signal(s[0])
        signal(s[1], prv, order="relaxed")
        wait_signal(s[1], ge=2 * epoch() + turn - 1, order="relaxed")
    barrier()


K = k
