"""Every rank writes a slice of rank 0's window; slices of neighbors share 32 elements.

From: halo exchange with a wrong stride
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 256], y: f32[Array, 256]) -> None:
    at = rank() * 32
    barrier()
    box.peer(0)[at : at + 64] = x[:]
    barrier()
    y[:] = box[:]
    barrier()


K = k
