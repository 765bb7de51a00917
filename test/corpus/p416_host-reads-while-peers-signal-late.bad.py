"""The host reads what peers have put; good: after the kernel that waits; bad: after the one that only sends.

From: reading results early
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def send_(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1]) -> None:
    barrier()
    box.peer((rank() + 1) % size())[:] = x[:]
    signal(s[0], (rank() + 1) % size())


@commsir.kernel(blocks=1)
def wait_(s: i64[Signal, 1]) -> None:
    wait_signal(s[0], ge=epoch())


ORDER = [send_, commsir.host_read("box"), wait_]
