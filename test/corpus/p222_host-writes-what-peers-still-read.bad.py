"""Peers read a window in a kernel that ends without a barrier; the host then writes it.

From: input buffers that are filled again
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def read(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    y[:] = x.peer((rank() + 1) % size())[:]


ORDER = [read, commsir.host_write("x")]
