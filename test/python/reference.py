"""The bits that docs/Spec.md (chapter "Bits") promises, in NumPy.

Nothing here approximates: every function returns exactly the array that a kernel stores, including
NaN. Floats are bfloat16, float8_e4m3fn and float8_e5m2 (ml_dtypes), float16 and float32; integers
wrap.
"""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
F8 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)
F16 = np.dtype(np.float16)
F32 = np.dtype(np.float32)

#: Elements of a row that one tree of pairs combines, at most.
MAX_CHUNK = 16384

#: Bits of the one NaN that arithmetic stores, by type.
CANONICAL_NAN = {E5M2: 0x7E, BF16: 0x7FC0, F16: 0x7E00, F32: 0x7FC00000, np.dtype(np.float64): 0x7FF8 << 48}

KINDS = ("sum", "prod", "min", "max", "avg", "and", "or", "xor")


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether numbers of `dtype` are floats, ml_dtypes' included."""
    return dtype in (BF16, F8, E5M2) or dtype.kind == "f"


def bits(array: Array) -> Array:
    """The array's elements as unsigned integers, for comparison to the bit."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def canonical(array: Array) -> Array:
    """`array` as arithmetic stores it: every NaN is the one of its type. Copies."""
    result = np.array(array)
    if result.dtype in CANONICAL_NAN:
        words = result.view(f"u{result.dtype.itemsize}")
        words[np.isnan(array)] = CANONICAL_NAN[result.dtype]
    return result


def convert(array: Array, dtype: Any) -> Array:
    """A float array in another float type: nearest even, canonical NaN.

    Narrow types are reached from float32, except float64 to float32. float8_e4m3fn saturates:
    beyond 448 and infinite values become ±448, NaN becomes 0x7F without its sign.
    """
    target = np.dtype(dtype)
    if target != F8:
        wide = array if array.dtype.itemsize >= 4 else array.astype(F32)
        with np.errstate(over="ignore", invalid="ignore"):
            return canonical(wide.astype(target))
    wide = array.astype(F32)
    nan = np.isnan(wide)
    result = np.clip(np.where(nan, 0, wide), -448, 448).astype(np.float32).astype(F8)
    words = result.view(np.uint8)
    words[nan] = 0x7F
    return result


def to_integer(array: Array, dtype: Any) -> Array:
    """Floats as integers: towards zero, saturating, NaN becomes 0."""
    limits = np.iinfo(dtype)
    wide = np.trunc(np.where(np.isnan(array.astype(np.float64)), 0, array.astype(np.float64)))
    result = np.zeros(array.shape, dtype)
    low, high = wide <= float(limits.min), wide >= float(limits.max)
    inside = ~(low | high)
    result[inside] = wide[inside].astype(dtype)
    result[low], result[high] = limits.min, limits.max
    return result


def minimum(a: Array, b: Array) -> Array:
    """The lesser; NaN wins, and -0 is less than +0."""
    if not is_float(a.dtype):
        return np.minimum(a, b)
    lesser = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, lesser)).astype(a.dtype)


def maximum(a: Array, b: Array) -> Array:
    """The greater; NaN wins, and +0 is greater than -0."""
    if not is_float(a.dtype):
        return np.maximum(a, b)
    greater = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, greater)).astype(a.dtype)


def _add(a: Array, b: Array) -> Array:
    return a + b


def _multiply(a: Array, b: Array) -> Array:
    return a * b


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "sum": _add,
    "avg": _add,
    "prod": _multiply,
    "min": minimum,
    "max": maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def combine(kind: str, a: Array, b: Array) -> Array:
    """Two arrays of one type, element by element. Integers wrap."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _COMBINE[kind](a, b)


def _divide(total: Array, count: int) -> Array:
    """An average: floats are divided in their type, integers truncate towards zero."""
    if is_float(total.dtype):
        return canonical(total / np.asarray(count).astype(total.dtype))
    wide = total.astype(object)
    quotient = abs(wide) // count * np.where(total < 0, -1, 1)
    return np.asarray(quotient).astype(total.dtype)


def _pairs(kind: str, row: Array) -> Array:
    """Neighbors combined until one element is left; an array of that one."""
    while row.size > 1:
        left, right = np.array(row[0::2]), row[1::2]
        left[: right.size] = combine(kind, left[: right.size], right)
        row = left
    return row


def row_reduce(kind: str, row: Array) -> Any:
    """One row (1-D, not empty) combined by the tree; a scalar of the row's type.

    The row is cut into chunks of W elements, W the least power of two that is not less than the
    length, at most 16,384. In a chunk neighbors are combined, left (op) right, then their results,
    until one is left; what has no right neighbor stays as it is. The chunks' results are combined
    from left to right.
    """
    if row.ndim != 1 or row.size == 0:
        raise ValueError(f"row_reduce: a row is 1-D and not empty, this has shape {row.shape}")
    width = min(MAX_CHUNK, 1 << (row.size - 1).bit_length())
    result = _pairs(kind, row[:width])
    for first in range(width, row.size, width):
        result = combine(kind, result, _pairs(kind, row[first : first + width]))
    if kind == "avg":
        result = _divide(result, row.size)
    return canonical(result)[0]


def row_reduce_all(kind: str, rows: Array) -> Array:
    """`row_reduce` of each row of a 2-D array; shape (rows, 1)."""
    return np.array([[row_reduce(kind, row)] for row in rows], rows.dtype)


def accumulator(dtype: Any) -> np.dtype[Any]:
    """The type in which ranks are summed: float32 for floats, int32 for int8, else the same."""
    given = np.dtype(dtype)
    if is_float(given):
        return F32 if given.itemsize < 8 else given
    return np.dtype(np.int32) if given == np.int8 else given


def rank_reduce(kind: str, parts: Sequence[Array]) -> Array:
    """The ranks' arrays combined in rank order, in the accumulator type (not yet rounded)."""
    dtype = accumulator(parts[0].dtype)
    total = parts[0].astype(dtype)
    for part in parts[1:]:
        total = combine(kind, total, part.astype(dtype))
    return _divide(total, len(parts)) if kind == "avg" else canonical(total)


def one_shot(kind: str, parts: Sequence[Array], dtype: Any = None) -> Array:
    """All-reduce in one round: rank order in the accumulator type, rounded once."""
    total = rank_reduce(kind, parts)
    target = np.dtype(parts[0].dtype if dtype is None else dtype)
    return convert(total, target) if is_float(total.dtype) else total.astype(target)


def two_shot(kind: str, parts: Sequence[Array], wire: Any = None, dtype: Any = None) -> Array:
    """All-reduce in two rounds: the reduced part is rounded to the type in which it travels."""
    travels = np.dtype(parts[0].dtype if wire is None else wire)
    total = rank_reduce(kind, parts)
    if not is_float(total.dtype):
        return total.astype(parts[0].dtype if dtype is None else dtype)
    target = np.dtype(parts[0].dtype if dtype is None else dtype)
    return convert(convert(total, travels).astype(F32), target)
