"""Makes the inputs of an example, and its expected outputs by NumPy in float64.

Usage: make.py EXAMPLE FOLDER [--ranks N]

Writes FOLDER/NAME-RANK.npy for every argument of the kernel. Inputs come from a generator seeded
with the example's name, and are first rounded to the argument's type, so that the reference starts
from the same numbers. NumPy is enough: GPU hosts may lack ml_dtypes.
"""

import argparse
import dataclasses
import pathlib
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "gpu"))

import floats  # noqa: E402

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Words:
    """An array of a type that NumPy lacks, as floats.py has it."""

    words: Array
    element: str


Arrays = dict[str, Sequence[Array | Words] | Array | Words]

BF16 = "bf16"
F8 = "f8E4M3FN"


def rounded(numbers: Array, dtype: Any) -> Array | Words:
    """To a type of NumPy's, or to BF16 or F8."""
    if isinstance(dtype, str):
        return Words(floats.narrow(numbers.astype(np.float32), dtype), dtype)
    result: Array = numbers.astype(dtype)
    return result


def wide(array: Array | Words) -> Array:
    numbers = floats.widen(array.words, array.element) if isinstance(array, Words) else array
    result: Array = numbers.astype(np.float64)
    return result


def total(arrays: Sequence[Array | Words]) -> Array:
    """The sum over the ranks."""
    result: Array = np.sum([wide(array) for array in arrays], axis=0)
    return result


def rms(rows: Array, epsilon: float = 1e-5) -> Array:
    result: Array = rows / np.sqrt(np.mean(rows**2, axis=-1, keepdims=True) + epsilon)
    return result


class Maker:
    """Draws the inputs of `ranks` ranks."""

    def __init__(self, name: str, ranks: int) -> None:
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.ranks = ranks

    def one(self, *shape: int, dtype: Any = np.float32) -> Array | Words:
        return rounded(self.random.standard_normal(shape), dtype)

    def each(self, *shape: int, dtype: Any = np.float32) -> list[Array | Words]:
        """A different array for each rank."""
        return [self.one(*shape, dtype=dtype) for _ in range(self.ranks)]


def rmsnorm(make: Maker) -> Arrays:
    x, weight = make.each(6, 96, dtype=BF16), make.one(96, dtype=BF16)
    return {"x": x, "weight": weight, "y": rms(total(x)) * wide(weight)}


def residual_rmsnorm(make: Maker) -> Arrays:
    x = make.each(6, 96, dtype=BF16)
    residual, weight = make.one(6, 96, dtype=BF16), make.one(96, dtype=BF16)
    added = total(x) + wide(residual)
    return {
        "x": x,
        "residual": residual,
        "weight": weight,
        "y": rms(added) * wide(weight),
        "next": added,
    }


def layernorm(make: Maker) -> Arrays:
    x, gamma, beta = make.each(5, 100), make.one(100), make.one(100)
    rows = total(x)
    centered = rows - rows.mean(axis=-1, keepdims=True)
    scaled = centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5)
    return {"x": x, "gamma": gamma, "beta": beta, "y": scaled * wide(gamma) + wide(beta)}


def bias_gelu(make: Maker) -> Arrays:
    x, bias = make.each(4, 80, dtype=np.float16), make.one(80, dtype=np.float16)
    v = total(x) + wide(bias)
    y = 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))
    return {"x": x, "bias": bias, "y": y}


def silu(make: Maker) -> Arrays:
    x = make.each(1001)
    v = total(x)
    return {"x": x, "y": v / (1 + np.exp(-v))}


def fp8_quantize_row(make: Maker) -> Arrays:
    x = make.each(7, 64, dtype=BF16)
    rows = total(x)
    scale = np.maximum(np.abs(rows).max(axis=-1, keepdims=True), 1e-12) / 448
    return {"x": x, "q": rounded(rows / scale, F8), "scale": scale}


def mean_subtract(make: Maker) -> Arrays:
    x = make.each(3, 50)
    rows = total(x) / make.ranks
    return {"x": x, "y": rows - rows.mean(axis=-1, keepdims=True)}


def softmax_row(make: Maker) -> Arrays:
    x = make.each(4, 65)
    rows = total(x)
    power = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return {"x": x, "y": power / power.sum(axis=-1, keepdims=True)}


def two_operands(make: Maker) -> Arrays:
    a, b = make.each(300), make.each(300, dtype=np.float16)
    gate, value = total(a), total(b)
    return {"a": a, "b": b, "product": gate * value, "larger": np.maximum(gate, value)}


def square_sum(make: Maker) -> Arrays:
    x = make.each(4, 48, dtype=BF16)
    return {"x": x, "y": np.sqrt(np.sum([wide(rows) ** 2 for rows in x], axis=0))}


def quantized_all_gather(make: Maker) -> Arrays:
    x = make.each(2, 64)
    quantized = []
    for rows in x:
        scale = np.maximum(np.abs(wide(rows)).max(axis=-1, keepdims=True), 1e-12) / 448
        quantized.append(wide(rounded(wide(rows) / scale, F8)) * scale)
    return {"x": x, "y": np.concatenate(quantized)}


def reduce_scatter_rmsnorm(make: Maker) -> Arrays:
    x, weight = make.each(2 * make.ranks, 72), make.one(72)
    rows = rms(total(x)) * wide(weight)
    return {"x": x, "weight": weight, "y": np.split(rows, make.ranks)}


def integer_bias(make: Maker) -> Arrays:
    x = [make.random.integers(-128, 128, (3, 40)).astype(np.int8) for _ in range(make.ranks)]
    bias = make.random.integers(-1000, 1000, (3, 40)).astype(np.int32)
    return {"x": x, "bias": bias, "y": np.sum(x, axis=0, dtype=np.int32) + bias}


EXAMPLES: dict[str, Callable[[Maker], Arrays]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        rmsnorm,
        residual_rmsnorm,
        layernorm,
        bias_gelu,
        silu,
        fp8_quantize_row,
        mean_subtract,
        softmax_row,
        two_operands,
        square_sum,
        quantized_all_gather,
        reduce_scatter_rmsnorm,
        integer_bias,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    arrays = EXAMPLES[options.example](Maker(options.example, options.ranks))
    for name, values in arrays.items():
        for rank in range(options.ranks):
            array = values if isinstance(values, np.ndarray | Words) else values[rank]
            path = str(options.folder / f"{name}-{rank}.npy")
            if isinstance(array, Words):
                floats.save(path, array.words, array.element)
            else:
                np.save(path, array)


if __name__ == "__main__":
    main()
