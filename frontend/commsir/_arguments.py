"""Converts arguments of calls to the types that the library expects."""

from __future__ import annotations

import ctypes
import math
import operator
from typing import TYPE_CHECKING, Any

from commsir import errors
from commsir._arrays import numpy_type, raw_numpy_type

if TYPE_CHECKING:
    import numpy as np
    import tvm_ffi

__all__ = ["int64", "memory_of", "whole"]


def whole(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise errors.UsageError(f"{what} is {value!r}, which is not an integer") from None


def int64(value: Any, what: str) -> int:
    """Converts a whole number to the library's 64-bit integer."""
    number = whole(value, what)
    if not -(2**63) <= number < 2**63:
        raise errors.UsageError(f"{what} is {number}, but must be a number of 64 bits")
    return number


def memory_of(tensor: tvm_ffi.Tensor, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    """Returns the memory of a window as a NumPy array that keeps the window alive."""
    import numpy as np

    try:
        dtype = numpy_type(kind)
    except errors.UsageError:
        dtype = raw_numpy_type(kind)
    size = dtype.itemsize * math.prod(shape)
    memory = (ctypes.c_char * size).from_address(int(tensor.data_ptr()))
    memory._keep = tensor  # type: ignore[attr-defined]
    made: np.ndarray[Any, Any] = np.ndarray(shape, dtype, buffer=memoryview(memory))
    return made
