"""Two kernels write one box in turn; the second one does not wait for the reader of the first.

From: two collectives in one buffer
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def first(x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    box.peer((rank() + 1) % size())[:] = x[:]
    barrier()
    y[:] = box[:]


@commsir.kernel(blocks=1)
def second(x: f32[Array, 64], box: f32[Window, 64], z: f32[Array, 64]) -> None:
    box.peer((rank() + 2) % size())[:] = x[:]
    barrier()
    z[:] = box[:]
    barrier()


ORDER = [first, second]
