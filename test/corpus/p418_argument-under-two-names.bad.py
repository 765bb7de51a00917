"""Two arguments are one window; bad: one is read while the other is written.

From: aliased arguments
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def shift_(a: f32[Window, 64], b: f32[Window, 64], y: f32[Array, 64]) -> None:
    y[:] = a.peer((rank() + 1) % size())[:]
    b[:] = y[:] * 2.0
    barrier()


ORDER = [(shift_, {"a": "w", "b": "w"})]
