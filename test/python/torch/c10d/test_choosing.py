"""The choice of a prebuilt C++ backend by torch's release and Python, and the warning if none fits."""

from __future__ import annotations

import importlib.machinery
import re
import subprocess
import sys
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from commsir.torch import backend, extension

NIGHTLY = "2.13.0.dev20260228+cu130"
NAMES = [f"torch-2.{minor}.cpython-3{python}" for minor in (9, 11, 13) for python in (10, 11, 13)]
NAMES += [f"torch-{NIGHTLY}.cpython-311"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Holds prebuilt backends; nothing can be built, and nothing is loaded yet."""
    for name in NAMES:
        (tmp_path / f"libcommsir_c10d.{name}-x86_64-linux-gnu.so").touch()
    (tmp_path / "libcommsir_c10d.so").touch()
    monkeypatch.setattr(backend, "_folders", lambda: [tmp_path / "absent", tmp_path])
    monkeypatch.setattr(extension, "load", lambda name, path: path.name)
    monkeypatch.setattr(extension, "root_of_sources", lambda: None)
    monkeypatch.setattr(backend, "_loaded", None)
    monkeypatch.setattr(backend, "_searched", False)
    monkeypatch.setattr(backend, "_missing", "")
    monkeypatch.delenv("COMMSIR_TORCH_BACKEND", raising=False)
    return tmp_path


def running(monkeypatch: pytest.MonkeyPatch, release: str, python: int = 11) -> None:
    """As if this were another torch and Python."""
    monkeypatch.setattr(torch, "__version__", release)
    suffixes = [f".cpython-3{python}-x86_64-linux-gnu.so", ".abi3.so", ".so"]
    monkeypatch.setattr(importlib.machinery, "EXTENSION_SUFFIXES", suffixes)


@pytest.mark.parametrize("wanted", ["", "cpp"])
@pytest.mark.parametrize(
    ("release", "python", "name"),
    [
        ("2.11.0", 10, "torch-2.11.cpython-310"),
        ("2.11.0+cu130", 13, "torch-2.11.cpython-313"),
        ("2.11.7+cpu", 11, "torch-2.11.cpython-311"),
        ("2.13.0.post1", 11, "torch-2.13.cpython-311"),
        ("2.9.1", 13, "torch-2.9.cpython-313"),
        (NIGHTLY, 11, f"torch-{NIGHTLY}.cpython-311"),
        ("2.11", 11, "torch-2.11.cpython-311"),  # PEP 440 takes that for 2.11.0.
    ],
)
def test_the_one_of_the_minor_and_the_python_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, release: str, python: int, name: str, wanted: str
) -> None:
    running(monkeypatch, release, python)
    monkeypatch.setenv("COMMSIR_TORCH_BACKEND", wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend.load_module() == f"libcommsir_c10d.{name}-x86_64-linux-gnu.so"
        assert backend.module_at_hand() == backend.loaded_module() == backend.load_module()


@pytest.mark.parametrize(
    ("release", "python"),
    [
        ("2.12.1", 11),
        ("2.1.0", 11),
        ("2.13.0", 12),
        # Between releases, as NVIDIA's containers have them, and nightly ones.
        ("2.11.0a0+eb5a1d5.nv26.03", 11),
        ("2.13.0.dev20260301+cu130", 11),
        ("2.13.0.dev20260228+cpu", 11),
        (NIGHTLY, 13),
        ("2.11.0rc1", 11),
    ],
)
def test_another_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch, release: str, python: int) -> None:
    running(monkeypatch, release, python)
    assert backend._load_prebuilt() is None
    assert backend.module_at_hand() is None


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("2.12.0", "2.12"),
        ("2.12.1+cu130", "2.12"),
        ("2.9.1.post2", "2.9"),
        ("2.12.0.dev20260301+cu130", "2.12.0.dev20260301+cu130"),
        ("2.11.0a0+eb5a1d5.nv26.03", "2.11.0a0+eb5a1d5.nv26.03"),
    ],
)
def test_built_files_are_named_by_the_same_rule(version: str, name: str) -> None:
    """runtime/torch/c10d/CMakeLists.txt runs that file without torch."""
    path = Path(backend.__file__).with_name("_release.py")
    code = f"import runpy, sys; print(runpy.run_path({str(path)!r})['name_of']({version!r}), 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [name, "False"]


def test_where_none_fits_it_is_built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, "2.12.0")
    monkeypatch.setattr(backend, "_build_module", lambda: "built")
    assert backend.load_module() == "built"


def test_the_prebuilt_one_is_left_where_building_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, "2.11.0")
    monkeypatch.setenv("COMMSIR_TORCH_BACKEND", "build")
    monkeypatch.setattr(backend, "_build_module", lambda: "built")
    assert backend.module_at_hand() is None
    assert backend.load_module() == "built"


SAID = (
    r"no C\+\+ backend for torch 2\.12\.1 and Python 3\.\d+ is there; prebuilt are those for releases of torch "
    r"2\.9 \(Python 3\.10, 3\.11, 3\.13\), 2\.11 \(.*\), 2\.13 \(.*\); it could not be built: its sources are not here"
)


def test_what_is_there_is_said_once_and_others_have_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, "2.12.1")
    with pytest.warns(UserWarning, match=SAID + r"\. All calls go to Gloo or NCCL"):
        assert backend.load_module() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backend.load_module() is None


@pytest.mark.parametrize("wanted", ["cpp", "build"])
def test_what_is_there_is_said_where_another_was_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    running(monkeypatch, "2.12.1")
    monkeypatch.setenv("COMMSIR_TORCH_BACKEND", wanted)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=SAID + "$"):
            backend.load_module()


def test_another_kind_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMSIR_TORCH_BACKEND", "python")
    with pytest.raises(ValueError, match='COMMSIR_TORCH_BACKEND is "python"; say cpp or build, or unset it'):
        backend.load_module()


def test_a_compiler_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, "2.12.1")
    monkeypatch.setattr(extension, "root_of_sources", lambda: folder)
    monkeypatch.setenv("COMMSIR_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.warns(UserWarning, match="no C[+][+] compiler no-such-compiler: install one, or let CXX name it"):
        assert backend.load_module() is None


def test_without_any_there_is_no_list(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running(monkeypatch, "2.11.0")
    for path in folder.glob("*.so"):
        path.unlink()
    assert backend.prebuilt() == {}
    with pytest.warns(UserWarning, match=r"Python 3\.\d+ is there; it could not be built"):
        assert backend.load_module() is None


def test_one_that_does_not_fit_after_all_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a torch that somebody else has built."""

    def refuse(name: str, path: Path) -> Any:
        raise ImportError("undefined symbol: c10")

    running(monkeypatch, "2.11.0")
    monkeypatch.setattr(extension, "load", refuse)
    monkeypatch.setattr(backend, "_build_module", lambda: "built")
    with pytest.warns(
        UserWarning, match=r"torch-2\.11\.cpython-311.*does not fit torch 2\.11\.0: undefined symbol: c10"
    ):
        assert backend.load_module() == "built"


def test_a_library_that_is_gone_is_said_once(folder: Path) -> None:
    """What torch makes a group from goes by Gloo then, which is slower."""

    def made() -> backend.Settings:
        return backend.Settings(None, 0, 1, timedelta(seconds=1), "world")

    backend._warn_without_library.cache_clear()
    looked = f"libcommsir.so is not in {folder / 'absent'}, {folder}: all calls go to Gloo or NCCL"
    with pytest.warns(UserWarning, match=re.escape(looked) + ".*COMMSIR_LIBRARY names a folder elsewhere"):
        made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made()
        backend._warn_without_library.cache_clear()
        (folder / "libcommsir.so").touch()
        made()
