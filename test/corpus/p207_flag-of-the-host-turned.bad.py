"""A flag of the host says whether the sum is scaled; it is read the other way round.

From: options of a launch
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(go: i64, x: f32[Window, 64], y: f32[Array, 64]) -> None:
    if go <= 0:
        barrier()
        total = zeros(64)
        for p in range(size()):
            total += x.peer(p)[:]
        y[:] = total
        barrier()


def inputs() -> dict[str, object]:
    return {"go": 1}


K = k
