"""What PTX computes with registers, which hold bits: conversions, rounding, comparisons, extremes."""

import fractions
import functools
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])


def b32(value: float) -> int:
    if value != value:
        return 0x7FFFFFFF
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def f64(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0])


def b64(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def bf16(bits: int) -> int:
    """f32 to bf16, to nearest even."""
    bits &= 0xFFFFFFFF
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FFF
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def f16(bits: int) -> int:
    """f32 to f16, to nearest even."""
    value = f32(bits)
    if value != value:
        return 0x7FFF
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def from_f16(bits: int) -> int:
    return b32(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])


def from_bf16(bits: int) -> int:
    return (bits & 0xFFFF) << 16


NARROW: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
#: Bits of a type of PTX, or of a part of one.
WIDTHS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "pred": 1}
WIDTHS |= {f"{kind}{width}": width for kind in "busf" for width in (32, 64)}
WIDTHS |= {f"{kind}x2": 16 for kind in NARROW}
WIDTHS |= {"b128": 128, "f16x2": 32, "bf16x2": 32, "s16x2": 32, "u16x2": 32, "f32x2": 64}


def to_narrow(bits: int, kind: str) -> int:
    """f32 to fp8, to nearest even; what is too large becomes the greatest finite number (.satfinite)."""
    value, to = f32(bits), NARROW[kind]
    if value != value:
        return 0x7F
    most = {"e4m3": 448.0, "e5m2": 57344.0}[kind]
    return int(np.array(min(max(value, -most), most), np.float32).astype(to).view(np.uint8))


def from_narrow(bits: int, kind: str) -> int:
    """fp8 to f16, which has all of its numbers."""
    value = float(np.array(bits & 0xFF, np.uint8).view(NARROW[kind]))
    return f16(b32(value))


#: A register as a number.
FLOATS = {"f16": "f32(from_f16({}))", "bf16": "f32(from_bf16({}))", "f32": "f32({})", "f64": "f64({})"}
INTEGRAL: dict[str, Callable[[float], int]] = {"rzi": math.trunc, "rni": round, "rmi": math.floor, "rpi": math.ceil}


def integral(value: float, mode: str) -> float:
    return math.copysign(INTEGRAL[mode](value), value) if math.isfinite(value) else value


def divide(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def root(a: float) -> float:
    return math.sqrt(a) if a >= 0 else math.nan if a < 0 or a != a else a


def fma(a: float, b: float, c: float) -> float:
    """Of numbers of f32: what rounds to f32 as a * b + c does, which has more digits than f64."""
    product = a * b  # Exact.
    total = product + c
    back = total - product
    left = (product - (total - back)) + (c - back)
    if left == 0 or not math.isfinite(total) or int(np.float64(total).view(np.uint64)) & 1:
        return total
    # Rounded to odd, a sum lies on no tie of a narrower type.
    return math.nextafter(total, math.inf if left > 0 else -math.inf)


def fma_of_f64(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    if not exact:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def compare(how: str, a: float, b: float) -> bool:
    unordered = a != a or b != b
    if how in ("nan", "num"):
        return unordered == (how == "nan")
    if len(how) == 3 and unordered:
        return True
    how = how[:2]
    plain = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    return plain[how] and not unordered


def permute(a: int, b: int, selector: int) -> int:
    data = (b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF
    result = 0
    for at in range(4):
        pick = selector >> 4 * at & 15
        byte = data >> 8 * (pick & 7) & 255
        if pick & 8:
            byte = 255 if byte >> 7 else 0
        result |= byte << 8 * at
    return result


def to_integer(value: float, width: int, is_signed: bool) -> int:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    if value != value:
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def divide_int(a: int, b: int) -> int:
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def from_integer(value: int) -> int:
    """An integer as f32, rounded once."""
    exact = float(value) if abs(value) < 1 << 53 else None
    if exact is not None:
        return b32(exact)
    shift = abs(value).bit_length() - 30
    sticky = 1 if abs(value) & (1 << shift) - 1 else 0
    return b32(math.copysign(float((abs(value) >> shift | sticky) << shift), value))


def _extreme(a: int, b: int, nan: bool, of: Callable[[int], float], to: Callable[[float], int], least: bool) -> int:
    x, y = of(a), of(b)
    if x != x or y != y:
        return to(math.nan) if nan or (x != x and y != y) else (b if x != x else a)
    if x == y == 0:
        return max(a, b) if least else min(a, b)
    return a if (x < y) == least else b


def minimum(a: int, b: int, nan: bool, of: Callable[[int], float], to: Callable[[float], int]) -> int:
    return _extreme(a, b, nan, of, to, True)


def maximum(a: int, b: int, nan: bool, of: Callable[[int], float], to: Callable[[float], int]) -> int:
    return _extreme(a, b, nan, of, to, False)


COMBINE: dict[str, Callable[[int, int], int]] = {"add": operator.add, "min": min, "max": max}
COMBINE |= {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def combined(what: str, kind: str, values: list[int]) -> int:
    """One word of all ranks."""
    if kind in ("f16x2", "bf16x2"):
        low, high = ([value >> by & 0xFFFF for value in values] for by in (0, 16))
        return combined(what, kind[:-2], low) | combined(what, kind[:-2], high) << 16
    if kind in ("f16", "bf16", "f32", "f64"):
        of: Callable[[int], int] = {"f16": from_f16, "bf16": from_bf16}.get(kind, int)
        wide, to = (f64, b64) if kind == "f64" else (f32, b32)
        total = of(values[0])
        for value in values[1:]:
            one = of(value)
            total = (
                to(wide(total) + wide(one)) if what == "add" else _extreme(total, one, False, wide, to, what == "min")
            )
        return {"f16": f16, "bf16": bf16}.get(kind, int)(total)
    width = WIDTHS[kind]
    numbers = [signed(value, width) if kind[0] == "s" else value & (1 << width) - 1 for value in values]
    total = functools.reduce(COMBINE[what], numbers)
    return total & (1 << width) - 1
