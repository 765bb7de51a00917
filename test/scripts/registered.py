# ===- registered.py - Every test is run by something ----------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Finds tests that no entry of ctest runs: some lists in CMakeLists.txt name files.

Usage: registered.py --build BUILD [--source SOURCE]

An entry must name each `test_*.py` or its folder, a suite of lit must contain each file with RUN lines, and a target
must compile each C++ file. Another file must name each other program (`*.py`, `*.sh`): a test, an import or a page.
Some test must have each word of a preset's filter in its name.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from dataclasses import dataclass

#: Sources that no target of the build compiles, each with its reason.
NOT_COMPILED = {
    "test/integration/outside": "find-package.sh builds it, as a project of its own",
}


@dataclass
class Entry:
    """The words of one add_test, and the folder that it runs in."""

    words: list[str]
    folder: pathlib.Path


def read_entries(build: pathlib.Path) -> list[Entry]:
    """All entries of ctest that CMake has written."""
    entries: dict[str, Entry] = {}
    for file in build.rglob("CTestTestfile.cmake"):
        text = file.read_text(encoding="utf-8")
        for name, arguments in re.findall(r'^add_test\((?:\[=\[)?(.*?)(?:\]=\])? ("?.*)\)$', text, re.M):
            quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)
            entries[f"{file}:{name}"] = Entry(quoted or arguments.split(), file.parent)
        for name, folder in re.findall(
            r'^set_tests_properties\((?:\[=\[)?(.*?)(?:\]=\])? PROPERTIES .*WORKING_DIRECTORY "([^"]*)"', text, re.M
        ):
            entries[f"{file}:{name}"].folder = pathlib.Path(folder)
    return list(entries.values())


def named(entry: Entry) -> tuple[set[pathlib.Path], set[pathlib.Path]]:
    """Paths that an entry names, and those of `--ignore`."""
    paths: set[pathlib.Path] = set()
    ignored: set[pathlib.Path] = set()
    before = ""
    for word in entry.words:
        (ignored if before == "--ignore" else paths).add(entry.folder / word)
        before = word
    return paths, ignored


def unlisted_python(source: pathlib.Path, entries: list[Entry]) -> tuple[int, list[str]]:
    """How many files of pytest there are, and what is wrong with them."""
    runs = [named(entry) for entry in entries if "pytest" in entry.words]
    tests = sorted((source / "test").rglob("test_*.py"))
    return len(tests), [
        f"{path.relative_to(source)}: no entry of ctest runs it; name it in {path.parent.name}/CMakeLists.txt"
        for path in tests
        if not any({path, *path.parents} & paths and path not in ignored for paths, ignored in runs)
    ]


def unlisted_lit(source: pathlib.Path, build: pathlib.Path) -> tuple[int, list[str]]:
    """The same for files with RUN lines."""
    suites = {source / "test" / file.parent.name for file in (build / "test").glob("*/lit.cfg.py")}
    tests = [
        path
        for suffix in ("mlir", "test")
        for path in sorted((source / "test").rglob(f"*.{suffix}"))
        if re.search(r"^.{0,3} ?RUN:", path.read_text(encoding="utf-8", errors="replace"), re.M)
    ]
    return len(tests), [
        f"{path.relative_to(source)}: its folder is no suite of lit; test/CMakeLists.txt names them"
        for path in tests
        if not suites & set(path.parents) or "Inputs" in path.parts
    ]


def uncompiled(source: pathlib.Path, build: pathlib.Path) -> tuple[int, list[str]]:
    """The same for tests in C++."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    compiled = {pathlib.Path(command["file"]) for command in commands}
    tests = sorted((source / "test").rglob("*.cpp"))
    return len(tests), [
        f"{path.relative_to(source)}: no target compiles it"
        for path in tests
        if path not in compiled and not any(path.is_relative_to(source / folder) for folder in NOT_COMPILED)
    ]


def mentions(source: pathlib.Path) -> dict[str, set[pathlib.Path]]:
    """The files that name a program, or import it, by its name without the suffix."""
    found: dict[str, set[pathlib.Path]] = {}
    roots = [
        source / name for name in ("test", "cmake", "docs", "frontend", "README.md", "CONTRIBUTING.md", "Makefile")
    ]
    for path in [file for root in roots for file in (root.rglob("*") if root.is_dir() else [root])]:
        if (
            path.suffix not in (".py", ".sh", ".md", ".txt", ".test", ".mlir", ".cpp", ".cmake", "")
            or not path.is_file()
        ):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        names = re.findall(r"([\w-]+)\.(?:py|sh)\b", text)
        for line in re.findall(r"^ *(?:from|import) .*", text, re.M):
            names += re.findall(r"\w+", line)
        for name in names:
            found.setdefault(name, set()).add(path)
    return found


def unnamed(source: pathlib.Path) -> tuple[int, list[str]]:
    """The same for programs that are no tests of pytest, those of cmake/ included."""
    known = mentions(source)
    programs = [
        path
        for folder in ("test", "cmake")
        for suffix in ("py", "sh")
        for path in sorted((source / folder).rglob(f"*.{suffix}"))
        if not re.match(r"test_|conftest|__init__|lit\.cfg|conf\.py", path.name) and "corpus" not in path.parts
    ]
    return len(programs), [
        f"{path.relative_to(source)}: no test, make target or page names it"
        for path in programs
        if not known.get(path.stem, set()) - {path}
    ]


def stale_filters(source: pathlib.Path, build: pathlib.Path) -> list[str]:
    """Words in the filters of CMakePresets.json that are in the name of no test."""
    names = "\n".join(
        [
            *re.findall(r"^add_test\((?:\[=\[)?(\S*?)(?:\]=\])? ", ctest_files(build), re.M),
            *re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+)", sources_of_tests(source), re.M),
        ]
    )
    presets = json.loads((source / "CMakePresets.json").read_text(encoding="utf-8"))["testPresets"]
    return [
        f"CMakePresets.json, {preset['name']}: no test has {word} in its name"
        for preset in presets
        for word in re.findall(r"[A-Za-z]\w*", preset["filter"]["include"]["name"])
        if word not in names
    ]


def ctest_files(build: pathlib.Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in build.rglob("CTestTestfile.cmake"))


def sources_of_tests(source: pathlib.Path) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in (source / "test").rglob("*.cpp"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    options = parser.parse_args()
    build, source = options.build.resolve(), options.source.resolve()
    entries = read_entries(build)
    python, faults = unlisted_python(source, entries)
    lit, more = unlisted_lit(source, build)
    faults += more
    cpp, more = uncompiled(source, build)
    faults += more
    programs, more = unnamed(source)
    faults += more
    faults += stale_filters(source, build)
    print(*faults, f"{python} files of pytest, {lit} of lit, {cpp} in C++, {programs} programs", sep="\n")
    print(f"{len(faults)} faults")
    return 1 if faults or not (python and lit and cpp and programs) else 0


if __name__ == "__main__":
    sys.exit(main())
