"""multimem reads what ranks have just stored plainly; the fence for the alias proxy stands behind it.

From: NVLS
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], y: f32[Array, n]) -> None:
    w[:] = x[:]
    barrier()
    y[:] = multimem_load_reduce("sum", w.multimem(), 0, n)
    fence("acq_rel", "sys", "alias")
    barrier()


K = k.specialize(n=64)
