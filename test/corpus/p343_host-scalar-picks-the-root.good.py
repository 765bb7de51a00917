"""The repaired twin of: The host says which rank sends; bad: ranks other than the root read before the barrier.

From: broadcast with a run-time root
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(root: index, x: f32[Array, 64], box: f32[Window, 64], y: f32[Array, 64]) -> None:
    assert 0 <= root < 4
    if rank() == root:
        box[:] = x[:]
    barrier()
    y[:] = box.peer(root)[:]
    barrier()


K = k
RANKS = 4


def inputs() -> dict[str, object]:
    return {"root": 1}
