"""The editable package that `make setup` installs into .venv, and the way it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import commsir
import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import importlib.metadata as metadata, os, sys
import commsir
print(os.path.dirname(commsir.__file__))
print(metadata.version("commsir"))
for group in ("torch.backends", "torchcomms.backends"):
    print(*((point.name, point.value) for point in metadata.entry_points(group=group)))
"""


def run(*command: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(python: Path, *arguments: str) -> list[str]:
    """A command of this Python's pip for another Python, which has none."""
    return [sys.executable, "-m", "pip", "--python", str(python), "-q", "--disable-pip-version-check", *arguments]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with nothing in it but this checkout, as cmake/setup.sh installs it: without a network."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    options = ("--no-index", "--no-deps", "--no-build-isolation", "-e", str(ROOT / "frontend"))
    assert " ".join(options[:-1]) in (ROOT / "cmake" / "setup.sh").read_text()
    run(*pip(python, "install", *options))
    return python


def test_it_is_this_checkout_with_all_entry_points(fresh: Path) -> None:
    where, version, torch, torchcomms = run(fresh, "-c", PROGRAM).splitlines()
    assert where == str(ROOT / "frontend" / "commsir")
    assert version in commsir.version()
    assert torch == "('commsir', 'commsir.torch:autoload')"
    assert torchcomms == "('commsir', 'commsir.torch.torchcomms')"


def test_a_path_in_any_script_works_in_any_locale(tmp_path: Path) -> None:
    """Python before 3.12 does not start if it cannot decode a .pth file."""
    package, folder = tmp_path / "sources é 中", tmp_path / "venv"
    package.mkdir()
    (package / "found.py").write_text("print('found')")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    program = "import pathlib, sys, make_wheel; sys.stdout.write(make_wheel.path_line(pathlib.Path(sys.argv[1])))"
    line = run(sys.executable, "-c", f"import sys; sys.path[:0] = [{str(ROOT / 'frontend')!r}]; {program}", package)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "sources.pth").write_text(line)
    for locale in ("C", "C.UTF-8"):
        assert run("env", f"LC_ALL={locale}", folder / "bin" / "python", "-c", "import found") == "found\n"


def test_it_has_the_programs_of_the_wheel(fresh: Path) -> None:
    assert {path.name for path in fresh.parent.glob("comms-*")} == {
        "comms-bench",
        "comms-opt",
        "comms-run",
        "comms-translate",
    }


def test_torch_here_finds_the_backend_by_its_name() -> None:
    """In this Python, as a program of a reader does: nothing but torch is imported."""
    pytest.importorskip("torch")
    program = "import torch.distributed as dist; print(dist.Backend('commsir'), 'commsir' in dist.Backend.backend_list)"
    assert run(sys.executable, "-c", program) == "commsir True\n"


def test_a_wheel_without_libraries_is_refused(tmp_path: Path) -> None:
    command = pip(Path(sys.executable), "wheel", "--no-index", "--no-deps", "--no-build-isolation")
    done = subprocess.run([*command, "-w", str(tmp_path), str(ROOT / "frontend")], capture_output=True, text=True)
    assert done.returncode and "run `make wheel`" in done.stdout + done.stderr and not list(tmp_path.iterdir())


def test_the_demo_installs_versions_of_the_build() -> None:
    lines = (ROOT / "cmake" / "requirements.txt").read_text().splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line}
    names = (ROOT / "cmake" / "requirements-demo.txt").read_text().splitlines()
    assert {name for name in names if not name.startswith("#")} < pinned


@pytest.mark.parametrize("part", [(), ("demo",)])
def test_setup_keeps_existing_files(part: tuple[str, ...]) -> None:
    """The second time, all or the demo's part: nothing is missing, nothing is installed."""
    if Path(sys.prefix) != ROOT / ".venv" or not (ROOT / ".venv" / "commsir.sha256").is_file():
        pytest.skip("the tests run in another environment than the one of make setup")
    setup = ROOT / "cmake" / "setup.sh"
    environment = os.environ | {"COMMSIR_NO_INSTALL": "1"}
    done = subprocess.run([setup, *part], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "setup: everything is there\n", "")
