"""The repaired twin of: A kernel counts from zero, another one resets the cell; bad: nothing orders the reset with the next round's signals.

From: signal hygiene
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def count_(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]) -> None:
    box.peer((rank() + 1) % size())[:] = x[:]
    signal(s[0], (rank() + 1) % size())
    wait_signal(s[0], ge=1)
    y[:] = box[:]
    barrier()


@commsir.kernel(blocks=1)
def clean(s: i64[Signal, 1]) -> None:
    reset_signal(s[0])
    barrier()


ORDER = [count_, clean]
