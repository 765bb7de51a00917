"""A program for type checkers: every type of the kernel language, and all uses of a kernel. It does not run."""

# ruff: noqa: F841, E702, F401, SIM105
from __future__ import annotations

import commsir
import numpy as np
from commsir import (
    Array,
    Cell,
    Channel,
    Counter,
    Dim,
    HostWindow,
    Index,
    Memory,
    Signal,
    Slot,
    Team,
    Tile,
    Token,
    Window,
    all_reduce,
    barrier,
    barrier_arrive,
    barrier_wait,
    bf16,
    bitcast,
    block_id,
    bulk_copy,
    bulk_wait,
    cast,
    channel,
    channel_barrier,
    clip,
    dims,
    epoch,
    exp,
    f8,
    f8e5m2,
    f32,
    fma,
    for_peers,
    full,
    get,
    i32,
    i64,
    iota,
    maximum,
    num_blocks,
    packet_load,
    packet_store,
    put,
    put_signal,
    rank,
    read_signal,
    recv,
    reset_signal,
    role,
    rsqrt,
    scratch,
    send,
    signal,
    size,
    sqrt,
    team,
    wait_counter,
    wait_signal,
    wait_signal_from,
    where,
    zeros,
)

rows, n = dims("rows n")
k: Dim
k = dims("k")


def helper(t: Tile, scale: float) -> Tile:
    return t * scale + 1


@commsir.kernel
def big(
    x: f32[Window, rows, n],
    kept: f32[HostWindow, rows, n],
    y: bf16[Array, rows, n],
    s: i64[Signal, 4],
    c: i64[Counter, 1],
    z: i64[Array, n],
    a: float,
    m: int,
) -> None:
    world: Team = team()
    inner = world.inner(2)
    me: int = world.rank
    t: Tile = x[0]
    u = x[0, 0:4]
    v = x.load(0, 4, valid=2)
    y[0] = helper(t, 2.0)
    y[0, 1] = 3
    y[0] = kept.peer(0)[0]
    y.store(t, 4)
    y[0] += t
    z[0] = me
    tok: Token = wait_signal(s[0], ge=epoch())
    w = x.load(0, 4, after=tok)
    e = (w - w.max()).astype(bf16)
    q = -w / 2**1 // 3 % 2
    cond = (w > 1) & (w < 2)
    r = where(cond, w, 0.0)
    if x[0, 0] > 1:
        barrier(inner, "grid")
    for p in world.peers():
        put(y, x, p, counted=c[0])
        put_signal(x[0], x[me], p, s[me], add=2)
    for p in for_peers(reversed=True):
        signal(s[p], p, inner)
    total = x[0].sum().item() + a
    length: int = len(x)
    sh = x.shape[0]
    ch: Channel = channel(256, f32)
    send(t, ch[0], 1)
    g = recv(ch[0], 1)
    with role("a", 0, 1):
        barrier()
    wait_counter(c[0], ge=1)
    mem = scratch(f32, 4)
    mem[:] = w
    o = x.peer(1)[0]
    all_reduce(x, outs=y, consume=lambda row: row * 2)
    h = cast(m, f32) + 3
    b = bitcast(w, i32)


report = big.specialize(rows=2, n=8, ranks=2).simulate(2, {"a": 1.0}, seed=3, fuzz=2, blocks=1, trace=False)
arrs: list[np.ndarray] = report["y"]
html: str = report._repr_html_()
ir: str = big.ir
chk: commsir.CheckReport = big.check(ranks=2)
print(chk.kernel, report.stats, report.events[0], report.trace("x.json"), report.plot("x.png"))
tab: commsir.Table = commsir.tune(big, 2, {}, algorithms=["ring"], protocols=["ll"], blocks=[1], repetitions=1)
tab.save("x")
print(commsir.Table.load("x").best)
commsir.replay("x")
commsir.doctor()
print(commsir.version(), commsir.stats())
try:
    big.simulate(2)
except commsir.DeadlockError as err:
    print(err.waiting[0].rank, err.line, err.save("x"))
with commsir.Group(0, 2, folder="x") as gr:
    xx = gr.allocate(3, "f32")
    gr.all_reduce(xx, op="max")
    win = gr.window((2, 3), "f32", signals=8)
    win.put(xx, 1, at=0)
    win.wait(1, cell=1, timeout=3)
    ker = gr.kernel("x", algorithm="a")
    ker(xx)
res = commsir.all_reduce([np.zeros(3)], consume=lambda t: t)
res2 = commsir.simulate("x", ranks=2, arrays={"x": [np.zeros(3)]})
commsir.compile_ir("x", produce="ptx", ranks=2)
