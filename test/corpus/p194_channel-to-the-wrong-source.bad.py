"""A pairwise channel; every rank sends to the next and receives from the next.

From: rings over channels
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], y: f32[Array, 64]) -> None:
    ch = channel(64, f32, pattern="pairwise", slots=1, protocol="ll")
    send(x[:], ch[0], (rank() + 1) % size())
    channel_barrier(ch)
    y[:] = recv(ch[0], (rank() + 1) % size())
    barrier()


K = k
