"""Hooks for the end of process groups, for which torch has no callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.distributed import distributed_c10d

__all__ = ["when_gone"]

_c10d: Any = distributed_c10d
_heard: list[Callable[[str | None], None]] = []


def when_gone(forget: Callable[[str | None], None]) -> None:
    """Registers a callback for the end of process groups.

    `forget` is called with the name of each process group that is destroyed, or with None when all are.
    """
    if not _heard:
        for name in ("_unregister_process_group", "_unregister_all_process_groups"):
            setattr(_c10d, name, _notifying(getattr(_c10d, name)))
    _heard.append(forget)


def _notifying(unregister: Any) -> Any:
    def call(*names: str) -> Any:
        for forget in _heard:
            forget(*(names or (None,)))
        return unregister(*names)

    return call
