"""Modules in C++ that are compiled where they are used, once for a torch, a Python and their sources."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

__all__ = ["Extension", "load", "root_of_sources"]


def load(name: str, path: Path) -> Any:
    """The module `name` of a file; ImportError: it does not fit."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def root_of_sources() -> Path | None:
    """The folder that holds runtime/torch: of the wheel, or of a checkout."""
    here = Path(__file__).resolve().parents[1]
    for root in (here / "_source", here.parents[1]):
        if (root / "runtime" / "torch" / "c10d" / "Module.cpp").is_file():
            return root
    return None


def _loaded(library: str) -> list[str]:
    """The path by which this process has loaded a library. Where a compiler has libstdc++ as an archive alone, its
    copy in a module would crash at the first stream, beside the one that torch uses."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.is_file() else []
    paths = [line.split(maxsplit=5)[5] for line in lines if f"/{library}" in line]
    return [path for path in paths if Path(path).is_file()][:1]


@dataclass(frozen=True)
class Extension:
    """`sources` and `reads` are patterns below runtime: what is compiled, and headers; what was built from others is
    not loaded. `headers` and `libraries` are others' that it is compiled with: folders to include, with the files that
    matter, and libraries that are loaded before it."""

    name: str
    sources: Sequence[str]
    reads: Sequence[str]
    headers: Sequence[tuple[Path, str]] = ()
    libraries: Sequence[Path] = ()
    what: str = "CommsIR's backend"

    def folder(self) -> Path:
        """Where what was built is kept."""
        root = os.environ.get("COMMSIR_CACHE_DIR")
        base = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "commsir"
        tag = importlib.machinery.EXTENSION_SUFFIXES[0].strip(".").removesuffix(".so")
        return base / "torch" / f"{torch.__version__}-{tag}" / self.name.removeprefix("libcommsir_")

    def build(self) -> Any:
        """The module; RuntimeError, ImportError or OSError: what kept it from being compiled."""
        root = root_of_sources()
        if root is None:
            raise RuntimeError("its sources are not here")
        folder = self.folder()
        folder.mkdir(parents=True, exist_ok=True)
        # Of processes that start together one builds. The lock ends with its process, which torch's own does not.
        with open(folder / "building", "w") as building:
            alone = True
            try:
                fcntl.flock(building, fcntl.LOCK_EX)
            except OSError:
                alone = False  # Some network file systems have no locks: torch's own has to do.
            return self._build(root, folder, alone)

    def _of_sources(self, root: Path) -> str:
        """Names what it is built from."""
        read = hashlib.sha256()
        for place, pattern in [(root / "runtime", part) for part in (*self.sources, *self.reads)] + [*self.headers]:
            for path in sorted(place.glob(pattern)):
                read.update(path.read_bytes())
        for library in self.libraries:
            read.update(library.read_bytes())
        return read.hexdigest()

    def _build(self, root: Path, folder: Path, alone: bool) -> Any:
        """Loads what was built before from these sources: to ask torch's builder takes a second."""
        wanted, stamp, built = self._of_sources(root), folder / "sources", folder / f"{self.name}.so"
        if built.is_file() and stamp.is_file() and stamp.read_text() == wanted:
            return load(self.name, built)
        compiler = os.environ.get("CXX", "c++")
        if not shutil.which(compiler):
            raise RuntimeError(f"there is no C++ compiler {compiler}: install one, or let CXX name it")
        from torch.utils import cpp_extension

        # Of a build that was killed; torch's builder would wait for it for ever.
        if alone:
            (folder / "lock").unlink(missing_ok=True)
        stamp.unlink(missing_ok=True)
        print(f"commsir: compiling {self.what}, once, into {folder}; it takes a minute", file=sys.stderr, flush=True)
        module = cpp_extension.load(
            name=self.name,
            sources=sorted(str(path) for part in self.sources for path in (root / "runtime").glob(part)),
            extra_cflags=["-O2", "-std=c++20", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO"],
            extra_ldflags=[*_loaded("libstdc++.so.6"), *(str(library) for library in self.libraries)],
            extra_include_paths=[str(root), *(str(place) for place, _ in self.headers)],
            build_directory=str(folder),
            with_cuda=False,
        )
        stamp.write_text(wanted)
        return module
