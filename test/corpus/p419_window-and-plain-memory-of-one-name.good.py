"""The repaired twin of: A kernel writes an array that another kernel's peers read as a window.

From: one buffer, two views
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def fill_(x: f32[Array, 64], w: f32[Window, 64]) -> None:
    w[:] = x[:] * 3.0
    barrier()


@commsir.kernel(blocks=1)
def pull_(w: f32[Window, 64], y: f32[Array, 64]) -> None:
    y[:] = w.peer((rank() + 1) % size())[:]
    barrier()


ORDER = [fill_, pull_]
