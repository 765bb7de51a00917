"""The repaired twin of: good: a value that no signal can change any more guards the work; bad: signals may still come.

From: values guarded by read_signal
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], box: f32[Window, n], s: i64[Signal, 1], y: f32[Array, n]) -> None:
    nxt = (rank() + 1) % size()
    signal(s[0], nxt)
    box.peer(nxt)[:] = x[:]
    barrier()
    if read_signal(s[0]) >= epoch():
        y[:] = box[:]
    barrier()


K = k.specialize(n=64)
