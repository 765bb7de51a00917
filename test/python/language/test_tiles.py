"""Arithmetic on tiles and scalars, against NumPy running the same function."""

# ruff: noqa: E501 (tables, and programs in strings)
from __future__ import annotations

import math
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from commsir.language.dtypes import BY_NAME, narrow, widen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Load = Callable[[str], ModuleType]


def _expression(r: random.Random, depth: int, names: list[str], floats: bool) -> str:
    if depth == 0:
        return r.choice(names)
    if depth == 1 and r.random() < 0.3:
        return f"({r.choice(names)} {r.choice('+-*')} {0.5 if floats else 3})"
    x, y = (_expression(r, depth - 1, names, floats) for _ in range(2))
    kinds = ["+", "-", "*", "min", "max", "where", "abs", "neg"] + ([] if floats else ["&", "|", "^", "//", "%"])
    kind = r.choice(kinds)
    if kind in ("min", "max"):
        return f"np.{kind}imum({x}, {y})"
    if kind == "where":
        return f"np.where({x} {r.choice(['<', '<=', '==', '!=', '>='])} {y}, {y}, {x})"
    if kind == "abs":
        return f"np.abs({x})"
    if kind == "neg":
        return f"(-({x}))"
    if kind in ("//", "%"):
        return f"({x} {kind} {r.choice([3, 7, -5])})"
    return f"({x} {kind} {y})"


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "i8", "i64"])
def test_parts(load: Load, kind: str) -> None:
    """Parts of tiles, of masks too, and tiles of parts: constants, loops and branches among them."""
    module = load(
        "def f(a, b):\n"
        "    turned = np.concatenate((-a[20:], a[:20]))\n"
        "    mask = np.concatenate((a[-3:] > b[:3], b[:-3] < 0))\n"
        "    c = np.where(mask, turned, np.concatenate((a[36:], b[5:9], b[1:2], a[4:35])))\n"
        "    return c + np.concatenate((c[1:], c[:1]))\n"
        f"@kernel\ndef k(p: {kind}[Array, 6, 37], out: {kind}[Array, 3, 37]):\n"
        "    for i in range(3):\n"
        "        t = f(p[2 * i], p[2 * i + 1])\n"
        "        if i > 0:\n"
        "            t = np.concatenate((t[30:], t[:30]))\n"
        "        out[i] = t\n"
    )
    rng = np.random.default_rng(5)
    p = rng.integers(-9, 9, (6, 37)).astype(module.k.parameters["p"].dtype.numpy)
    got = module.k.simulate(ranks=1, inputs={"p": p})["out"][0]
    want = [module.f(p[2 * i], p[2 * i + 1]) for i in range(3)]
    np.testing.assert_array_equal(got, [want[0], *(np.roll(row, 7) for row in want[1:])])


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 10**6),
    length=st.sampled_from([1, 5, 16, 37, 64]),
    kind=st.sampled_from(["f32", "f64", "i32", "i64"]),
)
def test_elementwise(load: Load, seed: int, length: int, kind: str) -> None:
    """`np` in the function means NumPy when Python runs it, and the ops when it is compiled."""
    floats = kind[0] == "f"
    text = _expression(random.Random(seed), 3, ["a", "b", "a", "b", "c"], floats)
    module = load(
        f"def f(a, b, c):\n    return a + {text}\n"
        f"@kernel\ndef k(p: {kind}[Array, 2, {length}], out: {kind}[Array, {length}], c: {kind}):\n"
        "    out[:] = f(p[0], p[1], c)\n"
    )
    rng = np.random.default_rng(seed)
    dtype = module.k.parameters["p"].dtype.numpy
    p = rng.uniform(-4, 4, (2, length)).astype(dtype) if floats else rng.integers(-9, 9, (2, length)).astype(dtype)
    with np.errstate(all="ignore"):
        wanted = module.f(p[0], p[1], dtype.type(3))
    got = module.k.simulate(1, {"p": p, "c": 3})["out"][0]
    np.testing.assert_array_equal(got, wanted.astype(dtype), err_msg=text)


@pytest.mark.parametrize(
    ("call", "reference", "low", "high"),
    [
        ("exp", np.exp, -5, 5),
        ("log", np.log, 0.1, 9),
        ("sqrt", np.sqrt, 0, 9),
        ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 9),
        ("tanh", np.tanh, -3, 3),
        ("math.sin", np.sin, -3, 3),
        ("np.cos", np.cos, -3, 3),
        ("erf", np.vectorize(math.erf), -2, 2),
        ("floor", np.floor, -9, 9),
        ("np.ceil", np.ceil, -9, 9),
        ("rint", np.rint, -9, 9),
        ("log1p", np.log1p, 0, 5),
        ("expm1", np.expm1, -2, 2),
    ],
)
def test_functions(load: Load, call: str, reference: Callable[..., Any], low: float, high: float) -> None:
    module = load(f"@kernel\ndef k(x: f32[Array, 50], y: f32[Array, 50]):\n    y[:] = {call}(x[:])\n")
    x = np.linspace(low, high, 50, dtype=np.float32)
    got = module.k.simulate(1, {"x": x})["y"][0]
    np.testing.assert_allclose(got, reference(x.astype(np.float64)), rtol=2e-6, atol=2e-6)


def test_reductions(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: f32[Array, 41], y: f32[Array, 6]):\n    t = x[:]\n"
        "    y[0], y[1], y[2], y[3] = t.sum(), t.max(), t.min(), t.mean()\n    y[4] = np.sum(t)\n    y[5] = max(t)\n"
    )
    x = np.random.default_rng(0).uniform(-1, 1, 41).astype(np.float32)
    wanted = [x.sum(), x.max(), x.min(), x.mean(), x.sum(), x.max()]
    np.testing.assert_allclose(module.k.simulate(1, {"x": x})["y"][0], wanted, rtol=1e-5)


def test_any_and_all(load: Load) -> None:
    """Of masks and numbers, as methods and functions; they decide branches and loops."""
    module = load(
        "@kernel\ndef k(x: f32[Array, 3, 37], y: i32[Array, 6]):\n"
        "    row = 0\n    while not (x[row] > 0).any():\n        row += 1\n    y[0] = row\n"
        "    y[1] = 1 if np.all(x[1] <= 0) else 0\n    y[2] = any(x[0]) + 2 * all(x[2])\n"
        "    y[3] = any((row > 5, x[0, 0] == 0, False))\n    y[4] = all((row > 0, True, row < 5))\n"
        "    y[5] = all(()) and not any(())\n"
    )
    x = np.zeros((3, 37), np.float32)
    x[2, 36] = 1
    assert module.k.simulate(1, {"x": x})["y"][0].tolist() == [2, 1, 0, 1, 1, 1]
    x[2], x[0, 5] = np.nan, -1
    x[2, 0] = 3
    assert module.k.simulate(1, {"x": x})["y"][0].tolist() == [2, 1, 3, 1, 1, 1]


def test_tiles_of_numpy(load: Load) -> None:
    module = load(
        "@kernel\ndef k(y: f32[Array, 5, 7]):\n    y[0], y[1], y[2] = np.zeros(7), np.ones(7), np.full(7, 2.5)\n"
        "    y[3], y[4] = np.arange(7), np.arange(-3, 4, dtype=np.int64)\n"
    )
    y = module.k.simulate(1)["y"][0]
    np.testing.assert_array_equal(y, [np.zeros(7), np.ones(7), np.full(7, 2.5), np.arange(7), np.arange(-3, 4)])


NARROW = {"f8": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "bf16": "bfloat16", "f16": "float16"}


@pytest.mark.parametrize("name", NARROW)
def test_rounding(name: str) -> None:
    """What arrays are rounded to and read as outside kernels: every code, and values between and beyond them."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    known, theirs = BY_NAME[name], np.dtype(getattr(ml_dtypes, NARROW[name], None) or np.float16)
    codes = np.arange(2**known.width).astype(f"u{known.width // 8}")
    values = widen(codes if name != "f16" else codes.view(np.float16), known).astype(np.float32)
    np.testing.assert_array_equal(values, codes.view(theirs).astype(np.float32))
    finite = np.sort(values[np.isfinite(values)]).astype(np.float64)
    between = np.concatenate([finite[1:] * w + finite[:-1] * (1 - w) for w in (0.25, 0.5, 0.75)])
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.concatenate([values, between, finite[-1] * np.array([1.01, 1.1, 2, -1.1, -9])]).astype(np.float32)
        wanted = np.clip(x, -448, 448).astype(theirs) if name == "f8" else x.astype(theirs)
    got = narrow(x, known).view(codes.dtype)
    np.testing.assert_array_equal(got[~np.isnan(x)], wanted.view(codes.dtype)[~np.isnan(x)])
    assert np.isnan(widen(narrow(x[np.isnan(x)], known), known)).all()


@pytest.mark.parametrize("name", NARROW)
def test_narrow_arithmetic(load: Load, name: str) -> None:
    """Each operation is computed in f32 and rounded once; NaN, infinities, zeros of both signs among the values."""
    module = load(
        f"@kernel\ndef k(a: {name}[Array, 777], b: {name}[Array, 777], y: {name}[Array, 6, 777], z: f64[Array, 777]):\n"
        "    s, t = a[:], b[:]\n    y[0], y[1], y[2] = s + t, s * t, -s\n"
        "    y[3], y[4], y[5] = s * 3.0 - t, maximum(s, t), where(s < t, s, t)\n    z[:] = s\n"
    )
    known, rng = BY_NAME[name], np.random.default_rng(11)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e5, -3e5, 60000, 1e-3, 1e-8, 448, -57344], np.float32)
    a = np.concatenate([rng.normal(size=633) * 10.0 ** rng.integers(-6, 5, 633), np.repeat(special, 12)])
    b = np.concatenate([rng.normal(size=633) * 10.0 ** rng.integers(-6, 5, 633), np.tile(special, 12)])
    report = module.k.simulate(1, {"a": a, "b": b})
    s, t = (widen(narrow(v, known), known).astype(np.float32) for v in (a, b))

    def rounded(values: Any) -> Any:
        return widen(narrow(values, known), known)

    with np.errstate(all="ignore"):
        greater = np.where((s > t) | ((s == t) & ~np.signbit(s)) | np.isnan(s), s, t)
        triple = rounded(s * np.float32(3)) - t
        wanted = [s + t, s * t, -s, triple, greater, np.where(s < t, s, t)]
    for got, want in zip(report["y"][0], wanted, strict=True):
        np.testing.assert_array_equal(got, rounded(want))
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(rounded(want)[got == 0]))
    np.testing.assert_array_equal(report["z"][0], s)


@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16", "f8", "f8e5m2"])
def test_constants_beyond_the_type(load: Load, name: str) -> None:
    """A number that the type lacks is its infinity, or in f8 the last number."""
    module = load(f"@kernel\ndef k(y: {name}[Array, 4]):\n    y[0], y[1] = 1e300, -1e300\n    y[2:4] = -math.inf\n")
    most = {"f64": 1e300, "f8": 448.0}.get(name, np.inf)
    least = -448.0 if name == "f8" else -np.inf
    assert module.k.simulate(1)["y"][0].tolist() == [most, -most, least, least]


@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16", "f8", "f8e5m2", "i64", "i32", "i16", "i8"])
def test_types(load: Load, name: str) -> None:
    """Every type is loaded, converted, computed with and stored."""
    module = load(
        f"@kernel\ndef k(x: {name}[Array, 24], y: {name}[Array, 24], z: f32[Array, 24]):\n"
        f"    t = x[:] + {name}(1)\n    y[:] = t\n    z[:] = t.astype(f32) * 2\n"
    )
    x = np.arange(24) % 6
    report = module.k.simulate(1, {"x": x})
    np.testing.assert_array_equal(report["y"][0], x + 1)
    np.testing.assert_array_equal(report["z"][0], (x + 1) * 2)


def test_carried_tiles(load: Load) -> None:
    """Tiles that loops change, left early, in a for and in a while."""
    module = load(
        "@kernel\ndef k(x: f32[Array, 8, 20], stop: f32, y: f32[Array, 2, 20]):\n"
        "    total = 0\n    for row in range(8):\n        if x[row].max()[0] > stop:\n            break\n        total += x[row]\n"
        "    y[0] = total\n"
        "    row, last = 0, x[0]\n    while row < 8 and x[row].max()[0] <= stop:\n        last, row = x[row], row + 1\n    y[1] = last\n"
    )
    x = np.arange(160, dtype=np.float32).reshape(8, 20)
    for stop in (-1, 70, 1000):
        rows = sum(x.max(axis=1) <= stop)
        got = module.k.simulate(1, {"x": x, "stop": stop})["y"][0]
        np.testing.assert_array_equal(got[0], x[:rows].sum(axis=0) if rows else np.zeros(20))
        np.testing.assert_array_equal(got[1], x[max(rows - 1, 0)])


def test_early_return(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: i64[Array, 16], n: i64, y: i64[Array, 1]):\n"
        "    def find(n):\n        for i in range(16):\n            if x[i] == n:\n                return i\n        return -1\n"
        "    if n < 0:\n        return\n    y[0] = find(n)\n"
    )
    x = np.arange(16)[::-1].copy()
    for n, wanted in ((3, 12), (99, -1), (-5, 0)):
        assert module.k.simulate(1, {"x": x, "n": n})["y"][0][0] == wanted


def test_globals_may_change(load: Load) -> None:
    module = load("FACTOR = 2\n@kernel\ndef k(y: f32[Array, 1]):\n    y[0] = FACTOR\n")
    assert module.k.simulate(1)["y"][0][0] == 2
    vars(module)["FACTOR"] = 3
    assert module.k.simulate(1)["y"][0][0] == 3


def test_any_text(load: Load) -> None:
    """Names and messages of any script; what is said of a failure is what was written."""
    module = load(
        "@kernel\ndef k(y: f32[Array, 4], n: i64):\n    größe = n + 1\n"
        "    assert größe < 3, 'größe \"zu\" groß\\n\\\\'\n    y[0] = größe\n"
    )
    assert module.k.simulate(1, {"n": 1})["y"][0][0] == 2
    with pytest.raises(module.BoundsError, match='größe "zu" groß'):
        module.k.simulate(1, {"n": 5})


def test_constants_are_python(load: Load) -> None:
    """Closures, tuples, dicts and functions of Python on constants are evaluated when the kernel is compiled."""
    module = load(
        "SCALES = (1.0, 2.0)\nNAMES = {'n': 4}\n"
        "def make(factor):\n    @kernel\n    def k(y: f32[Array, 4, 8]):\n"
        "        for i, s in enumerate(SCALES):\n            y[i] = s * factor\n"
        "        y[2] = math.pi if len(SCALES) == 2 and factor in (3, 5) else 0.0\n"
        "        y[NAMES['n'] - 1] = min(SCALES) + int(math.sqrt(16)) + max(1, *SCALES)\n"
        "    return k\n"
    )
    y = module.make(3).simulate(1)["y"][0]
    np.testing.assert_allclose(y[:, 0], np.array([3, 6, math.pi, 7], np.float32))
