"""Windows as tensors: put, get, signal and wait between the ranks of a process group of any backend."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed
import torch.utils.dlpack

import commsir
from commsir._arrays import spelled
from commsir.errors import AbortedError, UsageError
from commsir.torch import backend
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.rendezvous import store_of
from commsir.window import GroupWindow, Place

dist: Any = torch.distributed

__all__ = ["TensorWindow", "window"]


class TensorWindow(GroupWindow):
    """A window of tensors, which ends with its process group."""

    @classmethod
    def of(cls, made: GroupWindow) -> TensorWindow:
        return cls(made.group, made.array, made._first, made.signals, made._to)

    @property
    def _handle(self) -> int:
        handle = super()._handle
        if not handle:
            raise AbortedError(
                f"the process group of the window {self.type} {self.shape} was destroyed: call init_process_group, and "
                "make a new window"
            )
        return handle

    @property
    def tensor(self) -> torch.Tensor:
        """This rank's part."""
        made: torch.Tensor = self.array
        return made

    def peer(self, rank: int) -> torch.Tensor:
        """The tensor of another rank, in place. The other rank sees data written to it."""
        made: torch.Tensor = super().peer(rank)
        return made

    def get(
        self, peer: int, *, at: Place = (), out: torch.Tensor | None = None, stream: int | None = None
    ) -> torch.Tensor:
        """Copies the peer's tensor, from index `at` on, to `out`. Without `out`, copies `tensor[at]` to a new one."""
        made: torch.Tensor = super().get(peer, at=at, out=out, stream=stream)
        return made


#: The name of a process group, and the group of CommsIR over its ranks, made at its first window.
_groups: weakref.WeakKeyDictionary[Any, tuple[str, commsir.Group]] = weakref.WeakKeyDictionary()


def _device(used: Any, device: Any) -> str | int:
    """Returns "cpu" or the number of a GPU: the device that the process group works on."""
    if device is None:
        on_gpu = torch.cuda.is_available() and "cuda" in str(dist.get_backend_config(used))
        return torch.cuda.current_device() if on_gpu else "cpu"
    asked = torch.device(device)
    if asked.type == "cpu":
        return "cpu"
    return torch.cuda.current_device() if asked.index is None else int(asked.index)


def _group(used: Any, device: Any, timeout: float | None) -> commsir.Group:
    _, found = _groups.get(used, ("", None))
    if found is None:
        store = dist.PrefixStore(f"commsir/windows/{used.group_name}", store_of(used))
        name, where = f"windows.{used.group_name}", _device(used, device)
        limit = backend.default_timeout_of(used, "cpu" if where == "cpu" else "cuda") if timeout is None else timeout
        found = commsir.Group(used.rank(), used.size(), store=store, name=name, device=where, timeout=limit)
        _groups[used] = used.group_name, found
    elif device is not None and torch.device(device).type != torch.device(found.device).type:
        raise ValueError(f"commsir: windows of this process group are on {found.device}, as its first one is")
    return found


def abort(process_group: Any, reason: str) -> None:
    """Ends the waits of a process group's windows. Any thread may call it."""
    if found := _groups.get(process_group):
        found[1].abort(reason)


def _forget(name: str | None) -> None:
    """The process group is gone (without a name: all are). Other ranks may still use their windows: nobody waits."""
    for group, (known, made) in list(_groups.items()):
        if name in (None, known):
            _groups.pop(group, None)
            made._destroy_handle(waits=False)


when_gone(_forget)


def window(
    shape: int | tuple[int, ...],
    dtype: torch.dtype | str = torch.float32,
    *,
    group: Any = None,
    signals: int = 8,
    device: Any = None,
    timeout: float | None = None,
) -> TensorWindow:
    """Allocates a zeroed tensor of `shape` and `dtype` on each rank that the others can put to and get from, with
    `signals` cells. Collective, with the same arguments on all ranks.

    `group` is a process group of any backend. `device` and `timeout` (seconds of waits) come from its first window. By
    default, waits last 300 seconds, or as long as the process group's if that is shorter.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    if not hasattr(used, "get_group_store"):
        raise UsageError(f"commsir: group is a {type(used).__name__}, not a process group of torch.distributed")
    wanted: torch.dtype = dtype if isinstance(dtype, torch.dtype) else getattr(torch, spelled(dtype)[1])

    def tensor(memory: Any) -> torch.Tensor:
        # A peer's integers have no sign.
        return torch.utils.dlpack.from_dlpack(memory).view(wanted)

    return TensorWindow.of(_group(used, device, timeout).window(shape, wanted, signals=signals, to=tensor))
