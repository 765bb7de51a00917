"""How prebuilt backends are named by torch's version. Without torch: runtime/torch/c10d/CMakeLists.txt runs it, too."""

from __future__ import annotations

import re

__all__ = ["name_of"]


def name_of(version: str) -> str:
    """The minor of a release, whose patch releases have the same classes, also where others than PyTorch's index have
    built it; else the whole version, as of a nightly build: it may have other classes than any release, and than what
    was built a day before."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", version)
    return release[1] if release else version
