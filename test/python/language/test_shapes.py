"""Shapes of parameters: expressions in annotations, and dimensions that collectives determine."""

# ruff: noqa: E501 (tables, and programs in strings)
from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import numpy as np
import pytest
from commsir.language import extents
from hypothesis import given, settings
from hypothesis import strategies as st

Load = Callable[[str], ModuleType]
DIMS = 'rows, n, m = dims("rows n m")\n'

# Kernels as a newcomer writes them: the parameters, the call, the shape of x, and of y, on 4 ranks.
NEWCOMERS: dict[str, tuple[str, str, tuple[int, ...], tuple[int, ...]]] = {
    "all_reduce": ("x: f32[Window, rows, n], y: f32[Array, rows, n]", "all_reduce(x, outs=y)", (8, 16), (8, 16)),
    "all_gather of ranks": ("x: f32[Window, rows, n], y: f32[Array, rows * ranks, n]", "all_gather(x, outs=y)", (8, 16), (32, 16)),
    "all_gather of parts": ("x: f32[Window, rows, n], y: f32[Array, ranks, rows, n]", "all_gather(x, outs=y)", (8, 16), (4, 8, 16)),
    "all_gather of a number": ("x: f32[Window, rows, n], y: f32[Array, 4 * rows, n]", "all_gather(x, outs=y)", (8, 16), (32, 16)),
    "all_gather inferred": ("x: f32[Window, rows, n], y: f32[Array, m, n]", "all_gather(x, outs=y)", (8, 16), (32, 16)),
    "all_gather flat": ("x: f32[Window, n], y: f32[Array, n * ranks]", "all_gather(x, outs=y)", (16,), (64,)),
    "all_gather flat inferred": ("x: f32[Window, n], y: f32[Array, m]", "all_gather(x, outs=y)", (16,), (64,)),
    "gather": ("x: f32[Window, rows, n], y: f32[Array, ranks * rows, n]", "gather(x, root=0, outs=y)", (8, 16), (32, 16)),
    "gather inferred": ("x: f32[Window, rows, n], y: f32[Array, ranks, m, n]", "gather(x, root=0, outs=y)", (8, 16), (4, 8, 16)),
    "reduce_scatter divided": ("x: f32[Window, rows, n], y: f32[Array, rows // ranks, n]", "reduce_scatter(x, outs=y)", (8, 16), (2, 16)),
    "reduce_scatter solved": ("x: f32[Window, rows * ranks, n], y: f32[Array, rows, n]", "reduce_scatter(x, outs=y)", (8, 16), (2, 16)),
    "reduce_scatter inferred": ("x: f32[Window, rows, n], y: f32[Array, m, n]", "reduce_scatter(x, outs=y)", (8, 16), (2, 16)),
    "reduce_scatter of parts": ("x: f32[Window, ranks, rows, n], y: f32[Array, rows, n]", "reduce_scatter(x, outs=y)", (4, 2, 16), (2, 16)),
    "reduce_scatter flat": ("x: f32[Window, n], y: f32[Array, n // ranks]", "reduce_scatter(x, outs=y)", (16,), (4,)),
    "reduce_scatter flat inferred": ("x: f32[Window, n], y: f32[Array, m]", "reduce_scatter(x, outs=y)", (16,), (4,)),
    "scatter": ("x: f32[Window, rows, n], y: f32[Array, rows // ranks, n]", "scatter(x, root=1, outs=y)", (8, 16), (2, 16)),
    "scatter inferred": ("x: f32[Window, rows, n], y: f32[Array, m, n]", "scatter(x, root=1, outs=y)", (8, 16), (2, 16)),
    "all_to_all": ("x: f32[Window, ranks, n], y: f32[Array, ranks, n]", "all_to_all(x, outs=y)", (4, 16), (4, 16)),
    "all_to_all inferred": ("x: f32[Window, rows, n], y: f32[Array, m, n]", "all_to_all(x, outs=y)", (8, 16), (8, 16)),
    "broadcast inferred": ("x: f32[Window, rows, n], y: f32[Array, m, n]", "broadcast(x, root=2, outs=y)", (8, 16), (8, 16)),
    "reduce inferred": ("x: f32[Window, rows, n], y: f32[Array, rows, m]", "reduce(x, root=2, outs=y)", (8, 16), (8, 16)),
    "send_recv inferred": ("x: f32[Window, rows, n], y: f32[Array, m, n]", "send_recv(x, 0, 3, outs=y)", (8, 16), (8, 16)),
    "scales": ("x: f32[Window, rows, n], y: f32[Array, rows, m]", "all_reduce(x, outs=y, consume=lambda t: abs(t).max())", (8, 16), (8, 1)),
    "scales of parts": ("x: f32[Window, rows, n], y: f32[Array, m, 1]", "reduce_scatter(x, outs=y, consume=lambda t: t.sum())", (8, 16), (2, 1)),
    "packed": ("x: f32[Window, rows, n], y: f32[Array, rows * n // 2]", "y[:] = full(rows * n // 2, 1.0)", (8, 16), (64,)),
}  # fmt: skip
# What each rank gets of the arrays of all.
RESULTS: dict[str, Callable[[list[Any], int], Any]] = {
    "all_reduce": lambda x, r: sum(x),
    "all_gather": lambda x, r: np.stack(x),
    "gather": lambda x, r: np.stack(x) if r == 0 else None,
    "reduce_scatter": lambda x, r: np.split(sum(x).reshape(4, -1), 4)[r],
    "scatter": lambda x, r: np.split(x[1].reshape(4, -1), 4)[r],
    "all_to_all": lambda x, r: np.stack([one.reshape(4, -1)[r] for one in x]),
    "broadcast": lambda x, r: x[2],
    "reduce": lambda x, r: sum(x) if r == 2 else None,
    "send_recv": lambda x, r: x[0] if r == 3 else None,
}


ROOTS = {"broadcast": ", root=2", "reduce": ", root=2", "scatter": ", root=1"}


def _kernel(load: Load, parameters: str, body: str) -> Any:
    return load(f"{DIMS}@kernel\ndef k({parameters}) -> None:\n    {body}\n").k


@pytest.mark.parametrize("name", NEWCOMERS)
def test_first_kernels(load: Load, name: str) -> None:
    """Nothing but the input is given."""
    parameters, body, shape, out = NEWCOMERS[name]
    x = [np.arange(math.prod(shape), dtype=np.float32).reshape(shape) + 1000 * r for r in range(4)]
    y = _kernel(load, parameters, body).simulate(4, {"x": x})["y"]
    assert [one.shape for one in y] == [out] * 4
    wanted = RESULTS.get(name.split()[0])
    for rank in range(4):
        if wanted and (result := wanted(x, rank)) is not None:
            np.testing.assert_array_equal(y[rank].reshape(-1), result.reshape(-1))


def test_all_to_all_v(load: Load) -> None:
    k = _kernel(
        load,
        "x: f32[Window, rows, n], to: i32[Array, ranks], fro: i32[Array, ranks], y: f32[Array, rows * 2, n]",
        "all_to_all_v(x, send_rows=to, recv_rows=fro, outs=y)",
    )
    y = k.simulate(2, {"x": np.ones((4, 8)), "to": [1, 3], "fro": [[1, 1], [3, 3]]})["y"]
    assert [int(one.sum()) for one in y] == [2 * 8, 6 * 8]


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in ("send_recv",)])
def test_outputs_of_three_dimensions(load: Load, name: str) -> None:
    """An output with as many dimensions as the input follows from it."""
    k = load(
        "a, b, c, u, v, w = dims('a b c u v w')\n@kernel\n"
        f"def k(x: f32[Window, a, b, c], y: f32[Array, u, v, w]) -> None:\n    {name}(x, outs=y{ROOTS.get(name, '')})\n"
    ).k
    x = [np.arange(64, dtype=np.float32).reshape(8, 2, 4) + 1000 * r for r in range(4)]
    for rank, y in enumerate(k.simulate(4, {"x": x})["y"]):
        assert y.shape[1:] == (2, 4)
        if (wanted := RESULTS[name](x, rank)) is not None:
            np.testing.assert_array_equal(y, wanted.reshape(y.shape))


def test_dimensions_of_numpy(load: Load) -> None:
    """NumPy's integers are dimensions, alone and calculated with."""
    k = load(
        "n = dims('n')\nFOUR = np.int64(4)\n@kernel\n"
        "def k(x: f32[Array, FOUR, n], y: f32[Array, n * FOUR], z: f32[Array, FOUR * n - FOUR]):\n    y[0] = x[0, 0]\n"
    ).k
    report = k.simulate(1, {"x": np.ones((4, 3))})
    assert (report["y"][0].shape, report["z"][0].shape) == ((12,), (8,))
    for wrong in ("np.float32(4)", "n * np.float32(2)", "np.True_", "n * True"):
        with pytest.raises(TypeError, match="is not a dimension"):
            load(f"n = dims('n')\n@kernel\ndef k(x: f32[Array, {wrong}]):\n    pass\n")


def test_ranks_in_a_kernel(load: Load) -> None:
    """`ranks` and what an annotation calculates are numbers in the body, known or not."""
    k = load(
        'n = dims("n")\nhalf = n // 2\n@kernel\n'
        "def k(box: f32[Window, ranks, n], s: Signal[ranks], y: f32[Array, half]) -> None:\n"
        "    for p in range(ranks):\n"
        "        put_signal(box[rank()], box[rank()], p, s[rank()])\n"
        "    for p in range(ranks):\n        wait_signal(s[p], ge=epoch())\n"
        "    y[:] = full(half, f32(ranks * n))\n    barrier()\n"
    ).k
    assert k.simulate(3, {"box": np.ones((3, 8))})["y"][0].tolist() == [24.0] * 4
    assert "memref<?xf32>" in load("@kernel\ndef k(y: f32[Array, ranks]) -> None:\n    y[0] = f32(ranks)\n").k.ir


def test_specialized_kernels(load: Load) -> None:
    k = _kernel(load, *NEWCOMERS["all_gather of ranks"][:2])
    assert k.symbols == ["rows", "n"] and k.specialize(rows=2, n=8).check(ranks=3)
    assert "memref<6x8xf32>" in k.specialize(rows=2, n=8, ranks=3).ir
    inferred = _kernel(load, *NEWCOMERS["all_gather inferred"][:2])
    assert inferred.symbols == ["rows", "n", "m"] and inferred.specialize(rows=2, n=8).check(ranks=3)
    assert inferred.specialise(rows=2, n=8).explain(ranks=3)["arguments"][1]["shape"] == [6, 8]  # codespell:ignore
    assert "y: f32 array [rows * ranks, n]" in repr(k)


def test_a_group_infers(load: Load, tmp_path: Path) -> None:
    k = _kernel(load, "x: f32[Array, rows, n], y: f32[Array, m, n]", "all_gather(x, outs=y)")
    with commsir.Group(0, 1, folder=str(tmp_path)) as group:
        x, y = np.ones((2, 8), np.float32), np.zeros((2, 8), np.float32)
        group.kernel(k, rows=2, n=8)(x, y)
        assert (y == 1).all()


@pytest.mark.parametrize(
    ("parameters", "body", "inputs", "words"),
    [
        (*NEWCOMERS["all_gather of ranks"][:2], {"x": (8, 4), "y": (9, 4)}, r"'y' has shape \[9, 4\].*\[rows \* ranks, n\], where rows is 8, ranks is 4"),
        (*NEWCOMERS["reduce_scatter solved"][:2], {"x": (9, 4)}, r"'x' has shape \[9, 4\].*\[rows \* ranks, n\], where ranks is 4"),
        (*NEWCOMERS["reduce_scatter divided"][:2], {"x": (9, 4)}, "9 rows cannot be cut into 4 equal parts"),
        ("x: f32[Window, rows, n], y: f32[Array, rows, n]", "all_gather(x, outs=y)", {"x": (8, 4)}, r"'y' is \[8, 4\], but all_gather gives each rank 32 rows of 4\n(.|\n)*\[rows \* ranks, n\]"),
        ("x: f32[Window, rows, n], y: f32[Array, rows, n]", "reduce_scatter(x, outs=y)", {"x": (8, 4)}, r"'y' is \[8, 4\], but reduce_scatter gives each rank 2 rows of 4\n(.|\n)*\[rows // ranks, n\]"),
        ("x: f32[Window, rows, n]", "all_gather(x)", {"x": (8, 4)}, r"all_gather needs outs=…(.|\n)*\[rows \* ranks, n\]"),
        ("x: f32[Window, rows, n]", "all_to_all(x)", {"x": (8, 4)}, r"all_to_all needs outs=…: it does not write its input"),
        ("x: f32[Window, rows, n], y: f32[Array, m]", "barrier()", {"x": (8, 4)}, r"the dimension 'm' of 'y' is not known.*k.specialize\(m=…\)"),
        ("x: f32[Window, n], y: f32[Array, n - 8]", "barrier()", {"x": (4,)}, "the dimension n - 8 of 'y' is -4"),
    ],
)  # fmt: skip
def test_what_does_not_fit(load: Load, parameters: str, body: str, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(commsir.CommsError, match=words):
        _kernel(load, parameters, body).simulate(4, {name: np.ones(shape) for name, shape in inputs.items()})


def test_a_dimension_that_is_only_calculated_with(load: Load) -> None:
    k = _kernel(load, "x: f32[Window, rows * 2]", "x.store(full(8, f32(rows)), 0)")
    assert k.simulate(1, {"x": np.zeros(8)})["x"][0].tolist() == [4.0] * 8
    with pytest.raises(
        commsir.CompileError, match=r"'rows' is not known by rows \* 2 alone(.|\n)*k.specialize\(rows=…\)"
    ):
        _ = k.ir


def test_strings(load: Load) -> None:
    k = load(
        '@kernel\ndef k(x: Window["rows, n", "f32"], y: Array["rows * ranks, n // 2", f32]) -> None:\n    barrier()\n'
    ).k
    assert [one.shape for one in k.simulate(2, {"x": np.ones((3, 4))})["y"]] == [(6, 2)] * 2
    for wrong in ("rows ** 2", "rows / 2", "rows * 1.5", "len(rows)", "rows *"):
        with pytest.raises(TypeError, match="calculate dimensions with"):
            commsir.Window[wrong, "f32"]  # type: ignore[misc]


_NAMES = ("a", "b", "ranks")
_LEAVES = st.one_of(st.integers(1, 9), st.sampled_from([extents.Dim(name) for name in _NAMES]))


def _build(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    dims = st.sampled_from([extents.Dim(name) for name in _NAMES])
    return st.builds(
        lambda op, left, right: {"+": left + right, "-": left - right, "*": left * right, "//": left // right}[op],
        st.sampled_from(["+", "-", "*", "//"]),
        st.one_of(dims, children.filter(lambda one: not isinstance(one, int))),
        st.one_of(st.integers(1, 9), children),
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.recursive(_LEAVES, _build, max_leaves=6), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_what_is_calculated(extent: Any, a: int, b: int, ranks: int) -> None:
    """Its number is Python's, its text says the same, and what is solved for gives the number again."""
    values = {"a": a, "b": b, "ranks": ranks}
    try:
        wanted = eval(str(extent), {}, dict(values))
    except ZeroDivisionError:
        assert extents.evaluate(extent, values) is None
        return
    assert extents.evaluate(extent, values) == wanted
    assert extents.evaluate(extents.parse(str(extent)), values) == wanted
    known = {"b": b, "ranks": ranks}
    solved = extents.solve(extent, wanted, known)
    if solved is not None:
        assert solved[0] == "a" and extents.evaluate(extent, {**known, "a": solved[1]}) == wanted
