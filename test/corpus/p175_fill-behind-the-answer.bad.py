"""The kernel assumes packets_cumulative, but no fence stands between the poison and the answer: the assumption does not help.

From: lamport slots that are used twice in a launch
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1, assumes="packets_cumulative")
def k(x: f32[Array, 64], box: f32[Window, 64], go: i64[Window, 16], y: f32[Array, 2, 64]) -> None:
    nxt, prv = (rank() + 1) % size(), (rank() + size() - 1) % size()
    if epoch() == 1:
        poison_fill(box, 0, 64)
        barrier()
    for turn in range(2):
        poison_store(x[:], box.peer(nxt), 0)
        y[turn] = poison_load(box, 0, 64)
        poison_fill(box, 0, 64)
        packet_store(y[turn, 0:16], go.peer(prv), 0, 2 * epoch() + turn - 1)
        packet_load(go, 0, 16, f32, 2 * epoch() + turn - 1)
    barrier()


K = k
