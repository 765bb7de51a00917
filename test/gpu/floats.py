"""Elements of kernels as words in NumPy, for hosts whose NumPy has no bf16 and no 8-bit floats.

An array of floats is an array of unsigned words, as in memory; integers are unchanged. `widen` returns the numbers;
`narrow` rounds numbers to words by the rules of docs/Spec.md (Bits, "Conversions"): round to nearest even, one NaN per
type. Only NumPy is needed; test_run.py compares with ml_dtypes.
"""

import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "f8E4M3FN": 1, "f8E5M2": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
#: Bits of a significand, the hidden one too; distance of subnormal numbers; greatest number.
DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8, "f8E4M3FN": 4, "f8E5M2": 3}
STEP = {
    "f64": 2.0**-1074,
    "f32": 2.0**-149,
    "f16": 2.0**-24,
    "bf16": 2.0**-133,
    "f8E4M3FN": 2.0**-9,
    "f8E5M2": 2.0**-16,
}
GREATEST = {
    "f64": float(np.finfo(np.float64).max),
    "f32": float(np.finfo(np.float32).max),
    "f16": 65504.0,
    "bf16": 255.0 * 2.0**120,
    "f8E4M3FN": 448.0,
    "f8E5M2": 57344.0,
}
#: The NaN that arithmetic stores.
NAN = {"f64": 0x7FF8 << 48, "f32": 0x7FC00000, "f16": 0x7E00, "bf16": 0x7FC0, "f8E4M3FN": 0x7F, "f8E5M2": 0x7E}


def is_float(element: str) -> bool:
    return not element.startswith("i")


def word(element: str) -> np.dtype[Any]:
    """The type of the words of `element`."""
    return np.dtype(f"<{'u' if is_float(element) else 'i'}{BYTES[element]}")


def save(path: str, words: Array, element: str) -> None:
    """Writes a .npy file that comms-run takes for `element`; types that NumPy lacks as raw bytes."""
    known = {"f32": "<f4", "f64": "<f8", "f16": "<f2"}
    kind = known.get(element, f"|V{BYTES[element]}") if is_float(element) else word(element).str
    np.save(path, np.ascontiguousarray(words).view(kind))


def load(path: str | pathlib.Path, element: str) -> Array:
    """The words of a .npy file."""
    array: Array = np.load(path)
    return array.view(word(element))


def _e4m3() -> Array:
    """The number of each byte of f8E4M3FN."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, (code & 7).astype(np.float32)
    number = np.where(exponent == 0, np.ldexp(fraction, -9), np.ldexp(8 + fraction, exponent - 10)).astype(np.float32)
    number[code & 0x7F == 0x7F] = np.nan
    return np.where(code & 0x80, -number, number)


_E4M3 = _e4m3()


def _extend(numbers: Array) -> Array:
    """f16 as f32; a NaN may be a signaling one."""
    with np.errstate(invalid="ignore"):
        return np.asarray(numbers.astype(np.float32))


def widen(words: Array, element: str) -> Array:
    """Numbers: f64 of f64, f32 of every other float, integers as they are."""
    if not is_float(element):
        return words
    if element == "f64":
        return words.view("<f8")
    if element == "f32":
        return words.view("<f4")
    if element == "f16":
        return _extend(words.view("<f2"))
    if element == "bf16":
        return (words.astype("<u4") << 16).view("<f4")
    if element == "f8E5M2":
        return _extend((words.astype("<u2") << 8).view("<f2"))
    numbers: Array = _E4M3[words]
    return numbers


def _narrow_f8(numbers: Array, values: Array) -> Array:
    """The byte of the nearest of `values`, which are those of the bytes 0, 1, …; of two, that of the even byte."""
    middle = (values[1:].astype(np.float64) + values[:-1]) / 2
    size = np.abs(numbers).astype(np.float64)
    byte = np.searchsorted(middle, size, side="left")
    tie = (byte < middle.size) & (middle[np.minimum(byte, middle.size - 1)] == size) & (byte & 1 == 1)
    words: Array = (byte + tie + np.where(np.signbit(numbers), 0x80, 0)).astype(np.uint8)
    return words


def narrow(numbers: Array, element: str) -> Array:
    """Words of `numbers` (f32, or f64 for f64) as arithmetic stores them; integers wrap."""
    kind = word(element)
    if not is_float(element):
        return numbers.astype(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        if element in ("f32", "f64"):
            words = np.array(numbers, f"<f{BYTES[element]}").view(kind)
        elif element == "f16":
            words = numbers.astype("<f2").view(kind)
        elif element == "bf16":
            bits = np.ascontiguousarray(numbers, "<f4").view("<u4").astype(np.uint64)
            words = (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(kind)
        elif element == "f8E4M3FN":
            words = _narrow_f8(numbers, _E4M3[:0x7F])
        else:
            # Infinity stands where the next number would be.
            words = _narrow_f8(numbers, np.append(widen(np.arange(0x7C, dtype=np.uint8), "f8E5M2"), 65536.0))
    words[np.isnan(numbers)] = NAN[element]
    return words
