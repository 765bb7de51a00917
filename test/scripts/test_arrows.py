"""arrows.py finds the faults that it is made for: each test plants one in a copy of the tree."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "README.md", made)
    for folder in ("dialect", "lowering", "runtime", "tools", "frontend"):
        shutil.copytree(ROOT / folder, made / folder, ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    return made


@pytest.fixture
def tree(copy: pathlib.Path) -> Iterator[pathlib.Path]:
    """The copy, with the files that the test has changed restored afterwards."""
    yield copy
    for file in PLANTED:
        if (ROOT / file).exists():
            shutil.copy(ROOT / file, copy / file)
        else:
            (copy / file).unlink()
    PLANTED.clear()


#: Files that the running test has changed.
PLANTED: list[str] = []


def look(tree: pathlib.Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "test/scripts/arrows.py"), "--source", str(tree)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def plant(tree: pathlib.Path, file: str, text: str) -> None:
    (tree / file).parent.mkdir(exist_ok=True)
    (tree / file).write_text(text)
    PLANTED.append(file)


def append(tree: pathlib.Path, file: str, text: str) -> int:
    """Returns the number of the first new line."""
    before = (tree / file).read_text()
    plant(tree, file, before + text)
    return before.count("\n") + 1


def test_the_tree_as_it_is(tree: pathlib.Path) -> None:
    status, said = look(tree)
    assert status == 0, said
    assert "includes and imports follow" in said


@pytest.mark.parametrize(
    ("file", "used", "rows"),
    [
        ("runtime/jit/Cache.cpp", "runtime/choose/Choose.h", "runtime/jit/ must not use runtime/choose/"),
        ("runtime/driver/Run.cpp", "runtime/cuda/Cuda.h", "runtime/driver/ must not use runtime/cuda/"),
        (
            "lowering/analysis/Accesses.cpp",
            "lowering/Passes.h.inc",
            "lowering/analysis/ must not use lowering/Passes.h",
        ),
        ("dialect/Verify.cpp", "lowering/analysis/Accesses.h", "dialect/ must not use lowering/analysis/"),
        ("runtime/torch/ops/PlainOps.cpp", "runtime/group/Group.h", "runtime/torch/ must not use runtime/group/"),
    ],
)
def test_wrong_include(tree: pathlib.Path, file: str, used: str, rows: str) -> None:
    line = append(tree, file, f'#include "{used}"\n')
    status, said = look(tree)
    assert status == 1
    assert f"{file}:{line}: {rows} ({used}): move what both need below both" in said


def test_wrong_lazy_import(tree: pathlib.Path) -> None:
    file = "frontend/commsir/language/python_terms.py"
    line = append(tree, file, "\n\ndef late() -> None:\n    from commsir import torch\n")
    status, said = look(tree)
    assert status == 1
    assert f"{file}:{line + 3}: frontend/commsir/language/ must not use frontend/commsir/torch/" in said


def test_type_checking_may_use_any_folder(tree: pathlib.Path) -> None:
    append(tree, "frontend/commsir/_arguments.py", "\nif TYPE_CHECKING:\n    from commsir.torch import call_counts\n")
    assert look(tree)[0] == 0


def test_circle_by_a_type(tree: pathlib.Path) -> None:
    append(tree, "frontend/commsir/window.py", "\nif TYPE_CHECKING:\n    from commsir.group import Group\n")
    status, said = look(tree)
    assert status == 1
    assert "modules import each other: commsir.group -> commsir.window -> commsir.group" in said


def test_circle_by_a_lazy_import(tree: pathlib.Path) -> None:
    append(tree, "frontend/commsir/_files.py", "\n\ndef late() -> None:\n    from commsir import _run\n")
    status, said = look(tree)
    assert status == 1
    assert "modules import each other: commsir._files -> commsir._run -> commsir._files" in said


def test_a_folder_without_a_row(tree: pathlib.Path) -> None:
    plant(tree, "runtime/new/File.h", '#include "dialect/Comms.h"\n')
    status, said = look(tree)
    assert status == 1
    assert "runtime/new/File.h:1: runtime/new/File.h is in no row of the README's table" in said


def add_arrow(tree: pathlib.Path, row: str, used: str) -> None:
    text = (tree / "README.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith(f"| `{row}` |"))
    plant(tree, "README.md", text.replace(line, f"{line.removesuffix(' |')}, `{used}` |"))


def test_an_arrow_that_nothing_follows(tree: pathlib.Path) -> None:
    add_arrow(tree, "runtime/bench/", "runtime/cuda/")
    status, said = look(tree)
    assert status == 1
    assert "README.md: the table of folders lets runtime/bench/ use runtime/cuda/, which no file does" in said


def test_two_arrows_against_each_other(tree: pathlib.Path) -> None:
    add_arrow(tree, "lowering/channels/", "lowering/collectives/")
    status, said = look(tree)
    assert status == 1
    assert "lowering/channels/ and lowering/collectives/ may use each other" in said
