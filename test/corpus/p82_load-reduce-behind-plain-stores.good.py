"""The repaired twin of: multimem_load_reduce of what plain stores have left, with no alias fence on the way.

From: symm_mem multimem_* without fence.proxy.alias
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], y: f32[Array, n]) -> None:
    w[:] = x[:]
    fence("acq_rel", "sys", "alias")
    barrier()
    fence("acq_rel", "sys", "alias")
    y[:] = multimem_load_reduce("sum", w.multimem(), 0, n)
    barrier()


K = k.specialize(n=64)
