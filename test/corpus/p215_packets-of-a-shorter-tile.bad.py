"""A tile of a length that the host says travels in packets; its tail is taken from the launch before.

From: sizes known at launch
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(count: index, x: f32[Array, 64], box: i64[Window, 64], kept: f32[Array, 64], y: f32[Array, 64]) -> None:
    assert 0 <= count <= 64
    nxt = (rank() + 1) % size()
    packet_store(x[:], box.peer(nxt), 0, epoch(), valid=count)
    kept[:] = packet_load(box.local(), 0, 64, f32, epoch(), valid=count)
    y.store(kept[:], 0, valid=count)
    barrier()


def inputs() -> dict[str, object]:
    return {"count": 40}


K = k
