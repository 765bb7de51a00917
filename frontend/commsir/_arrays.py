"""Arrays of any library, accessed through DLPack, with MLIR's names for their element types."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from commsir.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import tvm_ffi

__all__ = [
    "Array",
    "View",
    "dlpack_name",
    "dtype_name",
    "element_type",
    "empty",
    "to_library_of",
    "is_immutable",
    "numpy_type",
    "raw_numpy_type",
    "spelled",
    "view",
]

Array = Any
"""A NumPy array, a torch tensor, or whatever has `__dlpack__`."""

#: Types that are spelled differently here and there. Integers have no sign in the IR.
_NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "i64",
    "uint32": "i32",
    "uint16": "i16",
    "uint8": "i8",
    "bool": "i1",
    "bool_": "i1",
}

#: Bytes of an element that DLPack does not carry everywhere.
_RAW = {"bf16": "uint16", "f8E4M3FN": "uint8", "f8E5M2": "uint8"}


class View(NamedTuple):
    """An array in the form that the library expects."""

    tensor: tvm_ffi.Tensor
    type: str
    shape: tuple[int, ...]
    #: Set where the array cannot be written: a copy was taken, and this is the original.
    frozen: np.ndarray[Any, Any] | None = None
    copy: np.ndarray[Any, Any] | None = None
    #: Of JAX, and used where it lies: nothing may write it. On a GPU what reads it has to have ended before the array
    #: may go, as JAX gives its memory to computations in streams that know nothing of the reader's.
    immutable: bool = False

    def is_unsigned(self) -> bool:
        """Whether the elements are unsigned integers. Kernels compare and divide them as signed ones."""
        return self.type.startswith("i") and str(self.tensor.dtype).startswith("uint")

    def is_writable(self) -> bool:
        return self.copy is None and not self.immutable

    def is_unmodified(self) -> bool:
        """Returns False if the callee has written to the copy of a read-only array."""
        return self.frozen is None or self.copy is None or self.frozen.tobytes() == self.copy.tobytes()


def element_type(array: Array) -> str:
    """Returns MLIR's name of the array's element type: "f32", "bf16", "i8", …"""
    return dtype_name(array.dtype)


@functools.cache
def dtype_name(dtype: Any) -> str:
    """Returns MLIR's name for a dtype of NumPy, torch or JAX."""
    name = _library_name(dtype)
    try:
        return _NAMES[name]
    except KeyError:
        known = ", ".join(dict.fromkeys(_NAMES.values()))
        raise UsageError(f"elements of type {name} are unknown to CommsIR, which has {known}") from None


def _library_name(dtype: Any) -> str:
    """Returns the name that libraries use for a dtype: "uint8"."""
    return getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")


def spelled(dtype: Any) -> tuple[str, str]:
    """Returns MLIR's and DLPack's names of an element type.

    The type may be given as "f32", "float32", numpy.float32, a torch dtype, or commsir.f32.
    """
    given = getattr(dtype, "mlir", dtype)
    if isinstance(given, str):
        if given in _NAMES.values():
            return given, dlpack_name(given)
        if given in _NAMES:
            return _NAMES[given], "bool" if given == "bool_" else given
    if type(given).__module__ != "torch":
        import numpy as np

        try:
            if isinstance(given, str) and not given.isalpha():
                raise TypeError  # NumPy's codes count bytes: its "i8" is not ours.
            given = np.dtype(given)
        except TypeError:
            known = ", ".join(dict.fromkeys(_NAMES.values()))
            raise UsageError(f"there is no element type {dtype!r}: it is one of {known}, NumPy's or torch's") from None
    return dtype_name(given), _library_name(given)


def numpy_type(name: str) -> np.dtype[Any]:
    """Returns NumPy's type for MLIR's name. bf16 and fp8 need ml_dtypes."""
    import numpy as np

    if name in _RAW:
        try:
            import ml_dtypes
        except ImportError:
            raise UsageError(f"NumPy has {name} only with ml_dtypes: pip install ml_dtypes") from None
        made: np.dtype[Any] = np.dtype(getattr(ml_dtypes, next(key for key, value in _NAMES.items() if value == name)))
        return made
    for spelled, ours in _NAMES.items():
        if ours == name:
            return np.dtype(spelled)
    raise UsageError(f"there is no element type '{name}'")


def dlpack_name(name: str) -> str:
    """Returns DLPack's name for MLIR's name."""
    for spelled, ours in _NAMES.items():
        if ours == name:
            return spelled
    raise UsageError(f"there is no element type '{name}'")


def raw_numpy_type(name: str) -> np.dtype[Any]:
    """Like `numpy_type`, but returns the unsigned integer of that width if NumPy may lack the type."""
    import numpy as np

    return np.dtype(_RAW[name]) if name in _RAW else numpy_type(name)


@functools.cache
def _library_of(kind: Any) -> str:
    """Returns the library that a type of arrays belongs to: "numpy", "torch" or "jax"; "" for any other."""
    for library, name in (("numpy", "ndarray"), ("torch", "Tensor")):
        if issubclass(kind, getattr(sys.modules.get(library), name, ())):
            return library
    return "jax" if kind.__module__.partition(".")[0] in ("jax", "jaxlib") else ""


def _raw(array: Array, name: str) -> Array:
    """Reinterprets the memory with an element type that DLPack supports."""
    library = _library_of(array.__class__)
    if library == "numpy":
        return array.view(_RAW[name])
    if library == "torch":
        return array.view(getattr(sys.modules["torch"], _RAW[name]))
    return array


def refuse_mask(array: Array, what: str) -> None:
    """Raises UsageError for an array of numpy.ma that has masked elements."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(array, ma.MaskedArray) and ma.is_masked(array):
        raise UsageError(f"{what} has masked elements, which would count as others: pass .filled(value) of it")


def refuse_short_storage(tensor: Any, what: str) -> None:
    """Raises UsageError for a contiguous tensor of torch whose storage ends before its last element."""
    spare = tensor.untyped_storage().nbytes() - tensor.nbytes
    offset = tensor.storage_offset()
    # Of most tensors it begins the storage, and is all of it.
    if (spare or offset) and spare < offset * tensor.itemsize and tensor.numel() and tensor.is_contiguous():
        given = spare + tensor.nbytes
        needed = offset * tensor.itemsize + tensor.nbytes
        raise UsageError(
            f"{what} needs {needed} bytes of its storage, which has {given}: untyped_storage().resize_() made it too "
            "small; resize it to that size, or pass another tensor"
        )


def truths(array: Array, stream: int) -> Array:
    """Returns booleans whose bytes are 0 and 1. Of a view of other bytes, all but 0 are true.

    `stream` is the one in which a call on a GPU reads them.
    """
    library = _library_of(array.__class__)
    if library == "numpy":
        return array.view("uint8") != 0
    if library != "torch":
        return array
    torch = sys.modules["torch"]
    if array.is_cpu:
        return array.view(torch.uint8) != 0
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, array.device)):
        return array.view(torch.uint8) != 0


def is_immutable(array: Array) -> bool:
    """Whether the array belongs to JAX, whose arrays never change."""
    return _library_of(array.__class__) == "jax"


def empty(like: Array, shape: tuple[int, ...]) -> Array:
    """Allocates memory for an output, on the device of `like`. `to_library_of` converts it to the library of `like`."""
    if is_immutable(like):
        made = sys.modules["jax"].numpy.empty(shape, like.dtype, device=like.device)
        _wait_for(made, "the output")
        # The memory alone stays: nobody has the array that it was of.
        return _to_dlpack(made, "", "the output")
    for library, kind in (("numpy", "ndarray"), ("torch", "Tensor"), ("cupy", "ndarray")):
        found = sys.modules.get(library)
        if found is None or not isinstance(like, getattr(found, kind)):
            continue
        if library == "torch":
            return found.empty(shape, dtype=like.dtype, device=like.device)
        with contextlib.nullcontext() if library == "numpy" else like.device:
            return found.empty(shape, like.dtype)
    raise UsageError(f"no library is known that makes a {type(like).__name__}: pass an array for the result")


def to_library_of(memory: Array, like: Array) -> Array:
    """Converts the written result of `empty` to an array of the library of `like`."""
    return sys.modules["jax"].dlpack.from_dlpack(memory) if is_immutable(like) else memory


def _wait_for(array: Array, what: str) -> None:
    """Waits until JAX has computed the array, because CUDA streams do not wait for JAX's computations."""
    if not hasattr(array, "block_until_ready"):
        raise UsageError(
            f"{what} is traced by JAX (jax.jit, grad, vmap), and has no memory yet: call this outside of it"
        )
    array.block_until_ready()


def _to_dlpack(array: Array, name: str, what: str) -> tvm_ffi.Tensor:
    """Exports the array through DLPack. If that fails, tries again with raw elements and without the gradient."""
    try:
        return _from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        plain = array.detach() if hasattr(array, "detach") else array
        plain = _raw(plain, name) if name in _RAW else plain
        if plain is array:
            hint = "; of a sharded array pass a part: x.addressable_data(0)" if is_immutable(array) else ""
            why = _error_text(error).rstrip(".")
            raise UsageError(f"{what} cannot be shared through DLPack: {why}{hint}") from error
        try:
            return _from_dlpack(plain)
        except (BufferError, RuntimeError, TypeError, ValueError) as again:
            raise UsageError(f"{what} cannot be shared through DLPack: {_error_text(again)}") from again


def _error_text(error: Exception) -> str:
    """Returns the message of an error without the C++ stack that torch appends."""
    return str(error).partition("\nException raised from ")[0]


def _from_dlpack(array: Array) -> tvm_ffi.Tensor:
    """Calls tvm_ffi.from_dlpack, which replaces this function at the first call."""
    global _from_dlpack
    from commsir._binding import binding

    _from_dlpack = binding().from_dlpack
    return _from_dlpack(array)


def view(array: Array, what: str = "the array", device: str = "cpu:0", *, written: bool = True) -> View:
    """Prepares `array`, which must lie on `device`, for a call into the library.

    `what` names the array in errors. With `written`, the call may write to it; if its host memory is read-only, the
    call then gets a copy.
    """
    library = _library_of(array.__class__)
    immutable = library == "jax"
    if immutable:
        _wait_for(array, what)
    if not library and not hasattr(array, "__dlpack__"):
        instead = "its array: w.array" if hasattr(array, "array") else "one of NumPy, torch, JAX or CuPy"
        raise UsageError(f"{what} is a {type(array).__name__}, not an array: pass {instead}")
    if not library and not hasattr(array, "dtype"):
        array = _to_dlpack(array, "", what)  # That is all that DLPack asks for.
    name = dtype_name(array.dtype)
    frozen = copy = None
    if library == "numpy":
        refuse_mask(array, what)
        if not array.dtype.isnative:
            raise UsageError(f"{what} has another order of bytes: pass x.astype(x.dtype.newbyteorder('=')) of it")
        if not array.flags.writeable:  # NumPy does not share it then.
            frozen = array
            array = copy = _copied(array)
        elif not array.flags.c_contiguous:
            raise UsageError(f"{what} is not contiguous: pass numpy.ascontiguousarray(…) of it")
    elif library == "torch":
        if array.is_neg():  # A view, whose memory is not what it holds.
            raise UsageError(f"{what} negates what is in its memory: pass .resolve_neg() of it")
        refuse_short_storage(array, what)
    tensor = _to_dlpack(array, name, what)
    place = str(tensor.device)
    if place != device and not (device == "cpu:0" and place.startswith("cpu:")):  # JAX may count parts of the host.
        raise UsageError(f"{what} is on {place}; it must be on {device}: move it there first")
    if not tensor.is_contiguous():
        raise UsageError(f"{what} is not contiguous: pass a contiguous copy of it")
    if immutable and written:
        if device != "cpu:0":
            raise UsageError(
                f"{what} is a JAX array, which is immutable, and the call may write it: pass an array of torch or CuPy"
            )
        import numpy as np

        frozen, immutable = np.asarray(array), False
        copy = _copied(frozen)
        tensor = _to_dlpack(copy, name, what)
    return View(tensor, name, tuple(array.shape), frozen, copy, immutable)


def _copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.array(array, order="C")
