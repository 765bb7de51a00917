"""The repaired twin of: FlashInfer's one-shot all-reduce: three poisoned buffers in turn; the bad one clears the buffer that it has just sent to.

From: FlashInfer trtllm_allreduce one-shot
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], box: f32[Window, 768], y: f32[Array, 64]) -> None:
    e = epoch()
    if e == 1:
        poison_fill(box, 0, 768)
        barrier()
    for p in range(size()):
        poison_store(x[:], box.peer(p), (e % 3 * 4 + rank()) * 64)
    total = zeros(64)
    for p in range(size()):
        total += poison_load(box, (e % 3 * 4 + p) * 64, 64)
    poison_fill(box, ((e + 2) % 3 * 4) * 64, 256)
    y[:] = total


K = k
RANKS = 4
