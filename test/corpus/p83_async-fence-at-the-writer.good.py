"""The repaired twin of: A peer stores, a bulk copy reads: the fence stands at the writer and not where the copy is.

From: PTX: proxy fences count in the CTA of the asynchronous access
"""

from __future__ import annotations

import commsir
from commsir import *

n = dims("n")


@commsir.kernel(blocks=1)
def k(x: f32[Array, n], w: f32[Window, n], y: f32[Window, n]) -> None:
    nxt = (rank() + 1) % size()
    w.peer(nxt)[:] = x[:]
    barrier()
    fence("acq_rel", "sys", "async")
    t = bulk_copy(w[0:64], y.local()[0:64])
    bulk_wait(t)
    barrier()


K = k.specialize(n=64)
