"""The host says how many rows there are; rows of a peer's earlier, longer launch are added as well.

From: sizes known at launch
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(rows: index, x: f32[Array, 4, 64], box: f32[Window, 4, 64], y: f32[Array, 4, 64]) -> None:
    assert 0 <= rows <= 4
    nxt = (rank() + 1) % size()
    barrier()
    for r in range(rows):
        box.peer(nxt)[r] = x[r]
    barrier()
    for r in range(4):
        y[r] = box[r]
    barrier()


def inputs() -> dict[str, object]:
    return {"rows": 3}


K = k
