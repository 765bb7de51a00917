"""Kernels for a processor with few instructions: the functions that replace instructions give the same bits."""

import os
import platform
import subprocess
import sys
from typing import Any

import commsir
import ml_dtypes
import numpy as np
import pytest

#: All patterns of 16 bits.
COUNT = 1 << 16
TYPES: dict[str, Any] = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
NARROW = ["f8E4M3FN", "f8E5M2", "bf16", "f16"]
CASES = [("arith.extf", kind, result) for kind in NARROW for result in ("f32", "f64")]
CASES += [("arith.truncf", "f32", kind) for kind in NARROW]
CASES += [("arith.truncf", "f64", "f32"), ("arith.truncf", "f16", "f8E5M2"), ("arith.truncf", "bf16", "f8E4M3FN")]
CASES += [(f"arith.{op}", kind, result) for op in ("sitofp", "uitofp") for kind in ("i8", "i32", "i64")
          for result in (*NARROW, "f32", "f64")]  # fmt: skip
CASES += [(f"arith.{op}", kind, "i64") for op in ("fptosi", "fptoui") for kind in (*NARROW, "f32", "f64")]
CASES += [(f"math.{op}", kind, kind) for op in ("floor", "ceil", "round", "roundeven", "trunc", "sqrt")
          for kind in ("f16", "f32", "f64")]  # fmt: skip
#: Whose operands are more than one, each the same.
CASES += [("math.fma", kind, kind) for kind in ("f16", "bf16", "f32", "f64")]


def kernel(op: str, kind: str, result: str) -> str:
    operands = "%v, %v, %v" if op == "math.fma" else "%v"
    types = kind if kind == result else f"{kind} to {result}"
    return f"""comms.kernel @k(%x: memref<{COUNT}x{kind}>, %y: memref<{COUNT}x{result}>)
    attributes {{ranks = 1, blocks = 1}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {COUNT} : index
  scf.for %i = %c0 to %n step %c1 {{
    %v = memref.load %x[%i] : memref<{COUNT}x{kind}>
    %w = {op} {operands} : {types}
    memref.store %w, %y[%i] : memref<{COUNT}x{result}>
  }}
  comms.return
}}"""


def values(kind: str) -> Any:
    """All there are, of few bits; of more, those about where narrow types round, are subnormal, overflow or are NaN."""
    rnd = np.random.default_rng(7)
    dtype = np.dtype(TYPES[kind])
    if dtype.itemsize <= 2:
        return np.arange(COUNT).astype(f"u{dtype.itemsize}").view(dtype)
    if kind.startswith("i"):
        shift = rnd.integers(0, dtype.itemsize * 8 - 1, COUNT)
        return rnd.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, COUNT, dtype) >> shift.astype(dtype)
    with np.errstate(all="ignore"):
        halves = np.arange(COUNT, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
        beside = halves + rnd.choice(np.array([0, 0x0FFF, 0x1000, 0x1001], np.uint32), COUNT)
        subnormal = rnd.integers(0x32000000, 0x38800001, COUNT, np.uint32)
        anything = rnd.integers(0, 1 << 32, COUNT, np.uint32)
        pattern = np.select([rnd.random(COUNT) < 0.4, rnd.random(COUNT) < 0.5], [beside, subnormal], anything)
        return pattern.astype(np.uint32).view(np.float32).astype(dtype)


def compute(name: str) -> None:
    """Writes what each kernel computes to a file."""
    found: dict[str, Any] = {}
    for number, (op, kind, result) in enumerate(CASES):
        made = np.zeros(COUNT, TYPES[result])
        arrays = {"x": [values(kind)], "y": [made]}
        commsir.simulate(kernel(op, kind, result), ranks=1, arrays=arrays)
        found[str(number)] = made.view(np.uint8)
    np.savez(name, **found)


def run(name: str, processor: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COMMSIR_PROCESSOR": processor}
    return subprocess.run(
        [sys.executable, __file__, name], env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of x86")
def test_old_processors_give_the_same_bits(tmp_path: Any) -> None:
    files = {}
    for processor in ("", "x86-64"):
        name = str(tmp_path / f"made-{processor}.npz")
        done = run(name, processor)
        assert done.returncode == 0, done.stderr[-1000:]
        files[processor] = np.load(name)
    for number, case in enumerate(CASES):
        here, there = (files[processor][str(number)] for processor in ("", "x86-64"))
        different = np.flatnonzero((here != there).reshape(COUNT, -1).any(axis=1))
        assert not different.size, f"{case}: {values(case[1])[different[:5]]}"


@pytest.mark.parametrize("processor", ["nosuch", "i386"])
def test_a_wrong_name_is_an_error(processor: str, tmp_path: Any) -> None:
    done = run(str(tmp_path / "made.npz"), processor)
    assert done.returncode == 1
    assert f"COMMSIR_PROCESSOR='{processor}' is not a processor" in done.stderr


if __name__ == "__main__":
    compute(sys.argv[1])
