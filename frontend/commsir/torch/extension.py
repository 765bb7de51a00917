"""Compiles C++ modules where they are used, once per torch, Python and sources."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from commsir import _files

__all__ = ["Extension", "load", "root_of_sources"]


def load(name: str, path: Path) -> Any:
    """Loads the module `name` from a file. Raises ImportError if it does not fit."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def root_of_sources() -> Path | None:
    """Returns the folder that contains runtime/torch: in the wheel, or in a checkout."""
    here = Path(__file__).resolve().parents[1]
    for root in (here / "_source", here.parents[1]):
        if (root / "runtime" / "torch" / "c10d" / "Module.cpp").is_file():
            return root
    return None


def _loaded(library: str) -> list[str]:
    """The path by which this process has loaded a library. Where a compiler has only an archive of libstdc++, its
    copy in a module would crash at the first stream, next to the one that torch uses."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if maps.is_file() else []
    paths = [line.split(maxsplit=5)[5] for line in lines if f"/{library}" in line]
    return [path for path in paths if Path(path).is_file()][:1]


def _cache() -> Path:
    """Returns the cache folder, by the rules of runtime/jit/CacheSettings.cpp. Raises RuntimeError."""
    if cache := os.environ.get("COMMSIR_CACHE_DIR"):
        return Path(cache).absolute()
    for place in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        if os.path.isabs(place):
            return Path(place) / "commsir"
    raise RuntimeError("there is no home folder; COMMSIR_CACHE_DIR says where compiled code may be kept")


@dataclass(frozen=True)
class Extension:
    """`sources` and `reads` are patterns below runtime: what is compiled, and headers. `links` are folders of others'
    headers: the names that sources include them by, and the files that matter. `libraries` are others', which are
    loaded before it. `trial` is a program that gets the module's path, run once: what others' libraries have may differ
    from what their headers say, and then it may end that process."""

    name: str
    sources: Sequence[str]
    reads: Sequence[str]
    links: Sequence[tuple[str, Path, str]] = ()
    libraries: Sequence[Path] = ()
    trial: str = ""
    what: str = "CommsIR's backend"

    def folder(self, root: Path) -> Path:
        """The build folder. Different sources use different folders, because torch's builder would reuse objects."""
        tag = importlib.machinery.EXTENSION_SUFFIXES[0].strip(".").removesuffix(".so")
        kind = _cache() / "torch" / f"{torch.__version__}-{tag}" / self.name.removeprefix("libcommsir_")
        return kind / self._of_sources(root)[:16]

    def _of_sources(self, root: Path) -> str:
        """Digests everything that the module is built from."""
        read = hashlib.sha256()
        own = [(root / "runtime", pattern) for pattern in (*self.sources, *self.reads)]
        for place, pattern in own + [(place, pattern) for _, place, pattern in self.links]:
            for path in sorted(place.glob(pattern)):
                read.update(f"{path.relative_to(place)} {path.stat().st_size}\n".encode() + path.read_bytes())
        for library in self.libraries:
            read.update(library.read_bytes())
        return read.hexdigest()

    def build(self) -> Any:
        """Builds and loads the module. Raises RuntimeError, ImportError or OSError with the reason if that fails."""
        root = root_of_sources()
        if root is None:
            raise RuntimeError("its sources are not here")
        with self._open(root) as folder:
            # A folder that this process cannot write to may hold what another one has built.
            if module := self._finished(folder):
                return module
            return self._build_alone(root, folder)

    def _build_alone(self, root: Path, folder: _files.OwnFolder) -> Any:
        with os.fdopen(folder.open("building", os.O_RDWR | os.O_CREAT), "w", encoding="utf-8") as building:
            # Of processes that start together one builds. The lock ends with its process, which torch's own does not.
            alone = True
            try:
                fcntl.flock(building, fcntl.LOCK_EX)
            except OSError:
                alone = False  # Some network file systems have no locks: torch's own has to do.
            return self._build(root, folder, alone)

    def _open(self, root: Path) -> _files.OwnFolder:
        """Opens `folder`, which nobody else may write to, because its contents are loaded, like entries of the kernel
        cache."""
        base, folder = _cache(), self.folder(root)
        return _files.OwnFolder(base, *folder.relative_to(base).parts)

    def _finished(self, own: _files.OwnFolder) -> Any:
        """The module of an earlier build, because calling torch's builder takes a second. None: there is none."""
        built = own.held / f"{self.name}.so"
        if why := own.read("refused"):
            raise RuntimeError(why)
        if own.read("finished") is not None:
            with contextlib.suppress(FileNotFoundError):
                os.close(own.open(built.name, os.O_RDONLY))
                return load(self.name, built)
        return None

    def _build(self, root: Path, own: _files.OwnFolder, alone: bool) -> Any:
        if module := self._finished(own):
            return module
        folder, built = own.held, own.held / f"{self.name}.so"
        compiler = os.environ.get("CXX", "c++")
        if not shutil.which(compiler):
            raise RuntimeError(f"there is no C++ compiler {compiler}: install one, or let CXX name it")
        from torch.utils import cpp_extension

        # Of a build that was killed; torch's builder would wait for it forever.
        if alone:
            own.remove("lock")
        own.remove("finished")
        print(f"commsir: compiling {self.what}, once, into {own.path}; it takes a minute", file=sys.stderr, flush=True)
        module = cpp_extension.load(
            name=self.name,
            sources=sorted(str(path) for part in self.sources for path in (root / "runtime").glob(part)),
            extra_cflags=["-O2", "-std=c++20", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO"],
            extra_ldflags=[*_loaded("libstdc++.so.6"), *(str(library) for library in self.libraries)],
            extra_include_paths=[str(root), *self._include(folder)],
            build_directory=str(folder),
            with_cuda=False,
        )
        if why := self._failure(built, own.path / built.name):
            own.write("refused", why)
            raise RuntimeError(why)
        own.keep_for_owner(built.name)
        own.write("finished", "")
        return module

    def _include(self, folder: Path) -> list[str]:
        """Creates an include folder whose `links` point to headers."""
        for name, place, _ in self.links:
            link = folder / "include" / name
            _files.make_folders(link.parent)
            link.unlink(missing_ok=True)
            link.symlink_to(place.resolve())
        return [str(folder / "include")] if self.links else []

    def _failure(self, built: Path, known: Path) -> str:
        """Returns how `trial` failed with the module, which the user knows as `known`; empty: it passed."""
        if not self.trial:
            return ""
        # It finds modules where this process does.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", self.trial, str(built)]
        try:
            tried = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return f"{known} did nothing for two minutes when it was tried"
        if tried.returncode == 0:
            return ""
        said = (tried.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return f"{known} failed when it was tried (it ended with {tried.returncode}: {said})"
