"""The repaired twin of: The receiver refills its slot and says so by a relaxed signal: the next store may come before the poison.

From: lamport slots that are used twice in a launch
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 2, 64]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    if epoch() == 1:
        poison_fill(box, 0, 64)
        barrier()
    for turn in range(2):
        poison_store(x[:], box.peer(nxt), 0)
        y[turn] = poison_load(box, 0, 64)
        poison_fill(box, 0, 64)
        signal(s[0], prv, order="release")
        wait_signal(s[0], ge=2 * epoch() + turn - 1, order="acquire")
    barrier()


K = k
