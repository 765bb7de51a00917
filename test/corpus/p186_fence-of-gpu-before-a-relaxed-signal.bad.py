"""A fence and a relaxed signal publish data to a peer; the fence reaches this GPU only.

From: fences of too small a scope
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    fence("release", scope="gpu")
    signal(s[0], nxt, order="relaxed")
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


K = k
