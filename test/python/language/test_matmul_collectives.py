"""Matrix products before and behind collectives, in one kernel: against float64, with the same bits in every run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

Load = Callable[[str], ModuleType]
Arrays = dict[str, Any]
TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8": ml_dtypes.float8_e4m3fn}
# All blocks of a rank meet: some read what others have received or multiplied.
MEET = 'barrier(team_split(team(), "inner", 1), "grid")'


def draw(seed: int, shape: tuple[int, ...], kind: str) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(TYPES[kind])


def of_ranks(seed: int, ranks: int, shape: tuple[int, ...], kind: str) -> list[Any]:
    return [draw(seed + 100 * rank, shape, kind) for rank in range(ranks)]


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def normed(rows: Any) -> Any:
    return rows / np.sqrt((rows * rows).mean(1, keepdims=True) + 1e-6)


@dataclasses.dataclass
class Program:
    """A kernel `f`, what it gets, and what every rank is to have: arrays of each rank, or one of all."""

    text: str
    given: Arrays
    wanted: dict[str, Any]
    ranks: int
    blocks: int = 2
    #: A result differs by this times its size, and this: narrow types are rounded between the steps.
    error: float = 1e-5


def gathered(ranks: int, rows: int, k: int, n: int, tile: int, kind: str) -> Program:
    """Rows are normed while they are sent; their product has a bias and relu behind it."""
    x, w = of_ranks(1, ranks, (rows, k), kind), draw(2, (k, n), kind)
    scale, bias = draw(3, (k,), "f32"), draw(4, (n,), "f32")
    every = np.concatenate([normed(wide(part)) * wide(scale) for part in x])
    part = f"i:min(i + {tile}, {ranks * rows})"
    text = f"""
@kernel
def f(x: {kind}[Window, {rows}, {k}], scale: f32[Array, {k}], w: {kind}[Array, {k}, {n}], bias: f32[Array, {n}],
      every: {kind}[Array, {ranks * rows}, {k}], y: f32[Array, {ranks * rows}, {n}]):
    def norm(row, scale):
        t = row.astype(f32)
        return t * rsqrt((t * t).mean() + 1e-6) * scale
    all_gather((x, scale), outs=(every,), produce=norm)
    {MEET}
    for i in range(block_id() * {tile}, {ranks * rows}, num_blocks() * {tile}):
        p = every[{part}] @ w
        for r in range(min({tile}, {ranks * rows} - i)):
            y[i + r] = maximum(p[r] + bias[:], 0.0)
"""
    y = np.maximum(every @ wide(w) + wide(bias), 0)
    return Program(text, {"x": x, "scale": scale, "w": w, "bias": bias}, {"y": y}, ranks, error=2**-6)


def reduced(ranks: int, m: int, k: int, n: int) -> Program:
    """The sum of partial products, a residual, and its norm."""
    x, w = of_ranks(1, ranks, (m, k), "bf16"), of_ranks(2, ranks, (k, n), "bf16")
    d = draw(3, (m, n), "bf16")
    text = f"""
@kernel
def f(x: bf16[Array, {m}, {k}], w: bf16[Array, {k}, {n}], part: f32[Window, {m}, {n}], d: bf16[Array, {m}, {n}],
      h: f32[Array, {m}, {n}], q: f32[Array, {m}, {n}]):
    def both(total, d):
        t = total + d
        return t, t * rsqrt((t * t).mean() + 1e-6)
    for i in range(block_id() * 4, {m}, num_blocks() * 4):
        part[i:min(i + 4, {m})] = x[i:min(i + 4, {m})] @ w
    {MEET}
    all_reduce(part, outs=(h, q), args=(d,), consume=both)
"""
    h = sum(wide(a) @ wide(b) for a, b in zip(x, w, strict=True)) + wide(d)
    return Program(text, {"x": x, "w": w, "d": d}, {"h": h, "q": normed(h)}, ranks, blocks=3)


def scattered(ranks: int) -> Program:
    """Each rank's rows of the sum in fp8, with a scale for each row."""
    m, k, n = 4 * ranks, 33, 64
    x, w = of_ranks(1, ranks, (m, k), "f16"), of_ranks(2, ranks, (k, n), "f16")
    text = f"""
@kernel
def f(x: f16[Array, {m}, {k}], w: f16[Array, {k}, {n}], part: f32[Window, {m}, {n}], q: f8[Array, 4, {n}],
      s: f32[Array, 4, 1]):
    def quantize(total):
        scale = abs(total).max() / 448.0
        return total / scale, scale
    for i in range(block_id() * 4, {m}, num_blocks() * 4):
        part[i:i + 4] = x[i:i + 4] @ w
    {MEET}
    reduce_scatter(part, outs=(q, s), consume=quantize)
"""
    total = sum(wide(a) @ wide(b) for a, b in zip(x, w, strict=True)).reshape(ranks, 4, n)
    scales = np.abs(total).max(2, keepdims=True) / 448
    wanted = {"s": list(scales), "q": list(total / scales)}
    return Program(text, {"x": x, "w": w}, wanted, ranks, error=2**-4)


def exchanged(ranks: int) -> Program:
    """Rows go to their expert, one a rank, and come back multiplied."""
    m, k, n = 4 * ranks, 24, 20
    x, w = of_ranks(1, ranks, (m, k), "bf16"), of_ranks(2, ranks, (k, n), "bf16")
    text = f"""
@kernel
def f(x: bf16[Window, {m}, {k}], w: bf16[Array, {k}, {n}], mine: bf16[Array, {m}, {k}], made: f32[Window, {m}, {n}],
      y: f32[Array, {m}, {n}]):
    all_to_all(x, outs=mine)
    {MEET}
    for i in range(block_id() * 8, {m}, num_blocks() * 8):
        made[i:min(i + 8, {m})] = mine[i:min(i + 8, {m})] @ w
    {MEET}
    all_to_all(made, outs=y)
"""
    y = [np.concatenate([wide(a[4 * e : 4 * e + 4]) @ wide(w[e]) for e in range(ranks)]) for a in x]
    return Program(text, {"x": x, "w": w}, {"y": y}, ranks)


def dispatched(counts: list[list[int]]) -> Program:
    """Unequal numbers of rows go to each expert: counts[r][e] of rank r."""
    ranks, most = len(counts), 8 * len(counts)
    sent = np.array(counts, np.int32)
    x, w = of_ranks(1, ranks, (8, 24), "bf16"), of_ranks(2, ranks, (24, 20), "bf16")
    text = f"""
@kernel
def f(x: bf16[Window, 8, 24], send: i32[Array, {ranks}], received: i32[Array, {ranks}], w: bf16[Array, 24, 20],
      mine: bf16[Array, {most}, 24], y: f32[Array, {most}, 20]):
    all_to_all_v(x, send_rows=send, recv_rows=received, outs=mine)
    {MEET}
    count = index(0)
    for r in range({ranks}):
        count = count + index(received[r])
    assert 0 <= count <= {most}
    for i in range(block_id() * 8, count, num_blocks() * 8):
        y[i:min(i + 8, count)] = mine[i:min(i + 8, count)] @ w
"""
    y = []
    for expert in range(ranks):
        first = sent[:, :expert].sum(1)
        rows = np.concatenate([wide(a)[at : at + n] for a, at, n in zip(x, first, sent[:, expert], strict=True)])
        y.append(np.pad(rows @ wide(w[expert]), ((0, most - len(rows)), (0, 0))))
    return Program(text, {"x": x, "send": list(sent), "received": list(sent.T), "w": w}, {"y": y}, ranks)


def grouped(counts: list[int]) -> Program:
    """Rows in the order of their experts; data say where those of each begin. A block for each expert."""
    experts, rows, k, n = len(counts), 50, 40, 33
    x, w = draw(1, (rows, k), "bf16"), draw(2, (experts, k, n), "bf16")
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    text = f"""
@kernel
def f(x: bf16[Array, {rows}, {k}], w: bf16[Array, {experts}, {k}, {n}], first: i32[Array, {experts + 1}],
      y: f32[Array, {rows}, {n}]):
    e = block_id()
    begin, end = index(first[e]), index(first[e + 1])
    for i in range(begin, end, 16):
        y[i:min(i + 16, end)] = x[i:min(i + 16, end)] @ w[e]
"""
    y = np.zeros((rows, n))
    for e in range(experts):
        y[first[e] : first[e + 1]] = wide(x)[first[e] : first[e + 1]] @ wide(w[e])
    return Program(text, {"x": x, "w": w, "first": first}, {"y": y}, 1, blocks=experts)


def quantized(ranks: int) -> Program:
    """Rows are quantized as they come, in blocks of 128, and multiplied with their scales."""
    rows = 6 * ranks
    x, w, t = of_ranks(1, ranks, (6, 256), "f32"), draw(2, (40, 256), "f8"), np.abs(draw(4, (1, 2), "f32")) + 0.1
    text = f"""
@kernel
def f(x: f32[Window, 6, 256], q: f8[Array, {rows}, 256], s: f32[Array, {rows}, 2], w: f8[Array, 40, 256],
      t: f32[Array, 1, 2], y: f32[Array, {rows}, 40]):
    def pack(a):
        left, right = abs(a[0:128]).max() / 448.0, abs(a[128:256]).max() / 448.0
        return concatenate((a[0:128] / left, a[128:256] / right)), concatenate((left, right))
    all_gather(x, outs=(q, s), consume=pack)
    {MEET}
    for i in range(block_id() * 5, {rows}, num_blocks() * 5):
        contract(q[i:min(i + 5, {rows})], w.T, y[i:min(i + 5, {rows}), :], scales=(s, t))
"""
    blocks = np.concatenate(x).reshape(rows, 2, 128)
    scales = np.abs(blocks).max(2, keepdims=True) / np.float32(448)
    every = wide((blocks / scales).astype(TYPES["f8"])) * wide(scales)
    weight = wide(w).reshape(40, 2, 128) * wide(t).reshape(1, 2, 1)
    y = every.reshape(rows, 256) @ weight.reshape(40, 256).T
    return Program(text, {"x": x, "w": w, "t": t}, {"y": y}, ranks)


def ring() -> Program:
    """Rows travel around a ring of three ranks, and are multiplied where they are."""
    x, w = of_ranks(1, 3, (16, 64), "bf16"), draw(5, (64, 48), "bf16")
    text = """
@kernel
def f(x: bf16[Array, 16, 64], w: bf16[Array, 64, 48], box: bf16[Window, 4, 16, 64], come: i64[Signal, 2],
      y: f32[Array, 48, 48]):
    world = team()
    after, before = (world.rank + 1) % 3, (world.rank + 2) % 3
    half = epoch() % 2 * 2
    put_signal(x[:], box[half], after, come[0])
    y[world.rank * 16:world.rank * 16 + 16] = x @ w
    wait_signal_from(come[0], before, ge=epoch())
    put_signal(box[half], box[half + 1], after, come[1])
    y[before * 16:before * 16 + 16] = box[half] @ w
    wait_signal_from(come[1], before, ge=epoch())
    y[after * 16:after * 16 + 16] = box[half + 1] @ w
"""
    return Program(text, {"x": x, "w": w}, {"y": np.concatenate(list(map(wide, x))) @ wide(w)}, 3, blocks=1)


PROGRAMS = {
    "gathered, 1 rank": gathered(1, 10, 65, 33, 16, "bf16"),
    "gathered, 2 ranks": gathered(2, 10, 64, 128, 24, "f16"),
    "gathered, 3 ranks": gathered(3, 7, 1, 5, 4, "f16"),
    "gathered, 5 ranks": gathered(5, 3, 129, 63, 10, "bf16"),
    **{f"reduced, {ranks} ranks": reduced(ranks, 9, 40, 24) for ranks in (1, 2, 3, 5)},
    "reduced, one term": reduced(2, 1, 1, 1),
    "scattered, 2 ranks": scattered(2),
    "scattered, 4 ranks": scattered(4),
    "exchanged, 2 ranks": exchanged(2),
    "exchanged, 3 ranks": exchanged(3),
    "dispatched": dispatched([[1, 3, 0], [2, 0, 4], [0, 0, 4]]),
    "dispatched to one": dispatched([[0, 8], [0, 8]]),
    "dispatched, nothing": dispatched([[0, 0], [0, 0]]),
    "grouped": grouped([7, 0, 30, 13]),
    "grouped, one expert": grouped([0, 0, 50, 0]),
    "grouped, nothing": grouped([0, 0, 0]),
    "quantized, 2 ranks": quantized(2),
    "quantized, 3 ranks": quantized(3),
    "ring": ring(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(load: Load, name: str) -> None:
    program = PROGRAMS[name]
    kernel = load(program.text).f
    runs = [
        kernel.simulate(program.ranks, program.given, blocks=program.blocks, launches=2, seed=seed) for seed in (1, 2)
    ]
    for array, wanted in program.wanted.items():
        for rank in range(program.ranks):
            got, want = runs[0][array][rank], wanted[rank] if isinstance(wanted, list) else wanted
            np.testing.assert_allclose(wide(got), want, rtol=program.error, atol=program.error * np.abs(want).max())
            assert got.tobytes() == runs[1][array][rank].tobytes()
            if not isinstance(wanted, list):
                assert got.tobytes() == runs[0][array][0].tobytes()
