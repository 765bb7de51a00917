"""The repaired twin of: A channel over pairs takes ranks of its team; bad: a rank of the world is passed.

From: ranks of sub-teams
"""

from __future__ import annotations

import commsir
from commsir import *


@commsir.kernel(blocks=1)
def k(x: f32[Array, 64], y: f32[Array, 64]) -> None:
    pair = team().inner(2)
    ch = channel(64, f32, pair, pattern="pairwise", slots=1, protocol="push")
    send(x[:], ch[0], 1 - pair.rank)
    channel_barrier(ch)
    y[:] = recv(ch[0], 1 - pair.rank)
    barrier()


K = k
RANKS = 4
