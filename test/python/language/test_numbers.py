"""Values that enter a kernel from outside: numbers and arrays of other libraries, copies, and refused values."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import ml_dtypes
import numpy as np
import pytest
from commsir import bf16
from commsir.language import source

Load = Callable[[str], ModuleType]

COPY = """
n = dims("n")
@commsir.kernel
def copy(x: f32[Array, n], y: f32[Array, n]) -> None:
    y[:] = x[:]
@commsir.kernel
def halves(x: bf16[Array, n], y: bf16[Array, n]) -> None:
    y[:] = x[:] + x[:]
@commsir.kernel
def scaled(y: f32[Array, 1], c: f32, i: i8 = 1) -> None:
    y[0] = c * f32(i)
"""


class OfJax:
    """JAX's arrays as far as they matter here: NumPy makes an array of them, whose type is ml_dtypes'."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.dtype, self.shape, self.ndim = values.dtype, values.shape, values.ndim

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_arrays_of_other_libraries_are_numbers(load: Load, kind: Any) -> None:
    module = load(COPY)
    values = np.array([1.5, -2.5, 96], kind)
    for given in (values, OfJax(values)):
        assert list(module.copy.simulate(1, {"x": given})["y"][0]) == [1.5, -2.5, 96]
    assert list(module.copy.simulate(1, {"x": [values]})["y"][0]) == [1.5, -2.5, 96]


@pytest.mark.parametrize("kind", [">f4", ">i4", ">f8"])
def test_big_endian(load: Load, kind: str) -> None:
    assert list(load(COPY).copy.simulate(1, {"x": np.arange(3).astype(kind)})["y"][0]) == [0, 1, 2]
    assert list(commsir.all_reduce([np.arange(3).astype(kind)] * 2)[0]) == [0, 2, 4]


def test_big_endian_without_sign() -> None:
    assert list(commsir.all_reduce([np.arange(3, dtype=">u4")] * 2)[0]) == [0, 2, 4]


def test_types_are_one_object_in_copies(load: Load) -> None:
    for made in (copy.copy(bf16), copy.deepcopy(bf16), pickle.loads(pickle.dumps(bf16))):
        assert made is bf16
    kernel = copy.deepcopy(load(COPY).halves)
    assert list(kernel.simulate(1, {"x": [1.5, 2.5]})["y"][0]) == [3, 5]


def test_minus_zero(load: Load) -> None:
    got = load(COPY).scaled.simulate(1, {"c": -0.0})["y"][0]
    assert got[0] == 0 and np.signbit(got[0])
    assert not np.signbit(load(COPY).scaled.simulate(1, {"c": 0.0})["y"][0][0])


@pytest.mark.parametrize("number", [128, 200, -129, np.int64(200)])
def test_numbers_that_do_not_fit(load: Load, number: Any) -> None:
    with pytest.raises(commsir.UsageError, match=f"'i' is {number}, which does not fit i8"):
        load(COPY).scaled.simulate(1, {"c": 1.0, "i": number})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"i": [1, 200]}, "'i' is 200, which does not fit i8"),
        ({"i": np.array([1, -200])}, "'i' is -200, which does not fit i8"),
        ({"i": 2.5}, r"'i' is 2.5, but must be a whole number \(i8\)"),
        ({"i": float("nan")}, "'i' is nan, but must be a whole number"),
        ({"i": "3"}, "'i' is '3', but must be a whole number"),
        ({"i": None}, "'i' is None, but must be a whole number"),
        ({"c": 1e39}, r"'c' is 1e\+39, which does not fit f32"),
        ({"c": [0.0, -1e39]}, r"'c' is -1e\+39, which does not fit f32"),
        ({"c": "nan"}, r"'c' is 'nan', but must be a number \(f32\)"),
        ({"c": 1j}, "'c' is 1j, but must be a number"),
    ],
)
def test_scalars_that_are_none(load: Load, given: dict[str, Any], words: str) -> None:
    """A number for each rank is checked as one for all is, in Python's words."""
    with pytest.raises(commsir.UsageError, match=words):
        load(COPY).scaled.simulate(2, {"c": 1.0, **given})


def test_scalars_of_any_library(load: Load) -> None:
    for c in (np.float32(2), ml_dtypes.bfloat16(2), np.array(2.0), 2, True + 1, np.int8(2)):
        assert load(COPY).scaled.simulate(2, {"c": c, "i": [3, np.int64(-4)]})["y"][1][0] == -8
    assert np.isinf(load(COPY).scaled.simulate(1, {"c": np.inf})["y"][0][0])


def test_masked_arrays(load: Load) -> None:
    """What is masked would count as the number below the mask."""
    made: Any = np.ma.array
    masked, plain = made([1.0, 2.0], mask=[False, True]), made([1.0, 2.0])
    calls: tuple[Callable[[Any], object], ...] = (
        lambda x: load(COPY).copy.simulate(1, {"x": x}),
        lambda x: commsir.all_reduce([x, x]),
    )
    for call in calls:
        call(plain)
        with pytest.raises(commsir.UsageError, match=r"^[^:]*has masked elements.*\.filled\(value\)"):
            call(masked)


def test_functions_of_unsigned_arrays() -> None:
    bytes_ = [np.array([100], np.uint8)] * 2
    with pytest.raises(commsir.UsageError, match=r"integers with a sign, but the arrays are of uint8: convert"):
        commsir.all_reduce(bytes_, consume=lambda s: s * 2)
    with pytest.raises(commsir.UsageError, match=r"outs are of uint8"):
        commsir.all_reduce([np.array([100], np.float32)] * 2, consume=lambda s: s, outs=np.zeros(1, np.uint8))
    assert commsir.all_reduce(bytes_)[0] == 200
    assert commsir.all_reduce(bytes_, outs=np.zeros(1, np.uint8))[0] == 200
    with pytest.raises(commsir.UsageError, match="outs of commsir.all_reduce outside a kernel are types"):
        commsir.all_reduce([np.zeros(1, np.float32)] * 2, outs=np.complex64)


def test_lambdas_of_a_line_differ_in_their_constants() -> None:
    # What Pythons without columns go by.
    assert source._exact(1) != source._exact(1.0) != source._exact(True)
    assert source._exact(0.0) != source._exact(-0.0) and source._exact((0.0,)) != source._exact((-0.0,))
    first, second = lambda s: s * 0.0, lambda s: s * -0.0
    assert source._steps(first.__code__) != source._steps(second.__code__)


def test_arguments_of_the_decorator(load: Load) -> None:
    with pytest.raises(commsir.UsageError, match=r"blocks is 2.5, but must be a whole number of at least 0"):
        load(COPY.replace("@commsir.kernel", "@commsir.kernel(blocks=2.5)", 1))
    with pytest.raises(commsir.UsageError, match="ranks is 'a'"):
        load(COPY.replace("@commsir.kernel", "@commsir.kernel(ranks='a')", 1))
    fixed = load(COPY.replace("@commsir.kernel", "@commsir.kernel(ranks=2)", 1))
    with pytest.raises(commsir.UsageError, match="copy is of 2 ranks .*, not of 4"):
        fixed.copy.simulate(4, {"x": [1.0]})
    assert fixed.copy.simulate(inputs={"x": [1.0]}).ranks == 2


def test_dimensions_with_names_of_the_kernel(load: Load) -> None:
    module = load(COPY.replace('n = dims("n")', 'n = dims("blocks")'))
    with pytest.raises(commsir.CompileError, match="the name .blocks., which is the kernel.s own"):
        module.copy.simulate(2, {"x": [1.0]})


def test_a_kernel_is_no_coroutine(load: Load) -> None:
    module = load("@commsir.kernel\nasync def k(x: f32[Array, 8]) -> None:\n    pass\n")
    with pytest.raises(commsir.CompileError, match="'k' is an async def; a kernel is a plain def"):
        module.k.simulate(1)


def test_traces_keep_no_files(load: Load) -> None:
    module = load(COPY)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        module.copy.simulate(1, {"x": [1.0]}, trace=True)
    assert len(os.listdir("/proc/self/fd")) == before


def test_saved_runs_replay_elsewhere(load: Load, tmp_path: Path) -> None:
    module = load("@commsir.kernel\ndef hangs(s: Signal[1]) -> None:\n    wait_signal(s[0], ge=1)\n")
    with pytest.raises(commsir.CommsError) as caught:
        module.hangs.simulate(2, trace=True, check=False, seed=np.int64(3))
    saved = caught.value.save(tmp_path / "run.zip")
    with pytest.raises(type(caught.value)):
        commsir.replay(saved)


def test_files_that_change_after_their_import(load: Load) -> None:
    module = load(COPY)
    file = Path(module.__file__ or "")
    file.write_text(file.read_text().replace("y[:] = x[:]", "y[:] = x[:] * 30"))
    assert list(module.copy.simulate(1, {"x": [1.0]})["y"][0]) == [1]


def test_arguments_that_are_numbers() -> None:
    for args in ((2.0,), 2.0, np.float32(2)):
        with pytest.raises(commsir.UsageError, match="args are arrays, one or a tuple of them"):
            commsir.all_reduce([np.ones(2, np.float32)] * 2, consume=lambda s, a: s * a, args=args)


def test_errors_are_saved_where_there_is_a_folder(load: Load, tmp_path: Path) -> None:
    module = load("@commsir.kernel\ndef hangs(s: Signal[1]) -> None:\n    wait_signal(s[0], ge=1)\n")
    with pytest.raises(commsir.CommsError) as caught:
        module.hangs.simulate(2)
    with pytest.raises(commsir.UsageError, match="create the folder"):
        caught.value.save(tmp_path / "none" / "run.zip")
