"""A put by the adapter is flushed by the next kernel; bad: the host writes the source between the two.

From: deferred completion
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def begin(x: f32[Window, 64], box: f32[Window, 64], s: i64[Signal, 1]) -> None:
    put(x.local(), box, (rank() + 1) % size(), gin="")
    signal(s[0], (rank() + 1) % size(), gin="")


@commsir.kernel(blocks=1)
def end(box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    flush(gin="")
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


ORDER = [begin, commsir.host_write("x"), end]
