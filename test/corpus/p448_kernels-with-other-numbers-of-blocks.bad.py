"""A kernel of two blocks fills an array that a kernel of one block reads; bad: a kernel of four blocks reads the window of a peer.

From: launch shapes
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=2)
def fill_(x: f32[Array, 2, 64], w: f32[Window, 2, 64]) -> None:
    w[block_id()] = x[block_id()]


@commsir.kernel(blocks=4)
def read_(w: f32[Window, 2, 64], y: f32[Array, 4, 64]) -> None:
    y[block_id()] = w.peer((rank() + 1) % size())[block_id() % 2]
    barrier(extent="grid")


ORDER = [fill_, read_]
