"""The repaired twin of: Elements above a limit are kept, and those at the limit as well.

From: thresholds
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    theirs = x.peer((rank() + 1) % size())[:]
    y[:] = where(theirs > 0.5, theirs, 0.0)
    barrier()


K = k
