"""Errors that show the line of Python that they are about."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CommsError, CompileError, Diagnostic
from . import source
from .python_terms import construct, in_python
from .source import Place

#: The text that a kernel is made into, as a file. Every op in it has its place in Python; what the library says of
#: anything else, such as a parameter's type, has a line of this text.
GENERATED = "<kernel>"

# What the library says of a file that the dialect's verifier refuses; here it is the kernel's text.
_INVALID = re.compile(r"(the source of )?'.*' is not valid", re.DOTALL)
# The message that MLIR adds to those of a pass that fails.
_PASS_FAILED = re.compile(r"the kernel could not be lowered: pass \S+ failed")
# What the checker says where a value that it has to know depends on data.
# What an assert becomes that is no check of bounds.
_ASSERTED = re.compile(r"(.+) covers \[1, 1 \+ 0\), but the limit is 0", re.DOTALL)


def excerpt(file: str, line: int, column: int, *, reads: bool = True) -> str:
    """Returns the source line with a caret below the column (from 1), or an empty string if it is not known."""
    text = source.line_of(file, line, reads=reads) if file and line > 0 else ""
    if not text.strip():
        return ""
    stripped = text.lstrip()
    at = max(0, min(column - 1, len(text)) - (len(text) - len(stripped)))
    return f"\n    {stripped}\n    {' ' * at}^"


def show(said: Diagnostic, *, reads: bool = True) -> Diagnostic:
    """Formats the diagnostic with its source line."""
    return dataclasses.replace(said, message=said.message + excerpt(said.file, said.line, said.column, reads=reads))


def compile_error(message: str, place: Place, hint: str = "", notes: Iterable[tuple[str, Place]] = ()) -> CompileError:
    file, line, column = place
    text = message + excerpt(file, line, column) + (f"\n  {hint}" if hint else "")
    said = Diagnostic("error", text, file, line, column, tuple(Diagnostic("note", m, *p) for m, p in notes))
    return CompileError("the kernel cannot be compiled", (said,))


def _translated(error: CommsError) -> None:
    """Returns the error in terms of Python in place of the dialect's."""

    def translate(said: Diagnostic) -> Diagnostic:
        text = _ASSERTED.sub(r"\1 does not hold", in_python(said.message))
        return dataclasses.replace(said, message=text, notes=tuple(map(translate, said.notes)))

    error.message = in_python(_PASS_FAILED.sub("the kernel cannot be compiled", error.message))
    error.diagnostics = tuple(map(translate, error.diagnostics))
    error.waiting = tuple(
        dataclasses.replace(w, written=construct(w.op), what=in_python(w.what)) for w in error.waiting
    )


def _placed(said: Diagnostic, start: Place | None) -> Diagnostic:
    """Moves messages about the generated text to the kernel's first line, because the text's lines are not Python's."""
    notes = tuple(_placed(note, start) for note in said.notes)
    file, line, column = start or ("", 0, 0)
    if said.file == GENERATED:
        return dataclasses.replace(said, file=file, line=line, column=column, notes=notes)
    return dataclasses.replace(said, notes=notes)


def with_source(
    error: CommsError, start: Place | None = None, *, is_python: bool = True, reads: bool = True
) -> CommsError:
    """The same error in Python terms; its diagnostics show the lines that they refer to.

    `start` is where the kernel begins, if that is known; a kernel that is no Python keeps the words of the dialect.
    Without `reads`, lines are those of kernels of this process alone: a stranger's kernel may name any file.
    """
    error.message = _INVALID.sub("the kernel is not valid", error.message)
    if is_python:
        _translated(error)
    said = [_placed(one, start) for one in error.diagnostics]
    for place, waiting in {w.location: w for w in reversed(error.waiting)}.items():
        file, _, rest = place.rpartition(":")[0].rpartition(":")
        column = place.rpartition(":")[2]
        if rest.isdigit() and column.isdigit():
            what = f"rank {waiting.rank} block {waiting.block} waits here in {waiting.written or waiting.op}"
            said.append(Diagnostic("note", what, file, int(rest), int(column)))
    error.diagnostics = tuple(show(one, reads=reads) for one in said)
    return error


@contextmanager
def in_terms_of(kernel: Any) -> Iterator[None]:
    """Converts an error of the library to the terms of the kernel, if that is Python rather than MLIR text."""
    try:
        yield
    except CommsError as error:
        start = getattr(kernel, "_start", None)
        raise (error if start is None else with_source(error, start)) from None


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    close = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean '{close[0]}'?" if close else ""
