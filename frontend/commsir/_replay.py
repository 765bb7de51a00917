"""A simulated run as one file: the IR, the inputs, the options with seed and schedule."""

from __future__ import annotations

import ctypes
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsir import _files, errors

if TYPE_CHECKING:
    from commsir._arrays import View

__all__ = ["Run", "replay"]

_FORMAT = "commsir-run-1"


@dataclass(frozen=True)
class Run:
    """All that a simulation depends on."""

    source: str
    request: dict[str, Any]
    #: Bytes of each rank's part of each argument.
    arrays: dict[str, list[bytes]]

    @staticmethod
    def take(source: str, request: Mapping[str, Any], views: Mapping[str, Sequence[View]]) -> Run:
        """A copy: the caller's arrays may change."""
        parts = {
            name: [ctypes.string_at(one.tensor.data_ptr(), _bytes(one)) for one in some] for name, some in views.items()
        }
        # A replay writes no files of its own.
        return Run(source, {**request, "trace": None}, parts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a ZIP file of kernel.mlir, run.json and the arrays' bytes."""
        _files.check_writable(path)
        for name, value in (self.request.get("inputs") or {}).items():
            if isinstance(value, str) and _is_file(value):
                raise errors.UsageError(
                    f"the input '{name}' of this run is the file '{value}', which the saved run would not hold: give"
                    f" its array, numpy.load('{value}'), and run again"
                )
        counts = {name: len(parts) for name, parts in self.arrays.items()}
        head = {"format": _FORMAT, "request": self.request, "arrays": counts}
        from commsir._native import _number

        written = json.dumps(head, indent=1, default=_number)
        with _files.written(path) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("run.json", written)
            file.writestr("kernel.mlir", self.source)
            for name, parts in self.arrays.items():
                for rank, part in enumerate(parts):
                    file.writestr(f"arrays/{name}/{rank}", part)
        return Path(path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Run:
        try:
            with zipfile.ZipFile(path) as file:
                head = json.loads(file.read("run.json"))
                if head["format"] != _FORMAT:
                    raise errors.UsageError(f"'{path}' is of another version: {head['format']}")
                arrays = {
                    name: [file.read(f"arrays/{name}/{rank}") for rank in range(count)]
                    for name, count in head["arrays"].items()
                }
                # Whoever made the file names no file to be written.
                return Run(file.read("kernel.mlir").decode(), {**head["request"], "trace": None}, arrays)
        except errors.CommsError:
            raise
        except Exception as error:  # A damaged ZIP file makes zipfile raise almost anything.
            raise errors.UsageError(f"'{path}' is no saved run: {error}") from error


def _is_file(value: str) -> bool:
    """Whether --input of comms-run takes this for a file, and not for numbers."""
    try:
        float(value)
    except ValueError:
        return value not in ("zeros", "iota") and not value.startswith("random:")
    return False


def _bytes(view: View) -> int:
    total = (int(view.tensor.dtype.bits) + 7) // 8
    for size in view.shape:
        total *= size
    return total


def replay(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Runs what `CommsError.save` wrote, with the same inputs, seed and schedule. Raises what that run raised."""
    import numpy as np

    from commsir._arrays import View, raw_numpy_type
    from commsir._native import binding, simulate_views

    run = Run.load(path)
    views: dict[str, list[View]] = {}
    try:
        for name, parts in run.arrays.items():
            kind, shape = run.request["types"].get(name, "i8"), run.request["shapes"].get(name, [0])
            arrays = [np.frombuffer(bytearray(part), raw_numpy_type(kind)).reshape(shape) for part in parts]
            views[name] = [View(binding().from_dlpack(array), kind, tuple(shape)) for array in arrays]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, SystemError) as error:
        raise errors.UsageError(f"'{path}' is damaged: {error}") from error
    try:
        return simulate_views(run.source, run.request, views)
    except errors.CommsError as error:
        from commsir.language import diagnostics

        is_python = run.request.get("file") == diagnostics.GENERATED
        raise diagnostics.with_source(error, is_python=is_python) from None
