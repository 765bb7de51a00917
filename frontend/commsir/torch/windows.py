"""Windows as tensors: put, get, signal and wait between the ranks of a process group of any backend."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed
import torch.utils.dlpack

import commsir
from commsir._arrays import spelled
from commsir.errors import UsageError
from commsir.torch.meeting import store_of
from commsir.window import GroupWindow

dist: Any = torch.distributed

__all__ = ["window"]

#: The group of CommsIR over the ranks of a process group, made at its first window.
_groups: weakref.WeakKeyDictionary[Any, commsir.Group] = weakref.WeakKeyDictionary()


def _device(used: Any, device: Any) -> str | int:
    """ "cpu", or the number of a GPU: the one that the process group works on."""
    if device is None:
        on_gpu = torch.cuda.is_available() and "cuda" in str(dist.get_backend_config(used))
        return torch.cuda.current_device() if on_gpu else "cpu"
    asked = torch.device(device)
    if asked.type == "cpu":
        return "cpu"
    return torch.cuda.current_device() if asked.index is None else int(asked.index)


def _group(used: Any, device: Any, timeout: float) -> commsir.Group:
    found = _groups.get(used)
    if found is None:
        store = dist.PrefixStore(f"commsir/windows/{used.group_name}", store_of(used))
        name, where = f"windows.{used.group_name}", _device(used, device)
        found = commsir.Group(used.rank(), used.size(), store=store, name=name, device=where, timeout=timeout)
        _groups[used] = found
    elif device is not None and torch.device(device).type != torch.device(found.device).type:
        raise ValueError(f"commsir: windows of this process group are on {found.device}, as its first one is")
    return found


def abort(process_group: Any, reason: str) -> None:
    """Ends the waits of a process group's windows. Any thread."""
    if found := _groups.get(process_group):
        found.abort(reason)


def window(
    shape: int | tuple[int, ...],
    dtype: torch.dtype | str = torch.float32,
    *,
    group: Any = None,
    signals: int = 8,
    device: Any = None,
    timeout: float = 300,
) -> GroupWindow:
    """A zeroed tensor on each rank that the others put to and get from, with `signals` cells. Collective.

    `group` is a process group of any backend; `device` and `timeout` (seconds of waits) are those of its first
    window.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    if not hasattr(used, "get_group_store"):
        raise UsageError(f"commsir: group is a {type(used).__name__}, not a process group of torch.distributed")
    wanted: torch.dtype = dtype if isinstance(dtype, torch.dtype) else getattr(torch, spelled(dtype)[1])

    def tensor(memory: Any) -> torch.Tensor:
        # A peer's integers have no sign.
        return torch.utils.dlpack.from_dlpack(memory).view(wanted)

    return _group(used, device, timeout).window(shape, wanted, signals=signals, to=tensor)
