"""One simulated run as a file: the IR, the inputs, and the options with seed and schedule."""

from __future__ import annotations

import ctypes
import json
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsir import _files, errors
from commsir._binding import number

if TYPE_CHECKING:
    from commsir._arrays import View

__all__ = ["Run", "shown", "whole"]

_FORMAT = "commsir-run-1"


@dataclass(frozen=True)
class Run:
    """Everything that determines a simulation."""

    source: str
    request: dict[str, Any]
    #: Bytes of each rank's part of each argument.
    arrays: dict[str, list[bytes]]

    @staticmethod
    def take(source: str, request: Mapping[str, Any], views: Mapping[str, Sequence[View]]) -> Run:
        """Copies the arguments, because the caller may change its arrays."""
        parts = {
            name: [ctypes.string_at(one.tensor.data_ptr(), _bytes(one)) for one in some] for name, some in views.items()
        }
        # A replay writes no files of its own.
        return Run(source, {**request, "trace": None}, parts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a ZIP file with kernel.mlir, run.json and the bytes of the arrays."""
        _files.check_writable(path)
        for name, value in (self.request.get("inputs") or {}).items():
            if isinstance(value, str) and _is_file(value):
                raise errors.UsageError(
                    f"the input '{name}' of this run is the file '{value}', which the saved run would not hold: give"
                    f" its array, numpy.load('{value}'), and run again"
                )
        counts = {name: len(parts) for name, parts in self.arrays.items()}
        head = {"format": _FORMAT, "request": self.request, "arrays": counts}
        written = json.dumps(head, indent=1, default=number)
        with _files.written(path) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("run.json", written)
            file.writestr("kernel.mlir", self.source)
            for name, parts in self.arrays.items():
                for rank, part in enumerate(parts):
                    file.writestr(f"arrays/{name}/{rank}", part)
        return Path(path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Run:
        """Reads a run. The file cannot make this process read or write other files, or use unlimited memory. Raises
        UsageError.
        """
        try:
            with _files.opened(path) as stream, zipfile.ZipFile(stream) as file:
                _check_files(file, os.fstat(stream.fileno()).st_size)
                head = json.loads(file.read("run.json"))
                if head["format"] != _FORMAT:
                    raise errors.UsageError(f"'{path}' is of another version: {head['format']!r}")
                request = _checked_request(head["request"])
                counts = {str(name): whole(count, f"arrays.{name}") for name, count in head["arrays"].items()}
                # The names are those of files that are there: no more of them are made than the file has.
                if 2 + sum(counts.values()) != len(file.namelist()):
                    raise ValueError("it contains other files than it lists")
                arrays = {
                    name: [file.read(f"arrays/{name}/{rank}") for rank in range(count)]
                    for name, count in counts.items()
                }
                return Run(file.read("kernel.mlir").decode(), request, arrays)
        except errors.UsageError as error:
            raise errors.UsageError(f"'{path}' is not a saved run: {shown(error)}") from error
        except Exception as error:  # A damaged ZIP file makes zipfile raise almost anything.
            raise errors.UsageError(f"'{path}' is not a saved run: {shown(error)}") from error


#: What `save` writes, and nothing else: names of arguments have no slashes.
_FILES = re.compile(r"run\.json|kernel\.mlir|arrays/(?!\.{1,2}/)[^/\\\0]+/(0|[1-9][0-9]{0,6})")
#: Of run.json and of kernel.mlir, each.
_TEXT_BYTES = 64 << 20
#: What deflate makes of one byte, at most, and what a few may be without it.
_RATIO, _SMALL = 1032, 1024


def _check_files(file: zipfile.ZipFile, size: int) -> None:
    """Rejects entries that lead outside the file, or are larger than `save` writes them or than memory allows."""
    total = packed = 0
    for part in file.infolist():
        if not _FILES.fullmatch(part.filename) or part.external_attr >> 28 not in (0, 8):
            raise ValueError(f"it holds {part.filename!r}, which is not a part of a run")
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or part.flag_bits & 1:
            raise ValueError(f"{part.filename!r} is not compressed as in a saved run")
        total, packed = total + part.file_size, packed + part.compress_size
        if part.file_size > _RATIO * part.compress_size + _SMALL:
            raise ValueError(f"{part.filename!r} declares a size that it cannot have")
        if not part.filename.startswith("arrays/") and part.file_size > _TEXT_BYTES:
            raise ValueError(f"{part.filename!r} has {part.file_size} bytes, which is more than {_TEXT_BYTES}")
    if len(set(file.namelist())) != len(file.namelist()) or packed > size:
        raise ValueError("it contains a part twice")
    if total > (most := os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2):
        raise ValueError(f"it holds {total} bytes, which is more than half of this machine's memory ({most} bytes)")


def shown(text: object) -> str:
    """Returns what an error shows of a text that a file may hold: its beginning, with "?" for control characters."""
    whole_text = str(text)
    cut = whole_text[:_SHOWN] + (" [...]" if len(whole_text) > _SHOWN else "")
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in cut)


#: Characters of a text from a file in an error.
_SHOWN = 1500


def whole(value: Any, what: str, most: int = 1 << 48) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{what} is {value!r}, and no whole number from 0 to {most}")
    return value


def _checked_request(request: Any) -> dict[str, Any]:
    """Returns the options of a run without those that name other files, with limits that this machine allows."""
    if not isinstance(request, dict):
        raise ValueError("request is not an object")
    for name in ("types", "shapes", "inputs"):
        if not isinstance(request.get(name) or {}, dict):
            raise ValueError(f"{name} is not an object")
    for name, value in (request.get("inputs") or {}).items():
        if not isinstance(value, str) or _is_file(value):
            raise ValueError(f"its input '{name}' is {value!r}: only arrays that it holds, and what is drawn, are read")
    return {**request, "trace": None, "memory_limit": None}


def _is_file(value: str) -> bool:
    """Whether comms-run's --input would read this value as a file name, rather than as numbers."""
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
