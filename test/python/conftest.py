"""What all tests in Python share: the package of this checkout, or of a wheel."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_FRONTEND = Path(__file__).resolve().parents[2] / "frontend"


def _fault() -> str:
    """Why the package that Python finds is not the one to test; empty: it is."""
    found = importlib.util.find_spec("commsir")
    if found is None or found.origin is None:
        return "the package commsir is not installed: run make setup"
    folder = Path(found.origin).resolve().parents[1]
    if folder != _FRONTEND and (folder / "make_wheel.py").is_file():
        return f"the package commsir is that of another checkout, {folder}: run make setup here"
    return ""


if _why := _fault():
    pytest.exit(_why, returncode=2)
