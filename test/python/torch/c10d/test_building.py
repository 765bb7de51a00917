"""The C++ backend built on demand: once for a torch, a Python and sources; with a stand-in for torch's builder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension
from commsir.torch import backend, extension


class Builder:
    """torch.utils.cpp_extension.load, as far as is asked of it."""

    def __init__(self) -> None:
        self.built = 0
        self.fails = False

    def __call__(self, *, name: str, sources: list[str], build_directory: str, **options: Any) -> str:
        folder = Path(build_directory)
        # torch's own waits for ever where somebody has left this behind.
        assert not (folder / "lock").exists()
        (folder / f"{name}.so").write_text("half of it")
        if self.fails:
            (folder / "lock").touch()
            raise RuntimeError("no such header")
        self.built += 1
        assert [Path(source).name for source in sources] == ["Module.cpp", "Other.cpp"]
        # Not one of the compiler's own, which may be an archive.
        assert [Path(flag).name[:14] for flag in options["extra_ldflags"]] == ["libstdc++.so.6"]
        return f"built {self.built}"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Builder:
    made = Builder()
    sources = tmp_path / "runtime" / "torch" / "c10d"
    sources.mkdir(parents=True)
    for name in ("Module.cpp", "Other.cpp", "Other.h"):
        (sources / name).write_text(name)
    monkeypatch.setattr(torch.utils.cpp_extension, "load", made)
    monkeypatch.setattr(extension, "root_of_sources", lambda: tmp_path)
    monkeypatch.setattr(extension, "load", lambda name, path: f"loaded {path.name}")
    monkeypatch.setenv("COMMSIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", "true")
    return made


def test_it_is_built_once(builder: Builder) -> None:
    assert backend._built() == "built 1"
    assert [backend._built() for _ in range(2)] == ["loaded libcommsir_c10d.so"] * 2


@pytest.mark.parametrize("part", ["torch/c10d/Other.h", "torch/c10d/Other.cpp", "capi/commsir.h"])
def test_from_other_sources_it_is_built_again(builder: Builder, tmp_path: Path, part: str) -> None:
    backend._built()
    (tmp_path / "runtime" / "capi").mkdir()
    (tmp_path / "runtime" / part).write_text("changed")
    assert backend._built() == "built 2"
    assert backend._built() == "loaded libcommsir_c10d.so"


def test_what_was_not_finished_is_not_loaded(builder: Builder) -> None:
    builder.fails = True
    with pytest.raises(RuntimeError, match="no such header"):
        backend._built()
    builder.fails = False
    assert backend._built() == "built 1"


def test_what_was_removed_is_built_again(builder: Builder) -> None:
    backend._built()
    (backend._EXTENSION.folder() / "libcommsir_c10d.so").unlink()
    assert backend._built() == "built 2"


def test_where_there_are_no_locks_it_is_built_all_the_same(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: Any, operation: int) -> None:
        raise OSError("Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    assert backend._built() == "built 1"
    assert backend._built() == "loaded libcommsir_c10d.so"


def test_without_a_compiler_what_was_built_is_loaded(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no C\\+\\+ compiler no-such-compiler: install one"):
        backend._built()
    monkeypatch.setenv("CXX", "true")
    assert backend._built() == "built 1"
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert backend._built() == "loaded libcommsir_c10d.so"
