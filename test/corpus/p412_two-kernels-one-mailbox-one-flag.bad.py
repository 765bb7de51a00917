"""Two kernels write packets into one mailbox in turn; bad: both use their own launch as the flag, so the second takes the first one's packets.

From: shared LL buffers
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def one(x: f32[Array, 64], mail: i64[Window, 64], y: f32[Array, 64]) -> None:
    flag = i32(epoch())
    packet_store(x[:], mail.peer((rank() + 1) % size()), 0, flag)
    y[:] = packet_load(mail, 0, 64, f32, flag)
    barrier()


@commsir.kernel(blocks=1)
def two(x: f32[Array, 64], mail: i64[Window, 64], z: f32[Array, 64]) -> None:
    flag = i32(epoch())
    packet_store(x[:], mail.peer((rank() + 1) % size()), 0, flag)
    z[:] = packet_load(mail, 0, 64, f32, flag)
    barrier()


ORDER = [one, two]
