"""The repaired twin of: A third rank sets a cell again after a relaxed signal of its owner: the first value may come last.

From: flags that two ranks set in turn
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(s: i64[Signal, 2]) -> None:
    e = epoch()
    if rank() == 1:
        signal(s[0], 0, set=2 * e - 1, order="relaxed")
    if rank() == 0:
        wait_signal(s[0], ge=2 * e - 1, order="relaxed")
        signal(s[1], 2, order="release")
        wait_signal(s[0], ge=2 * e, order="relaxed")
    if rank() == 2:
        wait_signal(s[1], ge=e, order="acquire")
        signal(s[0], 0, set=2 * e, order="relaxed")
    barrier()


K = k
RANKS = 3
