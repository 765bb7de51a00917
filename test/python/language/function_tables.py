"""Writes the tables of docs/PythonKernels.md from the language itself."""

from __future__ import annotations

import builtins
import inspect
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from commsir.language import collectives, communication, functions, lowering
from commsir.language.compiler import registry
from commsir.language.compiler.values import Memory, Scalar, Team, Tile, Window

PAGE = Path(__file__).parents[3] / "docs" / "PythonKernels.md"
BEGIN, END = "<!-- functions: begin -->\n", "<!-- functions: end -->\n"
assert lowering


def _plain(function: Any) -> str:
    return str(functions.plain(inspect.signature(function))).replace("'", '"')


def _first_sentence(function: Any) -> str:
    """What the documentation begins with, on one line."""
    text = " ".join(inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z`])", text)[0].rstrip(":").replace("|", "\\|")


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ("---", "---"), *rows)]) + "\n"


def _functions(module: Any, wanted: Any = lambda function: True) -> list[tuple[str, str]]:
    made = [getattr(module, name) for name in module.__all__]
    return [(f"`{f.__name__}{_plain(f)}`", _first_sentence(f)) for f in made if wanted(f)]


def _is_unary(function: Any) -> bool:
    return list(inspect.signature(function).parameters) == ["x"]


def _methods() -> list[tuple[str, str]]:
    rows = []
    for what, kind in {"tile": Tile, "scalar": Scalar, "array": Memory, "window": Window, "team": Team}.items():
        calls = {
            f"{name}{str(s).replace(chr(39), chr(34))}"
            for (owner, name), (s, _) in registry.METHODS.items()
            if owner is kind
        }
        names = {name for owner, name in registry.ATTRIBUTES if owner is kind}
        rows.append(
            (
                f"a {what}".replace("a array", "an array"),
                ", ".join(f"`.{one}`" for one in [*sorted(names), *sorted(calls)]),
            )
        )
    return rows


def _others() -> list[tuple[str, str]]:
    known = set(registry.FUNCTIONS)
    rows = []
    for label, library in {"Python": builtins, "`math`": math, "`np`": np}.items():
        # NumPy has some by two names, newer ones by more.
        names = sorted({f.__name__ for f in vars(library).values() if _is_known(f, known)} & set(vars(library)))
        rows.append((label, ", ".join(f"`{name}`" for name in names)))
    return rows


def _is_known(value: Any, known: set[Any]) -> bool:
    try:
        return callable(value) and value in known
    except TypeError:
        return False


def text() -> str:
    """All tables."""
    parts = [
        "Teams, memory and tiles:\n",
        _table(("function", "does"), _functions(functions, lambda f: not _is_unary(f))),
        "Element by element, also on scalars:\n",
        _table(("function", "is"), _functions(functions, _is_unary)),
        "Between ranks:\n",
        _table(("function", "does"), _functions(communication)),
        "Collectives, with shapes as [above](#collectives):\n",
        _table(("function", "does"), _functions(collectives)),
        "Methods and attributes:\n",
        _table(("object", "members"), _methods()),
        "Functions of other libraries that kernels may call; torch's functions with these names work as well:\n",
        _table(("library", "functions"), _others()),
    ]
    return "\n".join(parts)


def main() -> None:
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + BEGIN + text() + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
