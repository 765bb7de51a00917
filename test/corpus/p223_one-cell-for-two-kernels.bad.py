"""Two kernels signal one cell, and each waits for its own launch's number.

From: signals shared by kernels
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def first(x: f32[Array, 64], box: f32[Window, 64], s: i64[Signal, 2], y: f32[Array, 64]) -> None:
    put_signal(x, box, (rank() + 1) % size(), s[0])
    wait_signal(s[0], ge=epoch())
    y[:] = box[:]
    barrier()


@commsir.kernel(blocks=1)
def second(x: f32[Array, 64], bin: f32[Window, 64], s: i64[Signal, 2], z: f32[Array, 64]) -> None:
    put_signal(x, bin, (rank() + 1) % size(), s[0])
    wait_signal(s[0], ge=epoch())
    z[:] = bin[:]
    barrier()


ORDER = [first, second]
