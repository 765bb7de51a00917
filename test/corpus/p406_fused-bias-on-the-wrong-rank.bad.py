"""An all-reduce whose region adds a bias; good: after the sum; bad: on each part before it.

From: fused linear layers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel
def k(x: f32[Window, 64], b: f32[Array, 64], y: f32[Array, 64]) -> None:
    all_reduce(x, consume=lambda t, c: t + c + c, args=(b,), outs=(y,))


K = k
RANKS = 2
