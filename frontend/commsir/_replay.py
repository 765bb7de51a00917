"""A simulated run as one file: the IR, the inputs, the options with seed and schedule."""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
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
        """Whoever made the file decides neither what else is read or written nor how much memory that takes.

        Raises UsageError.
        """
        try:
            with zipfile.ZipFile(path) as file:
                _check_files(file, os.path.getsize(path))
                head = json.loads(file.read("run.json"))
                if head["format"] != _FORMAT:
                    raise errors.UsageError(f"'{path}' is of another version: {head['format']!r}")
                request = _checked_request(head["request"])
                counts = {str(name): _whole(count, f"arrays.{name}") for name, count in head["arrays"].items()}
                # The names are those of files that are there: no more of them are made than the file has.
                if 2 + sum(counts.values()) != len(file.namelist()):
                    raise ValueError("it holds other files than it says")
                arrays = {
                    name: [file.read(f"arrays/{name}/{rank}") for rank in range(count)]
                    for name, count in counts.items()
                }
                return Run(file.read("kernel.mlir").decode(), request, arrays)
        except errors.CommsError:
            raise
        except Exception as error:  # A damaged ZIP file makes zipfile raise almost anything.
            raise errors.UsageError(f"'{path}' is no saved run: {error}") from error


#: What `save` writes, and nothing else: names of arguments have no slashes.
_FILES = re.compile(r"run\.json|kernel\.mlir|arrays/(?!\.{1,2}/)[^/\\\0]+/(0|[1-9][0-9]{0,6})")
#: Of run.json and of kernel.mlir, each.
_TEXT_BYTES = 64 << 20
#: What deflate makes of one byte, at most, and what a few may be without it.
_RATIO, _SMALL = 1032, 1024


def _check_files(file: zipfile.ZipFile, size: int) -> None:
    """Refuses a file whose parts lead elsewhere, or are larger than `save` writes them or than memory holds."""
    total = packed = 0
    for part in file.infolist():
        if not _FILES.fullmatch(part.filename) or part.external_attr >> 28 not in (0, 8):
            raise ValueError(f"it holds {part.filename!r}, which is no part of a run")
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or part.flag_bits & 1:
            raise ValueError(f"{part.filename!r} is packed in a way that is not that of runs")
        total, packed = total + part.file_size, packed + part.compress_size
        if part.file_size > _RATIO * part.compress_size + _SMALL:
            raise ValueError(f"{part.filename!r} says that it is larger than it can be")
        if not part.filename.startswith("arrays/") and part.file_size > _TEXT_BYTES:
            raise ValueError(f"{part.filename!r} has {part.file_size} bytes, which is more than {_TEXT_BYTES}")
    if len(set(file.namelist())) != len(file.namelist()) or packed > size:
        raise ValueError("it holds a part twice")
    if total > (most := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2):
        raise ValueError(f"it holds {total} bytes, which is more than half of this machine's memory ({most} bytes)")


def _whole(value: Any, what: str, most: int = 1 << 48) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{what} is {value!r}, and no whole number from 0 to {most}")
    return value


def _checked_request(request: Any) -> dict[str, Any]:
    """The options of a run, without those that reach beyond it: files that are read or written, and limits that are
    higher than the machine's."""
    if not isinstance(request, dict):
        raise ValueError("request is no object")
    for name in ("types", "shapes", "inputs"):
        if not isinstance(request.get(name) or {}, dict):
            raise ValueError(f"{name} is no object")
    for name, value in (request.get("inputs") or {}).items():
        if not isinstance(value, str) or _is_file(value):
            raise ValueError(f"its input '{name}' is {value!r}: only arrays that it holds, and what is drawn, are read")
    return {**request, "trace": None, "memory_limit": None}


def _limited(request: dict[str, Any], limits: Mapping[str, float]) -> dict[str, Any]:
    """With each limit where the request has none, or a higher one. 0 is none."""
    made = dict(request)
    for name, limit in limits.items():
        asked = 0 if request.get(name) is None else request[name]
        if isinstance(asked, bool) or not isinstance(asked, int | float):
            raise errors.UsageError(f"option '{name}': a number is wanted, not {asked!r}")
        if limit and not 0 < asked <= limit:
            made[name] = limit
    return made


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


def replay(path: str | os.PathLike[str], *, time_limit: float = 60, max_steps: int = 10_000_000_000) -> dict[str, Any]:
    """Runs what `CommsError.save` wrote, with the same inputs, seed and schedule. Raises what that run raised.

    Limits: seconds of the run, of all its schedules where it compares several, and steps of the scheduler; 0 is none.
    What the file says can lower them only. It is read as what a stranger may have made: UsageError where it is damaged,
    names other files, or holds more than half of this machine's memory.
    """
    from commsir._native import simulate_views

    run = Run.load(path)
    try:
        views = {name: _views_of(run, name) for name in run.arrays}
    except (ValueError, KeyError, TypeError, MemoryError, RuntimeError) as error:
        raise errors.UsageError(f"'{path}' is damaged: {error}") from error
    limits = {"time_limit": time_limit, "total_time": time_limit, "max_steps": max_steps, "check_events": _CHECK_EVENTS}
    if run.request.get("target") != "cpu":  # The limits of waits end what runs on GPUs.
        limits = {"time_limit": time_limit, "check_events": _CHECK_EVENTS}
    try:
        return simulate_views(run.source, _limited(run.request, limits), views)
    except errors.CommsError as error:
        from commsir.language import diagnostics

        is_python = run.request.get("file") == diagnostics.GENERATED
        raise diagnostics.with_source(error, is_python=is_python) from None


#: Of the checker.
_CHECK_EVENTS = 100_000_000


def _views_of(run: Run, name: str) -> list[View]:
    """Arrays of the bytes that the run has of one argument."""
    import numpy as np

    from commsir._arrays import View, raw_numpy_type
    from commsir._native import binding

    kind, shape = (run.request.get("types") or {}).get(name, "i8"), (run.request.get("shapes") or {}).get(name, [0])
    if not isinstance(kind, str) or not isinstance(shape, list) or len(shape) > 16:
        raise ValueError(f"'{name}' is {kind!r} of {shape!r}")
    sizes = tuple(_whole(size, f"a size of '{name}'") for size in shape)
    dtype = raw_numpy_type(kind)
    made = []
    for part in run.arrays[name]:
        if math.prod(sizes) * dtype.itemsize != len(part):
            raise ValueError(f"'{name}' has {len(part)} bytes, and is {kind} of {sizes}")
        array = np.frombuffer(bytearray(part), dtype).reshape(sizes) if part else np.zeros(sizes, dtype)
        made.append(View(binding().from_dlpack(array), kind, sizes))
    return made
