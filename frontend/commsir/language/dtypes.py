"""Types of elements, by their names in MLIR and in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class DType:
    """The type of a scalar or of the elements of arrays and tiles.

    `f32[Window, "rows", 64]` annotates a parameter, `f32(x)` converts a value.
    """

    name: str
    mlir: str
    kind: str  # "float", "int", "bool" or "index"
    width: int
    #: The meaning of `f32[Window, "n"]`; `parameters` sets it.
    annotate: ClassVar[Callable[[DType, tuple[Any, ...]], Any]]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        # There is one of each: they are compared by identity.
        return _by_name, (self.name,)

    def __getitem__(self, items: Any) -> Any:
        return DType.annotate(self, items if isinstance(items, tuple) else (items,))

    def __call__(self, value: Any) -> Any:
        """Outside a kernel: the NumPy value nearest to `value`."""
        if not self.is_float:
            return self.numpy.type(value)
        return widen(narrow(np.asarray(value, dtype=np.float64), self), self).reshape(())[()]

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "index")

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy type for the bits of an element: the type itself, or unsigned integers of its width."""
        return np.dtype(_NUMPY.get(self.name, f"uint{self.width}"))

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The NumPy type that holds every value: float32 for the narrow floats that NumPy does not have."""
        return self.numpy if self.name in _NUMPY else np.dtype(np.float32)


_NUMPY = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "bool": "bool",
    "index": "int64",
}

F64 = DType("f64", "f64", "float", 64)
F32 = DType("f32", "f32", "float", 32)
F16 = DType("f16", "f16", "float", 16)
BF16 = DType("bf16", "bf16", "float", 16)
F8 = DType("f8", "f8E4M3FN", "float", 8)
F8E5M2 = DType("f8e5m2", "f8E5M2", "float", 8)
I64 = DType("i64", "i64", "int", 64)
I32 = DType("i32", "i32", "int", 32)
I16 = DType("i16", "i16", "int", 16)
I8 = DType("i8", "i8", "int", 8)
BOOL = DType("bool", "i1", "bool", 1)
INDEX = DType("index", "index", "index", 64)

ALL = (F64, F32, F16, BF16, F8, F8E5M2, I64, I32, I16, I8, BOOL, INDEX)
BY_NAME: dict[str, DType] = {d.name: d for d in ALL} | {
    "f8E4M3FN": F8,
    "float8_e4m3fn": F8,
    "f8E5M2": F8E5M2,
    "float8_e5m2": F8E5M2,
    "bfloat16": BF16,
    "i1": BOOL,
    **{np.dtype(name).name: d for d in ALL if (name := _NUMPY.get(d.name)) and d is not INDEX},
}


def as_dtype(value: object) -> DType | None:
    """The element type that `value` names: a DType, its name, or a NumPy or torch type; None for anything else."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return BY_NAME.get(value)
    if value is bool:
        return BOOL
    if value is int:
        return INDEX
    if value is float:
        return F32
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return BY_NAME.get(np.dtype(value).name)
    text = str(value)
    return BY_NAME.get(text.removeprefix("torch.")) if text.startswith("torch.") else None


def promote(a: DType, b: DType) -> DType:
    """The type in which values of types `a` and `b` are combined.

    Floats win over integers, wider ones over narrower ones; two floats of one width (bf16 and f16, f8 and f8e5m2) meet
    in f32, index wins over integers.
    """
    if a is b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        return F32 if a.width == b.width else max(a, b, key=lambda d: d.width)
    order = (BOOL, I8, I16, I32, I64, INDEX)
    return max(a, b, key=order.index)


def _by_name(name: str) -> DType:
    return BY_NAME[name]


def narrow(values: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """`values` rounded to `dtype` (to nearest even), as the bits that `dtype.numpy` holds.

    As in kernels, overflow gives infinity, but saturates in f8, which has none, and a NaN is the one of its type.
    """
    if dtype is BF16:
        return _to_bf16(_as_float32(values))
    if dtype in _F8_FORMATS:
        return _F8_FORMATS[dtype].encode(_as_float32(values))
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=dtype.numpy)


def widen(bits: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The inverse of `narrow`: exact."""
    if dtype is BF16:
        return np.asarray(bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in _F8_FORMATS:
        return np.asarray(_F8_FORMATS[dtype].values[bits])
    return bits


def _as_float32(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def _to_bf16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


class _F8Format:
    """An 8-bit float format with `fraction` fraction bits."""

    def __init__(self, fraction: int, nan: int, most: int) -> None:
        self.fraction, self.nan, self.most = fraction, nan, most
        # The exponent of subnormal numbers.
        self.least = 2 - (1 << (6 - fraction))
        code = np.arange(128)
        exponent, rest = code >> fraction, code & ((1 << fraction) - 1)
        size = np.where(exponent == 0, rest, rest + (1 << fraction)) * 2.0 ** (
            np.maximum(exponent, 1) - 1 + self.least - fraction
        )
        size[most], size[most + 1 :] = (np.inf if most != nan - 1 else size[most]), np.nan
        #: The values of all 256 codes.
        self.values = np.concatenate([size, -size]).astype(np.float32)

    def encode(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Rounds to nearest, ties to even. Values out of range become `most`, infinity, or the last pattern."""
        with np.errstate(invalid="ignore"):
            size = np.abs(values.astype(np.float64))
        exponent = np.maximum(np.frexp(size)[1] - 1, self.least)
        quantum = 2.0 ** (exponent - self.fraction)
        sizes = self.values[: self.most + 1].astype(np.float64)
        code = np.searchsorted(sizes, np.rint(np.nan_to_num(size, posinf=1e9) / quantum) * quantum)
        code = np.minimum(code, self.most).astype(np.uint8)
        code = np.where(np.signbit(values), code | 0x80, code).astype(np.uint8)
        return np.where(np.isnan(values), np.uint8(self.nan), code)


_F8_FORMATS = {F8: _F8Format(3, nan=0x7F, most=0x7E), F8E5M2: _F8Format(2, nan=0x7E, most=0x7C)}
