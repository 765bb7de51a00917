"""The repaired twin of: A kernel sends, another takes; the host reads the box between the two, where the tile may not have come.

From: host code between launches
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def send(x: f32[Array, 64], box: f32[Window, 64], ready: i64[Signal, 1]) -> None:
    put_signal(x, box, (rank() + 1) % size(), ready[0])


@commsir.kernel(blocks=1)
def take(box: f32[Window, 64], y: f32[Array, 64], ready: i64[Signal, 1]) -> None:
    wait_signal(ready[0], ge=epoch())
    y[:] = box[:]
    barrier()


ORDER = [send, take, commsir.host_read("y")]
