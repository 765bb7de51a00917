"""The repaired twin of: The receiver waits for as many elements as its own count says, the sender sends its own.

From: TRT-LLM lamport sizes
"""

from __future__ import annotations

import commsir
from commsir import *

@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 1), 64)
    poison_fill(box, 0, 64)
    barrier()
    poison_store(x[:], box.peer(nxt), 0)
    y[:] = poison_load(box, 0, 64, valid=c)
    barrier()


K = k
