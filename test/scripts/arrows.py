# ===- arrows.py - Which folder may use which ------------------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Holds includes of C++ and imports of Python to the README's table of folders.

Usage: arrows.py [--source SOURCE]

A row of the table is a folder or one file. A file belongs to the longest row that contains it. The last cell lists
what the files of the row may use in addition to each other. Imports inside functions count; those under TYPE_CHECKING
do not.
Modules of the Python package must not import each other in a circle, not for types either.
"""

from __future__ import annotations

import argparse
import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

PACKAGE = pathlib.PurePosixPath("frontend/commsir")
#: The folders whose files the table speaks of; tests may use all.
ROOTS = ("dialect", "lowering", "runtime", "tools", "frontend")
ROW = re.compile(r"^\| `(?P<path>(?:dialect|lowering|runtime|frontend|tools)/[^`]*)` \|.*\|(?P<uses>[^|]*)\|$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"(?P<path>(?:dialect|lowering|runtime|frontend|tools)/[^"]+)"')


@dataclass(frozen=True)
class Use:
    """A file uses another, in this line."""

    file: str
    line: int
    used: str
    #: Not when the module is loaded.
    lazy: bool = False
    #: Only for type checkers: under TYPE_CHECKING.
    types: bool = False


@dataclass
class Row:
    """What the files below a path may use; paths end in a slash where they are folders."""

    path: str
    uses: list[str] = field(default_factory=list)


def read_rows(readme: pathlib.Path) -> list[Row]:
    rows = []
    for line in readme.read_text(encoding="utf-8").splitlines():
        if match := ROW.match(line):
            rows.append(Row(match["path"], re.findall(r"`([^`]+)`", match["uses"])))
    return rows


def row_of(rows: list[Row], path: str) -> Row | None:
    """The longest row that has the file. What the build makes of a header lies with it: Passes.h.inc."""
    path = path.removesuffix(".inc") if path.endswith(".h.inc") else path
    fitting = [row for row in rows if path == row.path or (row.path.endswith("/") and path.startswith(row.path))]
    return max(fitting, key=lambda row: len(row.path), default=None)


def may_use(row: Row, used: Row) -> bool:
    """A row may use itself, the rows that it lists, and of `folder/*` all that lie there."""
    return used is row or any(
        used.path.startswith(one[:-1]) if one.endswith("/*") else used.path == one for one in row.uses
    )


def read_includes(source: pathlib.Path) -> Iterator[Use]:
    for root in ROOTS:
        for file in sorted((source / root).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".c", ".inc", ".cu"):
                continue
            name = file.relative_to(source).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if match := INCLUDE.match(line):
                    yield Use(name, number, match["path"])


def find_modules(source: pathlib.Path) -> dict[str, pathlib.Path]:
    """Files of the package by the names of their modules."""
    modules = {}
    for file in sorted((source / PACKAGE).rglob("*.py")):
        parts = file.relative_to(source / PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


def under_type_checking(tree: ast.Module) -> set[ast.AST]:
    """Nodes that type checkers alone see."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }


def imported(node: ast.AST, package: str) -> list[str]:
    """Dotted names that a statement imports, each with the name that it takes from a module; of none: []."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        above = package.split(".")
        base = ".".join([*above[: len(above) - node.level + 1], *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def read_imports(source: pathlib.Path, modules: dict[str, pathlib.Path]) -> Iterator[tuple[str, str, Use]]:
    """Module, imported module, and where."""
    for module, file in modules.items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for_types = under_type_checking(tree)
        for node in ast.walk(tree):
            for name in imported(node, package):
                while name and name not in modules:
                    name = name.rpartition(".")[0]
                # A package is imported before its modules are, whoever asks for these.
                if name and name != module and not (name == package and modules[name].name == "__init__.py"):
                    used = modules[name].relative_to(source).as_posix()
                    lazy = not any(node is statement for statement in tree.body)
                    line = getattr(node, "lineno", 0)
                    yield module, name, Use(file.relative_to(source).as_posix(), line, used, lazy, node in for_types)


def check_arrows(rows: list[Row], uses: list[Use]) -> list[str]:
    """Uses that the table does not have, in words."""
    faults = []
    for use in uses:
        row, used = row_of(rows, use.file), row_of(rows, use.used)
        missing = use.file if row is None else use.used if used is None else None
        if row is None or used is None:
            faults.append(
                f"{use.file}:{use.line}: {missing} is in no row of the README's table of folders: move it into a "
                "folder that has a row, or add a row"
            )
        elif not may_use(row, used):
            faults.append(
                f"{use.file}:{use.line}: {row.path} must not use {used.path} ({use.used}): move what both need below "
                f"both, or have {used.path} register itself; if the arrow is meant, add `{used.path}` to the row of "
                f"`{row.path}` in the README"
            )
    return faults


def find_circles(edges: dict[tuple[str, str], Use]) -> list[list[str]]:
    """Circles of names, one for each strongly connected part of several."""
    after: dict[str, list[str]] = {}
    for user, used in sorted(edges):
        after.setdefault(user, []).append(used)

    def way(start: str, goal: str) -> list[str] | None:
        """A shortest way."""
        ways, seen = [[start]], {start}
        for one in ways:
            for name in after.get(one[-1], []):
                if name == goal:
                    return one
                if name not in seen:
                    seen.add(name)
                    ways.append([*one, name])
        return None

    circles: list[list[str]] = []
    for name in sorted(after):
        if not any(name in circle for circle in circles) and (found := way(name, name)):
            circles.append(found)
    return circles


def check_unused(rows: list[Row], uses: list[Use]) -> list[str]:
    """Arrows of the table that no file follows, in words."""
    followed = {
        (row.path, used.path) for use in uses if (row := row_of(rows, use.file)) and (used := row_of(rows, use.used))
    }
    return [
        f"README.md: the table of folders lets {row.path} use {one}, which no file does: take the arrow out"
        for row in rows
        for one in row.uses
        if not any(user == row.path and may_use(Row("", [one]), Row(used)) for user, used in followed)
    ]


def check_circles(edges: dict[tuple[str, str], Use]) -> list[str]:
    """Modules that import each other, in words."""
    faults = []
    for circle in find_circles(edges):
        places = [edges[pair] for pair in zip(circle, [*circle[1:], circle[0]], strict=True)]
        last = next((place for place in places if place.lazy), places[-1])
        faults.append(
            f"{last.file}:{last.line}: modules import each other: {' -> '.join([*circle, circle[0]])}: move what they "
            "share into a module of its own, or pass it as an argument"
        )
    return faults


def check_rows(source: pathlib.Path, rows: list[Row]) -> list[str]:
    """Paths of the table that are not there, and folders that two rows let use each other."""
    faults = []
    for row in rows:
        for path in [row.path, *row.uses]:
            if not (source / path.removesuffix("*")).exists():
                faults.append(f"README.md: the table of folders names {path}, which is not there")
    for one in rows:
        for other in rows:
            apart = not one.path.startswith(other.path) and not other.path.startswith(one.path)
            if one.path < other.path and apart and may_use(one, other) and may_use(other, one):
                faults.append(f"README.md: {one.path} and {other.path} may use each other: take one arrow out")
    return faults


def check(source: pathlib.Path) -> tuple[list[str], int]:
    """What is wrong, and how many uses there are."""
    rows = read_rows(source / "README.md")
    imports = list(read_imports(source, find_modules(source)))
    uses = [*read_includes(source), *(use for _, _, use in imports if not use.types)]
    edges = {(module, name): use for module, name, use in reversed(imports)}
    faults = check_rows(source, rows) or check_arrows(rows, uses) + check_unused(rows, uses)
    return faults + check_circles(edges), len(uses)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    faults, count = check(parser.parse_args().source)
    print("\n".join(faults) or f"{count} includes and imports follow the table of folders")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
