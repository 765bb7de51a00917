"""The repaired twin of: A scaled product is added to what was there, which is cleared before.

From: block-scaled matrix products
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f8[Array, 4, 32], sx: f32[Array, 4, 1], w: f8[Array, 4, 32], sw: f32[Array, 1, 1], y: f32[Array, 4, 4]) -> None:
    for r in range(4):
        y[r] = zeros(4)
    contract(x[0:4], w.T, y[0:4], scales=(sx, sw), accumulate=True)


K = k
