"""Matrix products against NumPy, and the examples that overlap them with communication."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import ml_dtypes
import numpy as np
import pytest
from commsir.examples import layers
from commsir.examples import matmul as example

Load = Callable[[str], ModuleType]
TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}


def draw(seed: int, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(TYPES[kind])


def check(got: Any, a: Any, b: Any, before: Any = 0.0, step: float = 2.0**-24) -> None:
    """The bound of docs/Spec.md: |error| <= 2 K eps sum |a||b|, and a rounding to what is stored."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    right = x @ y + np.asarray(before, np.float64)
    bound = 2 * (x.shape[1] + 1) * 2.0**-24 * (np.abs(x) @ np.abs(y) + np.abs(before)) + step * np.abs(right)
    assert np.all(np.abs(np.asarray(got, np.float64) - right) <= bound + 1e-30)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 5, 3), (37, 53, 29), (16, 64, 48), (5, 1, 33)])
@pytest.mark.parametrize(
    "kinds", [("f32", "f32"), ("bf16", "bf16"), ("f16", "f16"), ("f8", "f8e5m2"), ("f8e5m2", "f8")]
)
@pytest.mark.parametrize("form", ["a @ b", "a.T @ b", "a @ b.T", "a.T @ b.T"])
def test_forms(load: Load, m: int, k: int, n: int, kinds: tuple[str, str], form: str) -> None:
    """Operands as they are and transposed."""
    a_shape = (k, m) if "a.T" in form else (m, k)
    b_shape = (n, k) if "b.T" in form else (k, n)
    module = load(
        f"@kernel\ndef f(a: {kinds[0]}[Array, {a_shape[0]}, {a_shape[1]}], b: {kinds[1]}[Array, {b_shape[0]}, "
        f"{b_shape[1]}], c: f32[Array, {m}, {n}]):\n    c[:, :] = {form}\n"
    )
    a, b = draw(0, a_shape, kinds[0]), draw(1, b_shape, kinds[1])
    got = module.f.simulate(1, {"a": a, "b": b})["c"][0]
    check(got, a.T if "a.T" in form else a, b.T if "b.T" in form else b)


@pytest.mark.parametrize(("m", "k", "n"), [(37, 53, 29), (16, 16, 32), (3, 80, 70)])
@pytest.mark.parametrize("kind", ["f32", "bf16", "f16"])
def test_ragged(load: Load, m: int, k: int, n: int, kind: str) -> None:
    """Tiles of which the last are shorter, added to what is there."""
    module = load(
        f"@kernel\ndef f(a: {kind}[Array, {m}, {k}], b: {kind}[Array, {k}, {n}], c: {kind}[Array, {m}, {n}]):\n"
        f"    for i in range(block_id() * 16, {m}, num_blocks() * 16):\n"
        f"        for j in range(0, {n}, 32):\n"
        f"            c[i:min(i + 16, {m}), j:min(j + 32, {n})] += a[i:min(i + 16, {m})] @ b[:, j:min(j + 32, {n})]\n"
    )
    a, b, c = draw(0, (m, k), kind), draw(1, (k, n), kind), draw(2, (m, n), kind)
    got = module.f.simulate(1, {"a": a, "b": b, "c": c}, blocks=2)["c"][0]
    check(got, a, b, c, {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}[kind])


def test_matrices_without_terms(load: Load) -> None:
    """Matrices without columns, or rows, still have rows, or columns."""
    module = load(
        "@kernel\ndef f(a: f32[Array, 37, 0], b: f32[Array, 0, 29], c: f32[Array, 37, 29]):\n"
        "    for i in range(block_id() * 16, 37, num_blocks() * 16):\n"
        "        c[i:min(i + 16, 37)] = a[i:min(i + 16, 37)] @ b\n"
    )
    given = {"a": np.zeros((37, 0), np.float32), "b": np.zeros((0, 29), np.float32), "c": draw(2, (37, 29), "f32")}
    assert not module.f.simulate(1, given, blocks=2)["c"][0].any()


@pytest.mark.parametrize(("m", "k", "n"), [(0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0)])
@pytest.mark.parametrize("kind", ["f32", "bf16", "f8"])
def test_empty(load: Load, m: int, k: int, n: int, kind: str) -> None:
    """Matrices without rows or columns, whole and in parts, with what is there."""
    rows, columns = f"i:min(i + 4, {m})", f"j:min(j + 4, {n})"
    module = load(
        f"@kernel\ndef f(a: {kind}[Array, {m}, {k}], b: {kind}[Array, {k}, {n}], c: f32[Array, {m}, {n}], "
        f"d: f32[Array, {m}, {n}]):\n"
        f"    for i in range(block_id() * 4, {m}, num_blocks() * 4):\n"
        f"        for j in range(0, {n}, 4):\n"
        f"            c[{rows}, {columns}] = a[{rows}, :] @ b[:, {columns}]\n"
        f"            d[{rows}, {columns}] += a[{rows}] @ b[:, {columns}]\n"
    )
    a, b, d = draw(0, (m, k), kind), draw(1, (k, n), kind), draw(2, (m, n), "f32")
    made = module.f.simulate(1, {"a": a, "b": b, "d": d}, blocks=2)
    check(made["c"][0], a, b)
    check(made["d"][0], a, b, d)


def test_empty_tile(load: Load) -> None:
    """A row without elements is no tile."""
    module = load("@kernel\ndef f(a: f32[Array, 4, 0], y: f32[Array, 4]):\n    y[:] = a[0, :]\n")
    with pytest.raises(commsir.CompileError, match="at least one element"):
        str(module.f.ir)


def test_ragged_and_transposed(load: Load) -> None:
    """Ends that are calculated, on both sides."""
    module = load(
        "@kernel\ndef f(a: f16[Array, 20, 37], b: f16[Array, 29, 20], c: f32[Array, 37, 29]):\n"
        "    for i in range(0, 37, 16):\n"
        "        for j in range(0, 29, 16):\n"
        "            c[i:min(i + 16, 37), j:min(j + 16, 29)] = a[:, i:min(i + 16, 37)].T @ b[j:min(j + 16, 29)].T\n"
    )
    a, b = draw(0, (20, 37), "f16"), draw(1, (29, 20), "f16")
    check(module.f.simulate(1, {"a": a, "b": b})["c"][0], a.T, b.T)


def test_named(load: Load) -> None:
    """A product that has a name is scratch memory, whose rows are tiles."""
    module = load(
        "@kernel\ndef f(a: bf16[Array, 2, 24, 40], b: bf16[Array, 40, 20], bias: f32[Array, 20], c: f32[Array, 24, 20]):\n"  # noqa: E501
        "    for i in range(0, 24, 8):\n"
        "        p = a[1, i:i + 8, 0:8] @ b[0:8, :]\n"
        "        for k in range(8, 40, 8):\n"
        "            p += a[1, i:i + 8, k:k + 8] @ b[k:k + 8, :]\n"
        "        for r in range(8):\n"
        "            c[i + r] = maximum(p[r] + bias[:], 0.0)\n"
    )
    a, b, bias = draw(0, (2, 24, 40), "bf16"), draw(1, (40, 20), "bf16"), draw(2, (20,), "f32")
    got = module.f.simulate(1, {"a": a, "b": b, "bias": bias})["c"][0]
    right = np.maximum(a[1].astype(np.float64) @ b.astype(np.float64) + bias, 0)
    np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def test_named_and_shorter(load: Load) -> None:
    """A named product that does not fill its tile is added to and multiplied as far as it goes."""
    rows = "i:min(i + 8, 21)"
    module = load(
        "@kernel\ndef f(a: bf16[Array, 21, 40], b: bf16[Array, 40, 20], v: f32[Array, 20, 12], c: f32[Array, 21, 12], "
        "d: f32[Array, 20, 21]):\n"
        "    for i in range(0, 21, 8):\n"
        f"        p = a[{rows}, 0:24] @ b[0:24, :]\n"
        f"        p += a[{rows}, 24:40] @ b[24:40, :]\n"
        f"        c[{rows}] = p @ v\n"
        "        for j in range(0, 20, 16):\n"
        f"            q = b[:, j:min(j + 16, 20)].T @ a[{rows}].T\n"
        f"            d[j:min(j + 16, 20), {rows}] = b[:, j:min(j + 16, 20)].T @ a[{rows}].T + q\n"
    )
    a, b, v = draw(0, (21, 40), "bf16"), draw(1, (40, 20), "bf16"), draw(2, (20, 12), "f32")
    got = module.f.simulate(1, {"a": a, "b": b, "v": v})
    right = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(got["c"][0], right @ v, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(got["d"][0], 2 * right.T, rtol=1e-5, atol=1e-4)


def test_parts_from_a_constant(load: Load) -> None:
    """Parts that begin at a constant and end at the lesser of two numbers."""
    module = load(
        "@kernel\ndef f(a: f32[Array, 20, 12], b: f32[Array, 12, 16], c: f32[Array, 20, 16], m: index, k: index, "
        "n: index):\n    c[4:min(20, m), :min(16, n)] = a[4:min(20, m), 0:k] @ b[:k, 0:min(n, 16)]\n"
    )
    a, b = draw(0, (20, 12), "f32"), draw(1, (12, 16), "f32")
    got = module.f.simulate(1, {"a": a, "b": b, "m": 17, "k": 9, "n": 11})["c"][0]
    check(got[4:17, :11], a[4:17, :9], b[:9, :11])
    assert not got[:4].any() and not got[17:].any() and not got[:, 11:].any()


def test_no_terms(load: Load) -> None:
    """A product of no terms is 0, or what is there."""
    module = load(
        "@kernel\ndef f(a: bf16[Array, 20, 32], b: bf16[Array, 32, 24], p: f8[Array, 20, 32], q: f8[Array, 32, 24], "
        "s: f32[Array, 1, 1], c: f32[Array, 20, 24], d: f32[Array, 20, 24], e: f32[Array, 20, 24], k: index):\n"
        "    c[:, :] = a[:, 0:k] @ b[0:k, :]\n"
        "    d[:, :] += a[:, 0:k] @ b[0:k, :]\n"
        "    contract(p[:, 0:k], q[0:k, :], e, accumulate=True, scales=(s, s))\n"
    )
    a, b, c = draw(0, (20, 32), "bf16"), draw(1, (32, 24), "bf16"), draw(2, (20, 24), "f32")
    p, q, s = a.astype(TYPES["f8"]), b.astype(TYPES["f8"]), np.full((1, 1), 3, np.float32)
    made = module.f.simulate(1, {"a": a, "b": b, "p": p, "q": q, "s": s, "c": c, "d": c, "e": c, "k": 0})
    assert not made["c"][0].any()
    for name in ("d", "e"):
        np.testing.assert_array_equal(made[name][0], c)


def test_out_of_bounds(load: Load) -> None:
    """A part that leaves its array ends the run."""
    module = load(
        "@kernel\ndef f(a: f32[Array, 8, 8], b: f32[Array, 8, 8], c: f32[Array, 8, 8], i: index):\n"
        "    c[0:4, 0:4] = a[i:i + 4, :] @ b[:, 4:8]\n"
    )
    a = draw(0, (8, 8), "f32")
    check(module.f.simulate(1, {"a": a, "b": a, "i": 4})["c"][0][:4, :4], a[4:], a[:, 4:])
    with pytest.raises(commsir.BoundsError, match="read of a, counted by rows"):
        module.f.simulate(1, {"a": a, "b": a, "i": 5})


def test_added_with_addends(load: Load) -> None:
    """A product and addends, added to what is there."""
    module = load(
        "@kernel\ndef f(a: bf16[Array, 20, 32], b: bf16[Array, 32, 24], d: f32[Array, 20, 24], e: bf16[Array, 30, 24], "
        "c: f32[Array, 20, 24], y: f32[Array, 20, 24]):\n"
        "    c[:, :] += a @ b + d + e[10:30]\n"
        "    contract(a, b, y, plus=d)\n"
    )
    a, b, d, e = (
        draw(i, s, k)
        for i, (s, k) in enumerate([((20, 32), "bf16"), ((32, 24), "bf16"), ((20, 24), "f32"), ((30, 24), "bf16")])
    )
    made = module.f.simulate(1, {"a": a, "b": b, "d": d, "e": e, "c": d})
    check(made["c"][0], a, b, 2 * d.astype(np.float64) + e[10:].astype(np.float64))
    check(made["y"][0], a, b, d)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("c[:, :] -= a @ b", "'-=' of a product of matrices(.|\n)*name it"),
        ("c[:, :] = a @ b @ d", "a product of matrices, which is not a matrix(.|\n)*store the first product"),
        ("contract(a, b, c, plus=s)", "a product of 16 rows plus 1 rows"),
        ("contract(p, q, c, scales=s)", "1 arrays of scales(.|\n)*scales=.left, right"),
    ],
)
def test_wrong_statements(load: Load, statement: str, said: str) -> None:
    """What is not a product of two matrices, in the words of the kernel."""
    module = load(
        "@kernel\ndef f(a: bf16[Array, 16, 32], b: bf16[Array, 32, 8], d: bf16[Array, 8, 4], p: f8[Array, 16, 32], "
        f"q: f8[Array, 32, 8], s: f32[Array, 1, 8], c: f32[Array, 16, 8]):\n    {statement}\n"
    )
    with pytest.raises(commsir.CompileError, match=said):
        str(module.f.ir)


IN_PLACE = """
@kernel
def f(x: f32[Window, 64, 16], w: f32[Array, 16, 16], d: f32[Array, 32, 16]):
    mine = x.peer((rank() + turn) % ranks)
    mine[first:first + 32, :] = x[0:32] @ w + d
"""


@pytest.mark.parametrize(
    ("ranks", "turn", "first", "is_right"),
    [(2, 0, 0, False), (2, 0, 31, False), (2, 0, 32, True), (2, 1, 0, True), (1, 1, 0, False)],
)
def test_in_place(load: Load, ranks: int, turn: int, first: int, is_right: bool) -> None:
    """A product is not stored where it is read, also by another name of the memory."""
    module = load(
        IN_PLACE.replace("turn", str(turn)).replace("first", str(first)).replace("ranks", str(ranks))
        + "    barrier()\n" * turn
    )
    if is_right and turn == 0:
        assert "proven" in str(module.f.check(ranks=ranks))
    elif is_right:  # The peer reads there at the same time.
        with pytest.raises(commsir.CheckError, match="no order"):
            module.f.check(ranks=ranks)
    else:
        with pytest.raises(commsir.CheckError, match="this product reads elements that it writes itself"):
            module.f.check(ranks=ranks)


def spread(scales: Any, shape: tuple[int, ...]) -> Any:
    """Scales as a factor of each element of an array."""
    wide = scales.astype(np.float64)
    for axis, size in enumerate(shape):
        if scales.shape[axis] not in (1, size):
            wide = np.repeat(wide, 128, axis)
        wide = wide[:size] if axis == 0 else wide[:, :size]
    return np.broadcast_to(wide, shape)


SCALES = [
    (330, left, right, form)
    for left, form in (
        ("1x128", "a, b"),
        ("128x128", "a.T, b.T"),
        ("row", "a, b"),
        ("128 rows", "a.T, b.T"),
        ("one", "a, b"),
        ("all rows x128", "a.T, b.T"),
    )
    for right in ("1x128", "128x128", "row", "one")
]
SCALES += [(64, "1x128", "128x128", "a, b"), (128, "1x128", "128x128", "a.T, b.T"), (256, "128x128", "1x128", "a, b")]


@pytest.mark.parametrize(("k", "left", "right", "form"), SCALES)
def test_scales(load: Load, k: int, left: str, right: str, form: str) -> None:
    """fp8 with scales of every kind, in tiles that begin and end within blocks, against float64."""
    m, n = 150, 140
    blocks = -(-k // 128)
    of_row = {"1x128": (0, blocks), "128x128": (2, blocks), "row": (0, 1), "128 rows": (2, 1), "one": (1, 1)}
    of_row["all rows x128"] = (1, blocks)
    p_shape, q_shape = ((of_row[kind][0] or size, of_row[kind][1]) for kind, size in ((left, m), (right, n)))
    a, b = draw(0, (m, k), "f8"), draw(1, (n, k), "f8e5m2")
    p, q, d = draw(2, p_shape, "f32"), draw(3, q_shape, "f32"), draw(4, (m, n), "f32")
    want = (a * spread(p, a.shape)) @ (b * spread(q, b.shape)).T + d
    size = (np.abs(a).astype(np.float64) * np.abs(spread(p, a.shape))) @ np.abs(b * spread(q, b.shape)).T + np.abs(d)
    # The array of the left operand lies transposed in one form, that of the right one in the other.
    a, p = (a.T, p.T) if "a.T" in form else (a, p)
    b, q = (b, q) if "b.T" in form else (b.T, q.T)
    rows, columns = "i:min(i + 48, m)", "j:min(j + 40, n)"
    x = f"a[:, {rows}].T" if "a.T" in form else f"a[{rows}]"
    y = f"b[{columns}].T" if "b.T" in form else f"b[:, {columns}]"
    module = load(
        f"m, n = {m}, {n}\n@kernel\ndef f(a: f8[Array, {a.shape[0]}, {a.shape[1]}], b: f8e5m2[Array, {b.shape[0]}, "
        f"{b.shape[1]}], p: f32[Array, {p.shape[0]}, {p.shape[1]}], q: f32[Array, {q.shape[0]}, {q.shape[1]}], "
        f"d: f32[Array, {m}, {n}], c: f32[Array, {m}, {n}], e: f32[Array, {m}, {n}]):\n"
        "    for i in range(block_id() * 48, m, num_blocks() * 48):\n"
        "        for j in range(0, n, 40):\n"
        f"            contract({x}, {y}, c[{rows}, {columns}], plus=(d[{rows}, {columns}],), scales=(p, q))\n"
        f"            contract({x}, {y}, e[{rows}, {columns}], accumulate=True, scales=(p, q))\n"
    )
    given = {"a": a, "b": b, "p": p, "q": q, "d": d, "e": d}
    got = module.f.simulate(1, {name: np.ascontiguousarray(value) for name, value in given.items()}, blocks=2)
    bound = (2 * (k + 1) + 4 * blocks) * 2.0**-24 * size
    for name in ("c", "e"):
        assert np.all(np.abs(got[name][0].astype(np.float64) - want) <= bound), name


def test_scales_begin_with_blocks(load: Load) -> None:
    """A part of the depth that begins within a block of scales ends the run."""
    module = load(
        "@kernel\ndef f(a: f8[Array, 16, 256], b: f8[Array, 256, 16], p: f32[Array, 16, 2], q: f32[Array, 1, 1], "
        "c: f32[Array, 16, 16], k: index):\n"
        "    contract(a[:, k:k + 128], b[k:k + 128, :], c, scales=(p, q))\n"
    )
    a, b, p = draw(0, (16, 256), "f8"), draw(1, (256, 16), "f8"), draw(2, (16, 2), "f32")
    given = {"a": a, "b": b, "p": p, "q": np.full((1, 1), 2, np.float32)}
    got = module.f.simulate(1, {**given, "k": 128})["c"][0]
    want = (a * spread(p, a.shape))[:, 128:] @ b.astype(np.float64)[128:] * 2
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    with pytest.raises(commsir.BoundsError, match="first term in its block of the left operand's scales"):
        module.f.simulate(1, {**given, "k": 64})


@pytest.mark.parametrize(
    ("types", "scales", "said"),
    [
        ("f8", "(p,)", "1 arrays of scales(.|\n)*scales=.left, right"),
        ("bf16", "(p, q)", "scales of a matrix of bf16"),
        ("f8", "(h, q)", "scales of the left operand are bf16(.|\n)*scales are f32"),
        ("f8", "(p, q[0])", "scales of the right operand are a tile(.|\n)*give the whole array"),
        ("f8", "(q, p)", "scales of the left operand are.*give 1 or 2 along its terms.*C10"),
        ("f8", "(p, a)", "scales of the right operand are f8"),
    ],
)
def test_wrong_scales(load: Load, types: str, scales: str, said: str) -> None:
    module = load(
        f"@kernel\ndef f(a: {types}[Array, 16, 256], b: {types}[Array, 256, 16], p: f32[Array, 16, 2], "
        "q: f32[Array, 2, 1], h: bf16[Array, 16, 2], c: f32[Array, 16, 16]):\n"
        f"    contract(a, b, c, scales={scales})\n"
    )
    with pytest.raises(commsir.CompileError, match=said):
        str(module.f.ir)


GATHERED = """
@kernel
def layer(
    x: f8[Window, 16, 256], s: f32[Window, 16, 2], w: f8[Array, 40, 256], t: f32[Array, 1, 2],
    rows: f8[Array, 16 * ranks, 256], of_rows: f32[Array, 16 * ranks, 2], y: bf16[Array, 16 * ranks, 40],
):
    all_gather(x, outs=(rows,))
    all_gather(s, outs=(of_rows,))
    barrier(team_split(team(), "inner", 1), "grid")
    for i in range(block_id() * 24, 16 * ranks, num_blocks() * 24):
        part = rows[i:min(i + 24, 16 * ranks)]
        contract(part, w.T, y[i:min(i + 24, 16 * ranks), :], scales=(of_rows, t))
"""


def test_gathered_with_scales(load: Load) -> None:
    """Rows of fp8 and their scales are gathered in the kernel that multiplies them."""
    module = load(GATHERED.replace("ranks", "4"))
    x, s = (
        [draw(seed + rank, shape, kind) for rank in range(4)]
        for seed, shape, kind in ((0, (16, 256), "f8"), (9, (16, 2), "f32"))
    )
    w, t = draw(20, (40, 256), "f8"), draw(21, (1, 2), "f32")
    report = module.layer.simulate(4, {"x": x, "s": s, "w": w, "t": t}, blocks=3, launches=2)
    every = np.concatenate(x) * spread(np.concatenate(s), (64, 256))
    for got in report["y"]:
        check(got, every, (w * spread(t, w.shape)).T, step=2.0**-8)


def test_gathered_scales_are_awaited(load: Load) -> None:
    """Without the barrier blocks would read scales that others have received."""
    module = load(GATHERED.replace("ranks", "4").replace('    barrier(team_split(team(), "inner", 1), "grid")\n', ""))
    with pytest.raises(commsir.CheckError, match="of_rows|rows"):
        module.layer.check(ranks=4, blocks=3)


@pytest.mark.parametrize("world", [2, 3, 4])
def test_examples(world: int) -> None:
    example.main(world)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_layers(world: int) -> None:
    layers.main(world)


@pytest.mark.parametrize(("kernel", "blocks"), [("gated", 3), ("linear", 2), ("decode", None)])
def test_layers_need_their_barriers(load: Load, kernel: str, blocks: int | None) -> None:
    """Without one of the barriers of a rank's blocks, a layer is refused."""
    text = Path(layers.__file__).read_text().replace("from __future__ import annotations\n", "")
    start = text.index(f"def {kernel}(")
    end = text.index("\n\n\n", start)
    calls = [call.start() for call in re.finditer(r"(?m)^    together\(\)$", text) if start < call.start() < end]
    assert calls
    for at in calls:
        made = getattr(load(text[:at] + "    pass" + text[at + len("    together()") :]), kernel)
        with pytest.raises(commsir.CheckError):
            made.specialize(m=20, h=64, n=24).check(ranks=2, blocks=blocks)


# Of an example, a line and what it becomes: each takes a synchronization away.
MUTANTS = {
    "no-wait": (r"wait_signal_from\(come.*", "pass", "all_gather_matmul"),
    "wrong-tile": (
        r"come\[source \* tiles \+ i % tiles\], source",
        "come[source * tiles], source",
        "all_gather_matmul",
    ),
    "no-wait-for-scales": (r"wait_signal_from\(come.*", "pass", "all_gather_matmul_fp8"),
    "late-scales": (
        r"( +put\(x_scales.*\n)((?: +.*\n)*?)( +\)\n)",
        r"\2\3\1",
        "all_gather_matmul_fp8",
    ),
    "one-half-of-scales": (r"box_scales\[half \+ world.rank", "box_scales[world.rank", "all_gather_matmul_fp8"),
    "one-half": (r"half = epoch\(\) % 2 \* world.size", "half = 0", "all_gather_matmul"),
    "no-signal": (r"signal\(done.*", "pass", "matmul_reduce_scatter"),
    "early-signal": (
        r"(            box.peer.*)\n(            signal\(done.*)",
        r"\2\n\1",
        "matmul_reduce_scatter",
    ),
    "relaxed": (r"(signal\(done.*)\)", r'\1, order="relaxed")', "matmul_reduce_scatter"),
    "no-wait-to-add": (r"wait_signal_from\(done.*", "pass", "matmul_reduce_scatter"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants(load: Load, name: str) -> None:
    """Without one of its synchronizations an example is refused."""
    pattern, instead, kernel = MUTANTS[name]
    text = Path(example.__file__).read_text().replace("from __future__ import annotations\n", "")
    changed, count = re.subn(pattern, instead, text)
    assert count >= 1
    module = load(changed)
    made = getattr(module, kernel).specialize(rows=32, k=48, n=24)
    with pytest.raises(commsir.CheckError):
        made.check(ranks=4)
