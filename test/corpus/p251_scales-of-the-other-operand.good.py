"""The repaired twin of: A product of fp8 has a scale for every 128 terms; those of the other operand are taken for the weight.

From: block-scaled matrix products
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f8[Array, 4, 256], sx: f32[Array, 4, 2], w: f8[Array, 4, 256], sw: f32[Array, 4, 2], y: f32[Array, 4, 4]) -> None:
    contract(x[0:4], w.T, y[0:4], scales=(sx, sw))


K = k
