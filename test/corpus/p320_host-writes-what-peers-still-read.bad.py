"""The host of rank 0 writes what all ranks then read; bad: it may write again while peers still read.

From: parameter servers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def spread(w: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    y[:] = w.peer(0)[:]


ORDER = [commsir.host_write("w"), spread]
