"""The host refills an input that the kernel's peers read; good: the kernel ends with a barrier.

From: data loaders
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    y[:] = x.peer((rank() + 1) % size())[:]


ORDER = [commsir.host_write("x"), k]
