"""Products of matrices against NumPy, and the examples that multiply beside communication."""

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


@pytest.mark.parametrize("world", [2, 3, 4])
def test_examples(world: int) -> None:
    example.main(world)


# Of an example, a line and what it becomes: each takes a synchronization away.
MUTANTS = {
    "no-wait": (r"wait_signal_from\(come.*", "pass", "all_gather_matmul"),
    "wrong-tile": (
        r"come\[source \* tiles \+ i % tiles\], source",
        "come[source * tiles], source",
        "all_gather_matmul",
    ),
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
