"""Two reads of one poisoned tile; it is filled again between them.

From: Lamport buffers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 2, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    poison_fill(box.local())
    barrier()
    poison_store(x[:], box.peer(nxt), 0)
    a = poison_load(box.local(), 0, 64)
    poison_fill(box.local(), 0, 64)
    b = poison_load(box.local(), 0, 64)
    y[:] = a + b
    barrier()


K = k
