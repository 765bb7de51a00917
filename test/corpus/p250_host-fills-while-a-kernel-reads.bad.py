"""Any order of two kernels and the host's write: one of them leaves a peer reading.

From: host code between launches
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def send(x: f32[Window, 64], y: f32[Array, 64]) -> None:
    barrier()
    y[:] = x.peer((rank() + 1) % size())[:]
    barrier()


@commsir.kernel(blocks=1)
def total(x: f32[Window, 64], z: f32[Array, 64]) -> None:
    barrier()
    t = zeros(64)
    for p in range(size()):
        t += x.peer(p)[:]
    z[:] = t


ORDER = [send, commsir.host_write("x"), total, commsir.host_write("x")]
