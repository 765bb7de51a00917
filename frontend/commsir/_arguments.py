"""Converts arguments of calls to the types that the library expects."""

from __future__ import annotations

import ctypes
import math
import operator
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from commsir import errors
from commsir._arrays import numpy_type, raw_numpy_type

if TYPE_CHECKING:
    import numpy as np
    import tvm_ffi

__all__ = ["OfThisProcess", "int64", "memory_of", "number", "whole"]


class OfThisProcess:
    """Base of what stands for a part of the runtime in this process. A copy would share it, and end it with its own
    end.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuses copy, deepcopy and pickle, which all ask for this."""
        raise errors.UsageError(
            f"{self!r} is of this process, and can be neither copied nor pickled: pass what makes one, and make "
            "another where it is needed"
        )


def number(value: Any, kind: str, what: str) -> int | float:
    """Converts a number to Python's without changing its value: 3.5 is no i32. `kind` is the type that it is for."""
    whole = kind.startswith("i")
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        near = float(value)
        if not whole:
            return near
        return int(near) if near.is_integer() and not hasattr(value, "__index__") else operator.index(value)
    except (TypeError, ValueError, OverflowError):
        wanted = "whole number" if whole else "number"
        raise errors.UsageError(f"{what} is {value!r}, but must be a {wanted} ({kind})") from None


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
