"""Rows of an array in `args`: an array of one dimension is the same row for all, whatever its size."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import numpy as np
import pytest
from commsir import f32

Load = Callable[[str], ModuleType]
Bits = np.ndarray[Any, Any]

RANKS = 4
# By collective: the rows of x for R rows of the result, the call, and what rank r gets of the arrays of all ranks.
COLLECTIVES: dict[str, tuple[Callable[[int], int], str, Callable[[list[Bits], int], Bits | None]]] = {
    "all_reduce": (lambda rows: rows, "", lambda x, r: np.sum(x, 0)),
    "reduce": (lambda rows: rows, "root=1, ", lambda x, r: np.sum(x, 0) if r == 1 else None),
    "broadcast": (lambda rows: rows, "root=2, ", lambda x, r: x[2]),
    "reduce_scatter": (lambda rows: rows * RANKS, "", lambda x, r: np.split(np.sum(x, 0), RANKS)[r]),
    "scatter": (lambda rows: rows * RANKS, "root=1, ", lambda x, r: np.split(x[1], RANKS)[r]),
    "all_gather": (lambda rows: rows // RANKS, "", lambda x, r: np.concatenate(x)),
    "gather": (lambda rows: rows // RANKS, "root=3, ", lambda x, r: np.concatenate(x) if r == 3 else None),
    "all_to_all": (lambda rows: rows, "", lambda x, r: np.concatenate([np.split(one, RANKS)[r] for one in x])),
}
ROWS, SIDES = (4, 8, 16), ("consume", "produce and consume")
# The shapes of args for R rows of n elements.
SHAPES: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "n": lambda rows, n: (n,),
    "1, n": lambda rows, n: (1, n),
    "rows, 1": lambda rows, n: (rows, 1),
    "rows, n": lambda rows, n: (rows, n),
    "1": lambda rows, n: (1,),
}
N = 8


def _shape(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_args(load: Load, name: str, shape: str, side: str) -> None:
    """Rows fewer than, as many as, and more than a row has elements: the reading is the same."""
    rows_of, options, wanted = COLLECTIVES[name]
    produce = "produce=lambda a: a * 2.0, " if "produce" in side else ""
    for rows in ROWS:
        given = SHAPES[shape](rows, N)
        module = load(
            f"@kernel\ndef k(x: f32[Window, {rows_of(rows)}, {N}], w: f32[Array, {_shape(given)}],\n"
            f"      y: f32[Array, {rows}, {N}]):\n"
            f"    {name}(x, {options}{produce}args=w, outs=y, consume=lambda t, w: t * 1.0 + w)\n"
        )
        rng = np.random.default_rng(rows)
        x = [rng.integers(-9, 9, (rows_of(rows), N)).astype(np.float32) for _ in range(RANKS)]
        w = rng.integers(-9, 9, given).astype(np.float32)
        y = module.k.simulate(RANKS, {"x": x, "w": w})["y"]
        scale = 2 if produce else 1
        for rank in range(RANKS):
            expected = wanted([scale * one for one in x], rank)
            if expected is not None:
                np.testing.assert_array_equal(y[rank], expected + w)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_args_outside_a_kernel(name: str, shape: str) -> None:
    rows_of, options, wanted = COLLECTIVES[name]
    root = {"root": int(options[5])} if options else {}
    for rows in ROWS:
        rng = np.random.default_rng(rows)
        x = [rng.integers(-9, 9, (rows_of(rows), N)).astype(np.float32) for _ in range(RANKS)]
        w = rng.integers(-9, 9, SHAPES[shape](rows, N)).astype(np.float32)
        y = getattr(commsir, name)(x, args=(w,), outs=f32, consume=lambda t, w: t * 1.0 + w, **root)
        for rank in range(RANKS):
            expected = wanted(x, rank)
            if expected is not None:
                np.testing.assert_array_equal(y[rank], expected + w)


@pytest.mark.parametrize("rows", [7, 8, 9])
def test_norm_with_a_weight(load: Load, rows: int) -> None:
    """A weight of one dimension next to a residual, in a layer with as many rows as columns."""
    module = load(
        f"@kernel\ndef k(x: bf16[Window, {rows}, 8], r: bf16[Array, {rows}, 8], w: f32[Array, 8],\n"
        f"      h: f32[Array, {rows}, 8], y: f32[Array, {rows}, 8]):\n"
        "    def norm(t, r, w):\n        h = t + r\n        return h, h * rsqrt((h * h).mean() + 1e-6) * w\n"
        "    all_reduce(x, outs=(h, y), args=(r, w), consume=norm)\n"
    )
    rng = np.random.default_rng(3)
    x, r = rng.integers(-4, 5, (RANKS, rows, 8)), rng.integers(-4, 5, (rows, 8))
    w = rng.normal(size=8).astype(np.float32)
    h = x.sum(0) + r
    wanted = h / np.sqrt((h * h).mean(1, keepdims=True) + 1e-6) * w
    for y in module.k.simulate(RANKS, {"x": x, "r": r, "w": w})["y"]:
        np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_numbers_of_the_kernel(load: Load) -> None:
    """A tile of the kernel around is shared as well, where it is as long as there are rows."""
    module = load(
        "@kernel\ndef k(x: f32[Window, 8, 8], w: f32[Array, 8], y: f32[Array, 8, 8]):\n"
        "    t = w[:]\n    all_reduce(x, outs=y, consume=lambda s: s * t)\n"
    )
    w = np.arange(8, dtype=np.float32)
    for y in module.k.simulate(2, {"x": np.ones((8, 8)), "w": w})["y"]:
        np.testing.assert_array_equal(y, np.tile(2 * w, (8, 1)))


def test_one_value_a_row_says_how_to_write_it(load: Load) -> None:
    """Of one dimension and another size than a row: what is wrong, and the shape to give it."""
    module = load(
        "@kernel\ndef k(x: f32[Window, 8, 64], s: f32[Array, 8], y: f32[Array, 8, 64]):\n"
        "    all_reduce(x, outs=y, args=s, consume=lambda t, s: t * s)\n"
    )
    with pytest.raises(commsir.CompileError, match=r"64 and 8 elements.*\s*.*\s*.*\s*.*one dimension.*\[rows, 1\]"):
        module.k.text()


GROUP = """
import sys
import threading
import numpy as np
import commsir
from commsir import *

rows, n = dims("rows n")

@commsir.kernel
def k(x: f32[Array, rows, n], w: f32[Array, n], s: f32[Array, rows, 1], y: f32[Array, rows, n]) -> None:
    all_reduce(x, outs=y, args=(w, s), consume=lambda t, w, s: t * w + s)

rank = int(sys.argv[1])
with commsir.Group(rank, 2, folder=sys.argv[2]) as group:
    for count in (4, 8, 16):
        made = group.kernel(k, rows=count, n=8)
        x, w, s, y = np.ones((count, 8), "f4"), np.arange(8, dtype="f4"), np.ones((count, 1), "f4"), np.zeros((count, 8), "f4")
        s[:, 0] = np.arange(count)
        made(x, w, s, y)
        np.testing.assert_array_equal(y, 2 * w + s)
"""  # fmt: skip # noqa: E501


def test_kernels_of_a_group(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(GROUP)
    ranks = [
        subprocess.Popen([sys.executable, str(program), str(rank), str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for rank in ranks:
        _, said = rank.communicate(timeout=120)
        assert rank.returncode == 0, said
