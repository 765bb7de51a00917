"""Finds and calls libcommsir.so, and turns its errors into exceptions.

The library is loaded at the first call, so that `import commsir` is quick.
"""

from __future__ import annotations

import operator
import os
import sys
import threading
import types
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsir import errors

if TYPE_CHECKING:
    import tvm_ffi

__all__ = ["ask", "binding", "call", "library", "library_path", "number"]

_lock = threading.RLock()
_module: tvm_ffi.Module | None = None


def _folders() -> list[Path]:
    """Returns the folders that may contain the libraries, in order of preference."""
    named = os.environ.get("COMMSIR_LIBRARY")
    if named:
        path = Path(named)
        return [path.parent if path.is_file() else path]
    here = Path(__file__).resolve().parent
    return [here / "_lib", here.parents[1] / "build" / "lib"]


def library_path() -> Path:
    """Returns the folder that contains libcommsir.so and libcommsir_ffi.so."""
    for folder in _folders():
        if (folder / "libcommsir_ffi.so").is_file():
            return folder
    looked = ", ".join(str(folder) for folder in _folders())
    raise errors.UsageError(
        f"libcommsir_ffi.so is not in {looked}: install the wheel, or, in a checkout, run `make build`; "
        "COMMSIR_LIBRARY names a folder elsewhere"
    )


def binding() -> types.ModuleType:
    """Imports tvm_ffi without torch.

    tvm_ffi would import torch if it can, which takes a second and is not needed here. Import tvm_ffi only through this
    function.
    """
    with _lock:
        if "tvm_ffi" not in sys.modules and "torch" not in sys.modules:
            sys.modules["torch"] = None  # type: ignore[assignment]
        try:
            import tvm_ffi
        except ImportError as error:
            raise errors.UsageError(f"apache-tvm-ffi is missing ({error}): pip install apache-tvm-ffi") from error
        finally:
            if sys.modules.get("torch", 1) is None:
                del sys.modules["torch"]
    return tvm_ffi


def library() -> tvm_ffi.Module:
    """Returns the binding; loads it at the first call."""
    global _module
    if _module is not None:
        return _module
    with _lock:
        if _module is None:
            folder = library_path()
            try:
                _module = binding().load_module(folder / "libcommsir_ffi.so")
            except errors.CommsError:
                raise
            except Exception as error:
                raise errors.UsageError(f"{folder}/libcommsir_ffi.so cannot be loaded: {error}") from error
    return _module


def call(name: str, *arguments: Any) -> Any:
    """Calls a function of the binding that cannot fail. Raises UsageError if a text is not one of Unicode."""
    try:
        return library().get_function(name)(*arguments)
    except UnicodeEncodeError as error:
        shown = ascii(error.object[max(0, error.start - 40) : error.end + 40])
        raise errors.UsageError(f"a text cannot be passed on, in {shown}: {error.reason}") from None


def refuse_zero_bytes(arguments: Sequence[Any]) -> None:
    """Raises UsageError if a text has a zero byte, at which C would end it."""
    for argument in arguments:
        if isinstance(argument, str) and "\0" in argument:
            at = argument.index("\0")
            raise errors.UsageError(f"a text has a zero byte, after {argument[max(0, at - 40) : at]!r}: leave it out")


def ask(name: str, *arguments: Any) -> str:
    """Calls a function of the binding that returns [status, text]; raises an error with the text on failure."""
    refuse_zero_bytes(arguments)
    status, text = call(name, *arguments)
    if status == 0:
        return str(text)
    raise errors.from_json(int(status), str(text))


def number(value: Any) -> int | float:
    """Converts a number of another library, such as NumPy, to Python."""
    if str(getattr(value, "dtype", "")) == "bool" and not getattr(value, "shape", ()):
        return bool(value)
    if hasattr(value, "__index__"):
        return operator.index(value)
    if hasattr(value, "__float__") and not hasattr(value, "__len__"):
        return float(value)
    raise TypeError(f"it is a {type(value).__name__}")
