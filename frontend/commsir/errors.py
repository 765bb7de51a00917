"""The exceptions of CommsIR. The text says what happened and where; fields have the details."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

__all__ = [
    "AbortedError",
    "BoundsError",
    "CheckError",
    "CommsError",
    "CompileError",
    "DeadlockError",
    "Diagnostic",
    "DisagreementError",
    "LimitError",
    "MismatchError",
    "UsageError",
    "Waiting",
]


#: What is written for characters of reports and errors that a terminal does not have.
_IN_ASCII = str.maketrans({"…": "...", "µ": "u", "×": "x", "±": "+/-", "→": "->", "–": "-", "’": "'"})


def printable(text: str) -> str:
    """Returns the text, in ASCII if standard output cannot encode it: what prints a result never fails on its units."""
    encoding = getattr(sys.stdout, "encoding", None)
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_IN_ASCII).encode("ascii", "backslashreplace").decode()
    return text


@dataclass(frozen=True)
class Diagnostic:
    """A message of the compiler or the checker about a source position."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = ()

    @staticmethod
    def read(fields: dict[str, Any]) -> Diagnostic:
        return Diagnostic(
            fields.get("severity", "error"),
            fields.get("message", ""),
            fields.get("file", ""),
            fields.get("line", 0),
            fields.get("column", 0),
            tuple(Diagnostic.read(note) for note in fields.get("notes", ())),
        )

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.file else ""
        lines = [f"{place}{self.severity}: {self.message}", *(f"  {note}" for note in self.notes)]
        return printable("\n".join(lines))


@dataclass(frozen=True)
class Waiting:
    """A block that waits when the run cannot continue."""

    rank: int
    block: int
    op: str
    location: str
    what: str
    #: What the program has in place of `op`, where it is no MLIR.
    written: str = ""

    def __str__(self) -> str:
        place = f"{self.written or self.op} at {self.location}"
        return printable(f"rank {self.rank}, block {self.block}: {place}: {self.what}")


class SavableRun(Protocol):
    """A simulated run that an error keeps: `commsir._run.Run`, which imports this module."""

    @property
    def request(self) -> dict[str, Any]:
        """The options of the run, with seed and schedule."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the run to the file `path`, and returns the path."""


@dataclass(eq=False)
class CommsError(Exception):
    """Base of all errors that CommsIR raises."""

    message: str
    diagnostics: tuple[Diagnostic, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    #: Further fields that the library gave.
    details: dict[str, Any] = field(default_factory=dict)
    #: The run that failed, for `save`.
    run: SavableRun | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__init__(self.message)

    @property
    def file(self) -> str | None:
        """File of the first diagnostic that has one."""
        return next((said.file for said in self.diagnostics if said.file), None)

    @property
    def line(self) -> int | None:
        """Line of the first diagnostic that has one."""
        return next((said.line for said in self.diagnostics if said.file), None)

    def __str__(self) -> str:
        return printable("\n".join([self.message, *map(str, self.diagnostics)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.diagnostics, self.waiting, self.details))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the run that failed (IR, inputs, seed, schedule) to the file `path`, which `commsir.replay` runs
        again.

        Returns the path. Raises ValueError if the error does not come from a simulation.
        """
        if self.run is None:
            raise ValueError("this error did not come from a simulation; only a simulated run can be saved")
        return self.run.save(path)


class UsageError(CommsError, ValueError):
    """The request is invalid, or a file, device or library is missing."""


class CompileError(CommsError):
    """The source is invalid, or cannot be compiled."""


class CheckError(CompileError):
    """The checker refuted the kernel: it could hang, race, or leave memory in use."""


class DeadlockError(CommsError):
    """No block can continue, or a peer did not respond in time. `waiting` lists the blocks and what each waits for."""


class MismatchError(CommsError, AssertionError):
    """A result differs from what was expected, or depends on the schedule."""


class LimitError(CommsError):
    """A limit on steps or time was reached."""


class BoundsError(CommsError, IndexError):
    """An access out of bounds."""


class DisagreementError(CommsError):
    """Ranks of a group made different calls, or calls of different sizes or types."""


class AbortedError(CommsError):
    """The group was aborted or destroyed."""


#: By the statuses of commsir.h.
_BY_STATUS: dict[int, type[CommsError]] = {
    2: UsageError,
    3: CompileError,
    4: CheckError,
    5: DeadlockError,
    6: MismatchError,
    7: LimitError,
    8: BoundsError,
    9: DisagreementError,
    10: AbortedError,
}


#: What a run says that has left bounds.
_CHECKED = re.compile(r"(.+?):(\d+):(\d+): (rank \d+, .+)", re.DOTALL)


def from_json(status: int, text: str) -> CommsError:
    """Builds the exception for a status of the C API and the JSON text of its error."""
    fields: dict[str, Any] = json.loads(text)
    found = _CHECKED.fullmatch(fields.get("message", "")) if not fields.get("diagnostics") else None
    if found:
        file, line, column, what = found.groups()
        said = {"message": what, "file": file, "line": int(line), "column": int(column)}
        fields |= {"message": "a check of the kernel failed in the run", "diagnostics": [said]}
    if "in the first schedule" in fields.get("message", "") and "seed" in fields:
        fields["message"] += f"; simulate(…, seed={fields['seed']}) repeats it"
    return _BY_STATUS.get(status, CommsError)(
        fields.pop("message", "unknown error"),
        tuple(Diagnostic.read(said) for said in fields.pop("diagnostics", ())),
        tuple(Waiting(**wait) for wait in fields.pop("waiting", ())),
        fields,
    )
