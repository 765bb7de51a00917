"""One role tells another of its rank by a relaxed signal; good: released.

From: roles
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(x: f32[Array, 64], t: f32[Array, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    with role("make", 0, 1):
        wait_signal(s[1], ge=epoch() - 1)
        t[:] = x[:] * 2.0
        signal(s[0], rank(), order="relaxed")
    with role("take", 1, 2):
        wait_signal(s[0], ge=epoch())
        y[:] = t[:]
        signal(s[1], rank())


K = k
RANKS = 2
