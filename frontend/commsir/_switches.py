"""Switches in the environment."""

from __future__ import annotations

import os

__all__ = ["is_off"]


def is_off(name: str) -> bool:
    """Whether the variable is set to a value that turns a switch off (docs/GpuReference.md)."""
    return os.environ.get(name, "").lower() in ("0", "n", "no", "off", "false")
