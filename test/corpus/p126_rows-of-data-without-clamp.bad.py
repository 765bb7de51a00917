"""Sender and receiver clamp a count differently.

From: lengths from data
"""
from __future__ import annotations
import commsir
from commsir import *

n = dims("n")

@commsir.kernel(blocks=1)
def k(count: i64[Array, 1], x: f32[Array, 8, n], box: f32[Window, 8, n], cnt: i64[Window, 1], s: i64[Signal, 1], y: f32[Array, 8, n]) -> None:
    nxt = (rank() + 1) % size()
    c = minimum(maximum(count[0], 0), 8)
    cnt.peer(nxt)[0] = c
    signal(s[0], nxt)
    for i in range(c):
        box.peer(nxt)[i] = x[i]
    wait_signal(s[0], ge=epoch())
    for i in range(minimum(maximum(cnt[0], 0), 8)):
        y[i] = box[i]
    barrier()

K = k.specialize(n=64)
RANKS = 3
