"""The C++ backend built on demand: once per torch, Python and sources; with a stand-in for torch's builder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension
from commsir import _files
from commsir.torch import backend, extension


class Builder:
    """torch.utils.cpp_extension.load, as far as is asked of it."""

    def __init__(self) -> None:
        self.built = 0
        self.fails = False

    def __call__(self, *, name: str, sources: list[str], build_directory: str, **options: Any) -> str:
        folder = Path(build_directory)
        # torch's own waits forever where somebody has left this behind.
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
    assert backend._build_module() == "built 1"
    assert [backend._build_module() for _ in range(2)] == ["loaded libcommsir_c10d.so"] * 2


@pytest.mark.parametrize("part", ["torch/c10d/Other.h", "torch/c10d/Other.cpp", "capi/commsir.h"])
def test_from_other_sources_it_is_built_again(builder: Builder, tmp_path: Path, part: str) -> None:
    backend._build_module()
    (tmp_path / "runtime" / "capi").mkdir()
    (tmp_path / "runtime" / part).write_text("changed")
    assert backend._build_module() == "built 2"
    assert backend._build_module() == "loaded libcommsir_c10d.so"


def test_unfinished_backends_are_not_loaded(builder: Builder) -> None:
    builder.fails = True
    with pytest.raises(RuntimeError, match="no such header"):
        backend._build_module()
    builder.fails = False
    assert backend._build_module() == "built 1"


def test_removed_backends_are_built_again(builder: Builder) -> None:
    backend._build_module()
    root = extension.root_of_sources()
    assert root
    (backend._EXTENSION.folder(root) / "libcommsir_c10d.so").unlink()
    assert backend._build_module() == "built 2"


def test_where_there_are_no_locks_it_is_built_all_the_same(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: Any, operation: int) -> None:
        raise OSError("Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    assert backend._build_module() == "built 1"
    assert backend._build_module() == "loaded libcommsir_c10d.so"


def test_without_a_compiler_a_built_backend_is_loaded(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no C\\+\\+ compiler no-such-compiler: install one"):
        backend._build_module()
    monkeypatch.setenv("CXX", "true")
    assert backend._build_module() == "built 1"
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert backend._build_module() == "loaded libcommsir_c10d.so"


def over_headers(tmp_path: Path, place: Path, trial: str = "") -> extension.Extension:
    """An extension that is compiled over headers in `place`."""
    place.mkdir(exist_ok=True)
    (place / "their.hpp").write_text("struct Their;")
    links = [("the/theirs", place, "**/*.hpp")]
    return extension.Extension("libcommsir_c10d", ["torch/c10d/*.cpp"], [], links, trial=trial)


def test_headers_of_others_are_found_by_their_names(builder: Builder, tmp_path: Path) -> None:
    for place in ("one", "two"):
        made = over_headers(tmp_path, tmp_path / place)
        made.build()
        assert (made.folder(tmp_path) / "include" / "the" / "theirs" / "their.hpp").is_file()
    # These are alike.
    assert builder.built == 1
    (tmp_path / "one" / "below").mkdir()
    (tmp_path / "one" / "below" / "more.hpp").touch()
    over_headers(tmp_path, tmp_path / "one").build()
    assert builder.built == 2


@pytest.mark.parametrize("ends", ["raise SystemExit('not like that')", "import os; os.abort()"])
def test_what_does_not_work_is_tried_once(builder: Builder, tmp_path: Path, ends: str) -> None:
    made = over_headers(tmp_path, tmp_path / "one", trial=f"import sys; assert sys.argv[1].endswith('.so'); {ends}")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"libcommsir_c10d.so failed when it was tried \(it ended with -?\d"):
            made.build()
    assert builder.built == 1


def test_what_works_is_tried_once(builder: Builder, tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    made = over_headers(tmp_path, tmp_path / "one", trial=f"open({str(tried)!r}, 'x')")
    for _ in range(2):
        made.build()
    assert tried.is_file()


def test_a_folder_put_in_its_place_is_not_loaded_from(
    builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may rename the cache folder swaps it for a link after it was opened."""
    backend._build_module()
    cache, mine, theirs = tmp_path / "cache", tmp_path / "mine", tmp_path / "theirs"
    shutil.copytree(cache, theirs)
    for copy in theirs.rglob("*.so"):
        copy.write_text("their code")
    opened = _files.OwnFolder.open

    def swap(folder: _files.OwnFolder, name: str, flags: int) -> int:
        descriptor = opened(folder, name, flags)
        if name.endswith(".so"):
            cache.rename(mine)
            cache.symlink_to(theirs)
        return descriptor

    monkeypatch.setattr(_files.OwnFolder, "open", swap)
    monkeypatch.setattr(extension, "load", lambda name, path: path.read_text())
    assert backend._build_module() == "half of it" and cache.is_symlink()


def test_a_backend_of_another_user_is_loaded(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from an image: this process can make no files there."""
    backend._build_module()
    opened = _files.OwnFolder.open

    def read_only(folder: _files.OwnFolder, name: str, flags: int) -> int:
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY):
            raise PermissionError("Read-only file system")
        return opened(folder, name, flags)

    monkeypatch.setattr(_files.OwnFolder, "open", read_only)
    assert backend._build_module() == "loaded libcommsir_c10d.so"


def test_homes_that_are_none(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CacheSettings.HomesThatAreNone has it."""
    monkeypatch.delenv("COMMSIR_CACHE_DIR")
    for caches, home, folder in (
        ("/xdg", "", "/xdg/commsir"),
        ("", "/home/me", "/home/me/.cache/commsir"),
        ("some/folder", "/home/me", "/home/me/.cache/commsir"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", caches)
        monkeypatch.setenv("HOME", home)
        assert str(extension._cache()) == folder
    monkeypatch.setenv("HOME", "other/folder")
    with pytest.raises(RuntimeError, match="there is no home folder"):
        extension._cache()
