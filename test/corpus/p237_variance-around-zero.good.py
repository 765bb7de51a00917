"""The repaired twin of: A row is normalized by its variance; the mean is not taken away from what is squared.

From: layer norms
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], y: f32[Array, 64]) -> None:
    a = x[:]
    c = a - a.mean()
    y[:] = c * rsqrt((c * c).mean() + 0.001)


K = k
