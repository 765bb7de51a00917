"""The repaired twin of: good: the host's scalar, the same everywhere, is the length; bad: rank 0 sends one element less.

From: sizes given by the host, adjusted by a rank
"""

from __future__ import annotations

import commsir
from commsir import *

@commsir.kernel(blocks=1)
def k(c: index, x: f32[Array, 64], box: i64[Window, 128], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    length = minimum(maximum(c, 1), 64)
    packet_store(x[:], box.peer(nxt), 0, i32(epoch()), valid=length)
    y[:] = packet_load(box, 0, 64, f32, i32(epoch()), valid=length)
    barrier()


def inputs() -> dict[str, object]:
    return {"c": 40}


K = k
