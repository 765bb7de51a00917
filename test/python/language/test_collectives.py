"""Collectives, fused and plain: NumPy's results for shapes, types, algorithms and protocols."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import numpy as np
import pytest
from commsir.language import source
from commsir.language.dtypes import BY_NAME, narrow, widen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

Load = Callable[[str], ModuleType]
Bits = np.ndarray[Any, Any]

TOLERANCE = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}
WAYS = [("one_shot", "pull"), ("one_shot", "ll"), ("one_shot", "lamport"), ("two_shot", "pull"), ("two_shot", "ll")]
WAYS += [("two_shot", "lamport"), ("ring", "pull"), ("ring", "ll"), ("one_shot", "ll128"), ("ring", "ll128")]


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Bits:
    """Values that the type holds exactly."""
    if dtype.startswith("i"):
        return rng.integers(-50, 50, shape).astype(BY_NAME[dtype].numpy)
    known = BY_NAME[dtype]
    return widen(narrow(rng.uniform(-1, 1, shape), known), known)


def _module(load: Load, dtype: str, shape: str, out: str, call: str) -> ModuleType:
    return load(f'@kernel\ndef k(x: {dtype}[Window, "{shape}"], y: {dtype}[Array, "{out}"]):\n    {call}\n')


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    ranks=st.integers(1, 5),
    rows=st.integers(1, 5),
    columns=st.integers(1, 70),
    dtype=st.sampled_from(["f32", "bf16", "f16", "f64", "i32", "i64"]),
    way=st.sampled_from(WAYS),
    op=st.sampled_from(["sum", "max", "min", "avg"]),
    blocks=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_all_reduce(
    load: Load, ranks: int, rows: int, columns: int, dtype: str, way: tuple[str, str], op: str, blocks: int, seed: int
) -> None:
    algorithm, protocol = way
    if protocol == "lamport" and dtype not in ("f32", "bf16", "f16"):
        protocol = "ll"
    module = _module(load, dtype, f"{rows}, {columns}", f"{rows}, {columns}", f"all_reduce(x, outs=y, op='{op}')")
    rng = np.random.default_rng(seed)
    x = [_random(rng, (rows, columns), dtype) for _ in range(ranks)]
    report = module.k.simulate(ranks, {"x": x}, blocks=blocks, algorithm=algorithm, protocol=protocol)
    wide = np.stack(x).astype(np.float64 if dtype[0] in "fb" else np.int64)
    reductions: dict[str, Any] = {"sum": wide.sum, "max": wide.max, "min": wide.min, "avg": wide.mean}
    wanted = reductions[op](axis=0)
    if op == "avg" and dtype[0] == "i":
        wanted = np.trunc(wanted)
    for y in report["y"]:
        atol = TOLERANCE.get(dtype, 0) * ranks
        np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=TOLERANCE.get(dtype, 0), atol=atol)


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e5, -3e5, 57344, 448, 1e-3, 1e-8, 65504]


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    ranks=st.integers(1, 8),
    shape=st.sampled_from([(1, 1), (3, 7), (1, 129), (5, 33), (0, 4), (9, 8)]),
    dtype=st.sampled_from(["f64", "f32", "bf16", "f16", "f8", "f8e5m2", "i8", "i16", "i32"]),
    algorithm=st.sampled_from(["one_shot", "two_shot"]),
    protocol=st.sampled_from(["pull", "ll", "ll128"]),
    op=st.sampled_from(["sum", "prod", "max", "min", "avg"]),
    seed=st.integers(0, 1000),
)
def test_bits(
    load: Load, ranks: int, shape: tuple[int, int], dtype: str, algorithm: str, protocol: str, op: str, seed: int
) -> None:
    """To the bit what docs/Spec.md promises: NaN, infinities, zeros of both signs, overflow, odd and no sizes."""
    pytest.importorskip("ml_dtypes")
    import reference

    types = {"bf16": reference.BF16, "f8": reference.F8, "f8e5m2": reference.E5M2}
    numpy = types.get(dtype, BY_NAME[dtype].numpy)
    rng = np.random.default_rng(seed)
    if dtype[0] == "i":
        x = [rng.integers(-100, 100, shape).astype(numpy) for _ in range(ranks)]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            x = [
                np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), rng.normal(size=shape)).astype(numpy)
                for _ in range(ranks)
            ]
    call = f"all_reduce(x, outs=y, op='{op}')"
    text = f"{shape[0]}, {shape[1]}"
    report = _module(load, dtype, text, text, call).k.simulate(ranks, {"x": x}, algorithm=algorithm, protocol=protocol)
    # Of f64 nothing is rounded underway.
    wanted = getattr(reference, "one_shot" if dtype == "f64" else algorithm)(op, x)
    for y in report["y"]:
        got = y if dtype in ("f64", "f32", "f16") or dtype[0] == "i" else narrow(y, BY_NAME[dtype])
        np.testing.assert_array_equal(reference.bits(got), reference.bits(wanted))


OTHERS: dict[str, tuple[str, str, str, Callable[..., Any]]] = {
    "reduce_scatter": ("8, 16", "2, 16", "reduce_scatter(x, outs=y)", lambda x, r: np.sum(x, 0)[2 * r : 2 * r + 2]),
    "all_gather": ("2, 16", "8, 16", "all_gather(x, outs=y)", lambda x, r: np.concatenate(x)),
    "all_to_all": (
        "8, 16",
        "8, 16",
        "all_to_all(x, outs=y)",
        lambda x, r: np.concatenate([part[2 * r : 2 * r + 2] for part in x]),
    ),
    "broadcast": ("8, 16", "8, 16", "broadcast(x, root=2, outs=y)", lambda x, r: x[2]),
    "reduce": ("8, 16", "8, 16", "reduce(x, root=1, outs=y)", lambda x, r: sum(x) if r == 1 else 0 * x[0]),
    "gather": ("2, 16", "8, 16", "gather(x, root=3, outs=y)", lambda x, r: np.concatenate(x) * (r == 3)),
    "scatter": ("8, 16", "2, 16", "scatter(x, root=1, outs=y)", lambda x, r: x[1][2 * r : 2 * r + 2]),
    "send_recv": ("8, 16", "8, 16", "send_recv(x, 3, 0, outs=y)", lambda x, r: x[3] * (r == 0)),
}


@pytest.mark.parametrize(("name", "dtype"), list(itertools.product(OTHERS, ["f32", "bf16", "f8e5m2", "i32", "i8"])))
def test_others(load: Load, name: str, dtype: str) -> None:
    shape, out, call, wanted = OTHERS[name]
    rng = np.random.default_rng(7)
    x = [_random(rng, tuple(map(int, shape.split(","))), dtype) // 1 % 5 for _ in range(4)]
    report = _module(load, dtype, shape, out, call).k.simulate(4, {"x": x})
    known = BY_NAME[dtype]
    for rank, y in enumerate(report["y"]):
        np.testing.assert_array_equal(y, widen(narrow(wanted(x, rank), known), known))


def test_all_to_all_v(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: f32[Window, 16, 4], y: f32[Array, 16, 4], to: i32[Array, 4], from_: i32[Array, 4]):\n"
        "    all_to_all_v(x, outs=y, send_rows=to, recv_rows=from_, max_rows=4)\n"
    )
    counts = np.array([[1, 2, 0, 4], [3, 0, 1, 2], [2, 2, 2, 2], [0, 1, 4, 1]], np.int32)
    x = np.random.default_rng(3).uniform(-1, 1, (4, 16, 4)).astype(np.float32)
    inputs = {"x": x, "to": list(counts), "from_": [counts[:, r] for r in range(4)]}
    got = module.k.simulate(4, inputs)["y"]
    starts = np.concatenate([np.zeros((4, 1), int), counts.cumsum(axis=1)], axis=1)
    for r in range(4):
        wanted = np.concatenate([x[p, starts[p, r] : starts[p, r + 1]] for p in range(4)])
        np.testing.assert_array_equal(got[r][: len(wanted)], wanted)


FUSED = """
EPSILON = 1e-6
def normalize(h, w):
    return h * rsqrt((h * h).mean() + EPSILON) * w
@kernel
def k(x: bf16[Window, "rows, n"], residual: bf16[Array, "rows, n"], weight: f32[Array, "n"],
      h: bf16[Array, "rows, n"], y: bf16[Array, "rows, n"]):
    def fused(total, residual, weight):
        h = total + residual
        return h, normalize(h, weight)
    all_reduce(x, outs=(h, y), args=(residual, weight), consume=fused)
"""


@pytest.mark.parametrize("way", WAYS)
def test_fused(load: Load, way: tuple[str, str]) -> None:
    """The residual, RMSNorm and a shared weight, as a function and a helper."""
    rng = np.random.default_rng(1)
    x, residual = [_random(rng, (6, 64), "bf16") for _ in range(3)], _random(rng, (6, 64), "bf16")
    weight = rng.uniform(0, 2, 64).astype(np.float32)
    report = load(FUSED).k.simulate(
        3, {"x": x, "residual": residual, "weight": weight}, algorithm=way[0], protocol=way[1]
    )
    h = sum(x) + residual
    y = h / np.sqrt((h * h).mean(axis=1, keepdims=True) + 1e-6) * weight
    for rank in range(3):
        np.testing.assert_allclose(report["h"][rank], h, rtol=1e-2, atol=1e-2)
        np.testing.assert_allclose(report["y"][rank], y, rtol=3e-2, atol=3e-2)
        np.testing.assert_array_equal(report["y"][rank], report["y"][0])


def test_produce_with_scales(load: Load) -> None:
    """Two tiles travel for a row: eight bits of each value, and a scale."""
    module = load(
        "@kernel\ndef k(x: f32[Window, 4, 32], y: f32[Array, 12, 32]):\n"
        "    def pack(row):\n        scale = abs(row).max() / 448.0\n        return (row / scale).astype(f8), scale\n"
        "    all_gather(x, outs=y, produce=pack, consume=lambda q, scale: q.astype(f32) * scale)\n"
    )
    x = np.random.default_rng(5).uniform(-3, 3, (3, 4, 32)).astype(np.float32)
    got = module.k.simulate(3, {"x": x})["y"][1]
    scale = np.abs(x).max(axis=2, keepdims=True) / np.float32(448)
    f8 = BY_NAME["f8"]
    wanted = widen(narrow(x / scale, f8), f8) * scale
    np.testing.assert_array_equal(got, wanted.reshape(12, 32))


def test_outside_a_kernel() -> None:
    rng = np.random.default_rng(2)
    x = [rng.uniform(-1, 1, (4, 8)).astype(np.float32) for _ in range(3)]
    np.testing.assert_allclose(commsir.all_reduce(x)[1], sum(x), rtol=1e-6)
    np.testing.assert_array_equal(commsir.all_reduce(x, op="max")[0], np.max(x, axis=0))
    np.testing.assert_array_equal(commsir.all_gather(x)[2], np.concatenate(x))
    np.testing.assert_array_equal(commsir.scatter([np.tile(v, (3, 1)) for v in x], root=1)[2], x[1])
    np.testing.assert_array_equal(commsir.send_recv(x, 0, 2)[2], x[0])
    residual, offset = rng.uniform(-1, 1, (4, 8)).astype(np.float32), 2.0
    results = commsir.all_reduce(
        x,
        args=(residual,),
        outs=(commsir.f32, "bf16"),
        consume=lambda t, r: (t + r, (t + r) * offset),
    )
    np.testing.assert_allclose(results[2][0], sum(x) + residual, rtol=1e-6)
    np.testing.assert_allclose(results[2][1], (sum(x) + residual) * 2, rtol=1e-2)
    with pytest.raises(commsir.CompileError, match="an array from outside"):
        commsir.all_reduce(x, consume=lambda t: t + residual)
    with pytest.raises(commsir.UsageError, match="cannot be shared out"):
        commsir.reduce_scatter(x)


@pytest.mark.parametrize("ranks", [1, 4])
def test_vectors(ranks: int) -> None:
    """Arrays of rank 1 are cut by elements, and their functions see pieces."""
    x = [np.arange(8, dtype=np.float32) + r for r in range(ranks)]
    parts = np.split(sum(x), ranks)
    for r in range(ranks):
        np.testing.assert_array_equal(commsir.reduce_scatter(x, consume=lambda t: t * 0.5)[r], parts[r] / 2)
        np.testing.assert_array_equal(commsir.scatter(x, consume=lambda t: -t)[r], -np.split(x[0], ranks)[r])
        got = commsir.all_to_all(x, produce=lambda t: t + 1.0)[r]
        np.testing.assert_array_equal(got, np.concatenate([np.split(v, ranks)[r] for v in x]) + 1)
        scaled = commsir.reduce_scatter(x, args=(parts,), consume=lambda t, p: t - p)[r]
        np.testing.assert_array_equal(scaled, 0 * parts[r])
        np.testing.assert_array_equal(commsir.all_gather(x, consume=lambda t: t * 2)[r], np.concatenate(x) * 2)


def test_two_lambdas_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lambda is found by its columns; without them (in Python 3.10) by what it does."""
    x = [np.ones((2, 4), np.float32)] * 2
    first, second = lambda t: t + 1.0, lambda t: t * 3.0  # noqa: E731
    assert commsir.all_reduce(x, consume=first)[0][0, 0] == 3
    assert commsir.all_reduce(x, consume=second)[0][0, 0] == 6
    monkeypatch.setattr(source, "_columns", lambda code: None)
    factor = 4.0
    third, fourth = lambda t: t * factor, lambda t: t - factor  # noqa: E731
    assert commsir.all_reduce(x, consume=first)[0][0, 0] == 3
    assert commsir.all_reduce(x, consume=second)[0][0, 0] == 6
    assert commsir.all_reduce(x, consume=third)[0][0, 0] == 8
    assert commsir.all_reduce(x, produce=lambda t: t + 1.0, consume=lambda t: t + 1.0)[0][0, 0] == 5
    assert commsir.all_reduce(x, consume=fourth)[0][0, 0] == -2


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "int32", "uint8"])
def test_tensors_of_torch_come_back(name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    x = [torch.full((2, 8), r + 1).to(dtype) for r in range(3)]
    result = commsir.all_reduce(x)
    assert all(isinstance(part, torch.Tensor) and part.dtype == dtype for part in result)
    assert (result[0].float() == 6).all() and x[0].float().max() == 1
    gathered = commsir.all_gather([part.t().contiguous() for part in x])[1]
    assert gathered.dtype == dtype and gathered.shape == (24, 2)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_arrays_come_back(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = [np.array([[0.5, -0.0, 1.75, np.nan]] * 2, dtype)] * 2
    result = commsir.all_reduce(x)[1]
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float32), [[1, 0, 3.5, np.nan]] * 2)
    # With a function of tiles, and into arrays of another type.
    assert commsir.all_reduce(x, consume=lambda total: total + total)[0].dtype == dtype
    wide, same = commsir.all_reduce(x, outs=(np.empty((2, 4), np.float32), x[0]), consume=lambda t: (t, t))[0]
    assert wide.dtype == np.float32 and same.dtype == dtype
    # A type without an array says nothing of what holds it.
    assert commsir.all_reduce(x, outs=commsir.bf16)[0].dtype == np.float32


class Foreign:
    """An array of a library of which DLPack is all that is known."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **wishes: object) -> object:
        return self.array.__dlpack__(**wishes)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_dlpack_is_enough() -> None:
    x = [Foreign(np.full((2, 4), r + 1, np.int32)) for r in range(3)]
    assert commsir.all_reduce(x)[1].tolist() == [[6] * 4] * 2
    text = """comms.kernel @sum(%x: !comms.window<4xf32>, %y: memref<4xf32>) {
      %team = comms.team world
      comms.all_reduce sum %team ins(%x : !comms.window<4xf32>) outs(%y : memref<4xf32>)
      comms.return
    }"""
    ones, y = [Foreign(np.ones(4, np.float32)) for _ in range(2)], [Foreign(np.zeros(4, np.float32)) for _ in range(2)]
    commsir.simulate(text, ranks=2, arrays={"x": ones, "y": y})
    assert y[1].array.tolist() == [2] * 4


def test_arguments_of_functions() -> None:
    """One array, too, and what is none."""
    rows, weight = [np.ones((2, 4), np.float32)] * 2, np.full(4, 3, np.float32)
    for args in (weight, [weight]):
        assert (commsir.all_reduce(rows, args=args, consume=lambda t, w: t * w)[0] == 6).all()
    for wrong in (1, [1, 2]):
        with pytest.raises(commsir.UsageError, match="send_rows are whole numbers: one for each rank, on each rank"):
            commsir.all_to_all_v(rows, send_rows=wrong, recv_rows=wrong)


def test_unsigned_integers_keep_their_type() -> None:
    total = commsir.all_reduce([np.array([100, 3], np.uint8)] * 2)[0]
    assert total.dtype == np.uint8 and total.tolist() == [200, 6]
    rows = [np.array([[20000, 3]], np.uint16)] * 2
    for result, wanted in ((commsir.all_reduce(rows)[0], [40000, 6]), (commsir.all_gather(rows)[0][1:], [20000, 3])):
        assert result.dtype == np.uint16 and result.tolist() == [wanted]
    for out, kind in ((rows[0], np.uint16), (commsir.i16, np.int16)):
        assert commsir.all_reduce(rows, outs=out)[0].dtype == kind


def test_rows_are_whole_numbers() -> None:
    x = [np.arange(8, dtype=np.float32).reshape(4, 2) + 10 * r for r in range(2)]
    y = commsir.all_to_all_v(x, send_rows=[[1, 3], [3, 1]], recv_rows=[[1, 3], [3, 1]])
    np.testing.assert_array_equal(y[0], np.concatenate([x[0][:1], x[1][:3]]))
    with pytest.raises(commsir.UsageError, match="send_rows are whole numbers"):
        commsir.all_to_all_v(x, send_rows=[[0.5, 3], [3, 1]], recv_rows=[[1, 3], [3, 1]])
