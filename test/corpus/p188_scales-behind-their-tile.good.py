"""The repaired twin of: A tile of fp8 and its scales travel by two puts; the signal goes between them.

From: quantized all-gather and matrix product
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f8[Array, 16, 128], sx: f32[Array, 16, 1], w: f8[Array, 16, 128], sw: f32[Array, 16, 1], box: f8[Window, 16, 128], sbox: f32[Window, 16, 1], s: i64[Signal, 1], y: f32[Array, 16, 16]) -> None:
    nxt = (rank() + 1) % size()
    put(x, box, nxt)
    put(sx, sbox, nxt)
    signal(s[0], nxt)
    wait_signal(s[0], ge=epoch())
    contract(box[0:16], w.T, y[0:16], scales=(sbox, sw))
    barrier()


K = k
