"""As many steps as the host says (at most 4), each with a signal and an answer; bad: the answer comes before the read.

From: rings with run-time depth
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(steps: index, x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    nxt = (rank() + 1) % size()
    reset_signal(s[0])
    reset_signal(s[1])
    barrier()
    for t in range(minimum(maximum(steps, 0), 3)):
        box.peer(nxt)[:] = x[:]
        signal(s[0], nxt)
        wait_signal(s[0], ge=t + 1)
        signal(s[1], nxt)
        y[:] = box[:]
        wait_signal(s[1], ge=t + 1)
    barrier()


K = k
RANKS = 2


def inputs() -> dict[str, object]:
    return {"steps": 2}
