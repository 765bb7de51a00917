"""Counts which path each call of a process group took, and why."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

__all__ = ["clear_stats", "count", "stats"]

#: Of calls that are in Python: (group, op, path, reason).
_counts: Counter[tuple[str, str, str, str]] = Counter()


def count(group: str, op: str, path: str, reason: str) -> None:
    """Counts one call that the extension does not count."""
    _counts[group, op, path, reason] += 1


def _module() -> Any:
    """Returns the extension if a group has loaded it."""
    backend = sys.modules.get("commsir.torch.backend")
    return backend.loaded_module() if backend else None


def stats(group: Any = None) -> dict[str, Any]:
    """Returns the counters of this process.

    "calls" is a list of {"group", "op", "path", "reason", "count"} of the backend. `path` is "commsir", "gloo" or
    "nccl", and for monitored_barrier "store"; `reason` says why it is not "commsir". "groups" has for each kind of
    device of `group` (by default the default group, if there is one) the counters of its CommsIR group: launches,
    kernels compiled, arrays used in place and staged. Calls of torch.ops.commsir over the same ranks are in "cpu.ops"
    and "cuda.ops".
    """
    counts = Counter(_counts)
    module = _module()
    if module:
        counts.update(module.counts())
    calls = [
        {"group": name, "op": op, "path": path, "reason": reason, "count": number}
        for (name, op, path, reason), number in sorted(counts.items())
    ]
    return {"calls": calls, "groups": _groups(group)}


def _groups(group: Any) -> dict[str, Any]:
    if sys.modules.get("torch") is None:
        return {}
    import torch.distributed as dist

    if not dist.is_available() or (group is None and not dist.is_initialized()):
        return {}
    used = dist.distributed_c10d._get_default_group() if group is None else group
    ops = sys.modules.get("commsir.torch.ops")
    return _of_backends(used) | (ops.counts_of(used) if ops else {})


def _of_backends(used: Any) -> dict[str, Any]:
    """By kind of device."""
    import torch

    found: dict[str, Any] = {}
    for device in used._device_types:
        backend = used._get_backend(torch.device(device))
        # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps backends.
        backend = getattr(backend, "wrapped_pg", backend)
        if backend.name() == "commsir" and _module():
            found.update({key: json.loads(text) for key, text in _module().group_counts(backend).items()})
    return found


def clear_stats() -> None:
    """Resets the counters."""
    _counts.clear()
    module = _module()
    if module:
        module.clear_counts()
