"""Inputs and expected bits of the bits-*.mlir tests.

Usage: bits.py TEST FOLDER

Writes FOLDER/NAME-RANK.npy for every argument of the kernel of TEST, for 2 ranks.
test/python/reference.py computes the expected bits.
"""

import argparse
import pathlib
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import reference  # noqa: E402

Array = np.ndarray[Any, Any]
Arrays = dict[str, list[Array]]

RANKS = 2


def special_rows(random: np.random.Generator, rows: int, length: int) -> Array:
    """Rows of numbers of very different size; some hold NaN, infinities or zeros of one sign."""
    x = random.standard_normal((rows, length)) * 10.0 ** random.uniform(-4, 4, (rows, length))
    x = x.astype(np.float32)
    if rows > 1:
        x[1] = -0.0
    if rows > 2:
        x[2, length // 2] = np.uint32(0xFFC12345).view(np.float32)
    if rows > 3:
        x[3, 0], x[3, -1] = np.inf, -np.inf
    return x


def rows(random: np.random.Generator) -> Arrays:
    """Sums of rows of many lengths: s1, s2, ... of x1, x2, ..."""
    lengths = (1, 2, 7, 16, 17, 100, 256, 1000, 4096, 8192, 20000)
    arrays: Arrays = {}
    for length in lengths:
        x = [special_rows(random, 4, length) for _ in range(RANKS)]
        arrays[f"x{length}"] = x
        arrays[f"s{length}"] = [reference.row_reduce_all("sum", part) for part in x]
    return arrays


def two_reductions(random: np.random.Generator) -> Arrays:
    """y = (total - row maximum) * row sum, of the all-reduced rows."""
    x = [special_rows(random, 4, 300) for _ in range(RANKS)]
    total = reference.rank_reduce("sum", x)
    with np.errstate(invalid="ignore", over="ignore"):
        greatest = reference.row_reduce_all("max", total)
        y = (total - greatest) * reference.row_reduce_all("sum", total)
    return {"x": x, "y": [reference.canonical(y)] * RANKS}


def mixed(random: np.random.Generator) -> Arrays:
    """bf16 summed in f32, scaled by f16, stored as f8E4M3FN and as bf16."""
    x = [(special_rows(random, 4, 100) * 10).astype(reference.BF16) for _ in range(RANKS)]
    scale = random.standard_normal(100).astype(np.float16)
    total = reference.rank_reduce("sum", x)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = total * scale.astype(np.float32)
    return {
        "x": x,
        "scale": [scale] * RANKS,
        "q": [reference.convert(scaled, reference.F8)] * RANKS,
        "y": [reference.convert(scaled, reference.BF16)] * RANKS,
    }


def kinds(random: np.random.Generator) -> Arrays:
    """Every kind of row reduction, of floats and of integers, row length 77."""
    x = [special_rows(random, 4, 77) for _ in range(RANKS)]
    i = [random.integers(-(2**31), 2**31, (4, 77)).astype(np.int32) for _ in range(RANKS)]
    arrays: Arrays = {"x": x, "i": i}
    for kind in ("prod", "min", "max", "avg"):
        arrays[f"f_{kind}"] = [reference.row_reduce_all(kind, part) for part in x]
    for kind in reference.KINDS:
        arrays[f"i_{kind}"] = [reference.row_reduce_all(kind, part) for part in i]
    return arrays


def conversions(random: np.random.Generator) -> Arrays:
    """f32 to every narrow float and integer, and back."""
    x = []
    for _ in range(RANKS):
        words = random.integers(0, 2**32, 4000).astype(np.uint32)
        near = (random.standard_normal(4000) * 100).astype(np.float32)
        fp8 = [448, 456, 464, 465, -465, 2**-9, 2**-10, 3 * 2**-10]
        e5m2 = [57344, 61439, 61440, -61440, 2**-14, 2**-16, 2**-17, 3 * 2**-17, 2**-18]
        others = [0.0, -0.0, 65504, 65520, np.inf, -np.inf, np.nan, -np.nan, 127.5, -128.9]
        edges = np.array(fp8 + e5m2 + others, np.float32)
        x.append(np.concatenate([words.view(np.float32), near, edges]))
    narrow = (("b", reference.BF16), ("h", reference.F16), ("q", reference.F8), ("r", reference.E5M2))
    arrays: Arrays = {"x": x}
    for name, dtype in narrow:
        arrays[name] = [reference.convert(part, dtype) for part in x]
        arrays[name + "_wide"] = [reference.canonical(part.astype(np.float32)) for part in arrays[name]]
    arrays["i"] = [reference.to_integer(part, np.int8) for part in x]
    return arrays


def fp8_rows(random: np.random.Generator) -> Arrays:
    """The rows of all_reduce_rmsnorm_fp8 (docs/Spec.md, Bits, "Rows in fp8"), against float64 as well."""
    rows, columns = 10, 300
    x = [random.standard_normal((rows, columns)).astype(np.float32) for _ in range(RANKS)]
    for part in x:
        part[3] = -0.0  # No number but zero: no scale is 0, no element is NaN.
        part[4] *= np.float32(1e-30)
        part[5] *= np.float32(1e30)  # The squares overflow.
        part[6, 7] = np.nan
        part[7, 8] = np.inf
        part[8, 9] = -np.inf
        part[9] *= np.float32(1e-9)
    x = [part.astype(reference.BF16) for part in x]
    residual = (random.standard_normal((rows, columns)) * (np.arange(rows) < 3)[:, None]).astype(reference.BF16)
    weight = random.uniform(-1, 1, columns).astype(reference.BF16)
    f32 = np.float32
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        added = reference.rank_reduce("sum", x) + residual.astype(f32)
        mean = reference.row_reduce_all("sum", added * added) / f32(columns)
        root = f32(1) / np.sqrt(mean + f32(1e-5))
        weighted = added * weight.astype(f32)
        least = reference.maximum(reference.row_reduce_all("max", np.abs(weighted)), f32(1e-15))
        q = reference.convert(weighted * (f32(448) / least), reference.F8)
        scale = reference.canonical(least / f32(448) * root)
        check_fp8_rows(added, weight, q, scale)
    arrays = {"residual": residual, "weight": weight, "y": q, "scale": scale}
    arrays["next"] = reference.convert(added, reference.BF16)
    return {"x": x} | {name: [array] * RANKS for name, array in arrays.items()}


def check_fp8_rows(added: Array, weight: Array, q: Array, scale: Array) -> None:
    """What quantized rows mean is what float64 gives, to half of fp8's last place."""
    f64 = np.float64
    ordinary = [0, 1, 2, 3, 4, 9]
    rows = added[ordinary].astype(f64)
    exact = rows / np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + 1e-5) * weight.astype(f64)
    got = q[ordinary].astype(f64) * scale[ordinary].astype(f64)
    # Below 2^-6 of the scale numbers are 2^-9 apart; the scale's own roundings.
    allowed = np.maximum(np.abs(exact) / 16, scale[ordinary] / 1024) * 1.00001
    assert (np.abs(got - exact) <= allowed).all()
    assert (scale[ordinary] > 0).all() and np.isfinite(scale[ordinary]).all()
    # Squares that overflow make rstd 0; what is not a number is not a number again.
    assert (scale[5] == 0).all() and np.isfinite(q[5].astype(f64)).all()
    assert np.isnan(q[6:9].astype(f64) * scale[6:9].astype(f64)).all()


TESTS: dict[str, Callable[[np.random.Generator], Arrays]] = {
    "rows": rows,
    "two-reductions": two_reductions,
    "fp8-rows": fp8_rows,
    "mixed": mixed,
    "kinds": kinds,
    "conversions": conversions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("test", choices=sorted(TESTS))
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    arrays = TESTS[options.test](np.random.default_rng(zlib.crc32(options.test.encode())))
    for name, parts in arrays.items():
        for rank, part in enumerate(parts):
            np.save(options.folder / f"{name}-{rank}.npy", part)


if __name__ == "__main__":
    main()
