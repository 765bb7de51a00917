"""Kernel sources that a group can compile: MLIR text, a file, or a Python kernel."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from commsir import _files, errors

if TYPE_CHECKING:
    from commsir._kernel import Kernel

__all__ = ["kernel_text"]


def kernel_text(source: str | os.PathLike[str] | Kernel, ranks: int, options: dict[str, Any]) -> str:
    """Returns the MLIR text for a group of `ranks`. Removes the dimensions of a Python kernel from `options`."""
    if isinstance(source, str):
        if source.endswith(".mlir") and "\n" not in source:
            raise errors.UsageError(f"'{source}' is not MLIR text: for a file pass pathlib.Path('{source}')")
        return source
    if isinstance(source, os.PathLike):
        return _files.read_text(source)
    if not hasattr(source, "specialize"):
        raise errors.UsageError(
            f"a group compiles MLIR text, a file of it, or a @commsir.kernel, not a {type(source).__name__}"
        )
    dims = {name: options.pop(name) for name in [*source.symbols, *source.dims] if name in options}
    wanted = source.attributes.get("ranks", ranks)
    if wanted != ranks:
        raise errors.UsageError(f"{source.__name__} is fixed to {wanted} ranks, and the group has {ranks}")
    made = source.specialize(ranks=ranks, **dims)._inferred()
    if made.symbols:
        missing = ", ".join(f"{name}=…" for name in made.symbols)
        raise errors.UsageError(f"dimensions of {source.__name__} are open; say group.kernel(…, {missing})")
    made.ir  # noqa: B018 (verified, with the paths of its files)
    # What a wait says later names the line in Python. Ranks compare the text, and may have the files in other folders.
    return re.sub(r'(?<=loc\(")[^"]*[/\\]', "", made.text())
