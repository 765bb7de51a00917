"""The repaired twin of: A kernel writes a or b in turn, because the program swaps them; bad: the host reads the one that is being written.

From: ping-pong of buffers by the program
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def push(x: f32[Array, 64], box: f32[Window, 64]) -> None:
    nxt = (rank() + 1) % size()
    box.peer(nxt)[:] = x[:]
    barrier()


@commsir.kernel(blocks=1)
def meet() -> None:
    barrier()


ORDER = [(push, {"box": "a"}), commsir.host_read("a"), meet, (push, {"box": "b"}), commsir.host_read("b"), meet]
