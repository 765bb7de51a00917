"""Locations of prebuilt backends, and their names for each torch version. Does not need torch, which its users may
lack: runtime/torch/c10d/CMakeLists.txt, and commsir.doctor."""

from __future__ import annotations

import importlib.machinery
import os
import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["BACKEND", "folders", "name_of", "paths_of"]

#: The C++ backend, as a module of Python.
BACKEND = "libcommsir_c10d"


def folders() -> list[Path]:
    """Folders that may contain libcommsir.so and the prebuilt backends, the preferred one first."""
    named = os.environ.get("COMMSIR_LIBRARY")
    here = Path(__file__).resolve().parents[1]
    found = [here / "_lib", here.parents[1] / "build" / "lib"]
    if named:
        path = Path(named)
        found.insert(0, path.parent if path.is_file() else path)
    return found


def name_of(version: str) -> str:
    """The minor of a release, whose patch releases have the same classes, also where others than PyTorch's index have
    built it; else the whole version, as of a nightly build: it may have other classes than any release, and than what
    was built a day before."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", version)
    return release[1] if release else version


def paths_of(version: str, places: Iterable[Path]) -> list[Path]:
    """The backends that are prebuilt for a version of torch and this Python, best first."""
    name = f"{BACKEND}.torch-{name_of(version)}{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    return [place / name for place in places if (place / name).is_file()]
