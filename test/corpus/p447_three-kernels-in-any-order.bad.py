"""Kernels that share a window may be launched in any order; each ends with a barrier; bad: one ends with a signal to its neighbor only.

From: dispatch by the program
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def a(x: f32[Array, 64], w: f32[Window, 64]) -> None:
    w.peer((rank() + 1) % size())[:] = x[:]
    barrier()


@commsir.kernel(blocks=1)
def b(w: f32[Window, 64], y: f32[Array, 64]) -> None:
    y[:] = w.peer((rank() + 2) % size())[:]
    barrier()


@commsir.kernel(blocks=1)
def c(w: f32[Window, 64], s: i64[Signal, 1], z: f32[Array, 64]) -> None:
    z[:] = w.peer((rank() + 3) % size())[:]
    signal(s[0], (rank() + 1) % size())
    wait_signal(s[0], ge=epoch())


ORDER = [a, b, c]
ANY_ORDER = True
