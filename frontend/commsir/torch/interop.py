"""Shares memory and communicators with other libraries."""

from __future__ import annotations

import weakref
from datetime import timedelta
from math import prod
from typing import Any

import commsir.torch._needed  # noqa: F401

# isort: split
import torch
import torch.distributed

from commsir.torch import backend, capi
from commsir.torch.rendezvous import store_of

dist: Any = torch.distributed

__all__ = ["adopt_symmetric_memory", "nccl_communicator", "share", "unshare", "window_tensor", "wrap_process_group"]

#: Of a process group and a device: the ranges that are shared, by their addresses, in bytes.
_shared: weakref.WeakKeyDictionary[Any, dict[int, dict[int, int]]] = weakref.WeakKeyDictionary()


def nccl_communicator(group: Any = None) -> int:
    """Returns the ncclComm_t of an existing process group, which still owns it."""
    used = dist.distributed_c10d._get_default_group() if group is None else group
    device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None
    if device is None or not hasattr(found := used._get_backend(device), "_comm_ptr"):
        raise RuntimeError(
            "commsir: this process group has no NCCL communicator; make it with the backend nccl, on a host with GPUs"
        )
    pointer = int(found._comm_ptr())
    if not pointer:
        raise RuntimeError(
            "commsir: NCCL's communicator is not there yet; give init_process_group a device_id, "
            "or run a collective first"
        )
    return pointer


def wrap_process_group(group: Any = None, *, name: str = "wrapped", timeout: float | None = None) -> capi.Group:
    """A group of CommsIR over the ranks of an existing process group of any backend. Collective.

    Where that has an NCCL communicator it is used, not made anew; else the ranks share memory on the CPU. Waits last
    `timeout` seconds: without one 300, or as long as those of the process group if that is less.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    store = dist.PrefixStore(f"commsir/{name}/{used.group_name}", store_of(used))
    on_gpu = torch.cuda.is_available() and "nccl" in str(dist.get_backend_config(used))
    limit = backend.default_timeout_of(used, "cuda" if on_gpu else "cpu") if timeout is None else timeout
    return capi.Group(
        store,
        used.rank(),
        used.size(),
        name=f"{name}.{used.group_name}",
        timeout=timedelta(seconds=limit),
        device=torch.cuda.current_device() if on_gpu else -1,
        nccl_comm=nccl_communicator(used) if on_gpu else 0,
    )


def adopt_symmetric_memory(group: capi.Group, tensor: torch.Tensor, process_group: Any = None) -> None:
    """A tensor of torch.distributed._symmetric_memory as a window, until the group ends or `group.forget`.

    The tensor has been through `rendezvous` with `process_group` (the default one), whose ranks are the group's.
    Kernels of the group then use it in place.
    """
    import torch.distributed._symmetric_memory as symmetric

    handle: Any = symmetric.rendezvous(tensor, dist.group.WORLD if process_group is None else process_group)
    parts = [int(part) for part in handle.buffer_ptrs]
    if len(parts) != group.size:
        raise ValueError(f"commsir: a tensor of {len(parts)} ranks for a group of {group.size}")
    group.adopt(parts[group.rank], int(handle.buffer_size), parts)


def _extents(memory: Any) -> list[tuple[int, int]]:
    """Addresses and sizes in bytes of a tensor's or pool's memory on the current GPU, in ascending order."""
    device = torch.cuda.current_device()
    if isinstance(memory, torch.Tensor):
        if memory.device != torch.device("cuda", device):
            raise ValueError(
                f"commsir: a tensor on {memory.device} cannot be shared, the current device is cuda:{device}"
            )
        storage = memory.untyped_storage()
        return [(int(storage.data_ptr()), int(storage.nbytes()))] if storage.nbytes() else []
    if not hasattr(memory, "snapshot"):
        raise TypeError(f"commsir: a {type(memory).__name__} cannot be shared: pass a tensor or a torch.cuda.MemPool")
    segments = [one for one in memory.snapshot(include_traces=False) if one["device"] == device]
    return sorted((int(one["address"]), int(one["total_size"])) for one in segments)


def _sharing(group: Any) -> tuple[list[Any], dict[int, int]]:
    """The owner of a process group's windows: the group of the ops, and its backend if that is CommsIR's."""
    from commsir.torch import ops

    used = dist.distributed_c10d._get_default_group() if group is None else group
    if not torch.cuda.is_available():
        raise RuntimeError(
            "commsir: memory is shared between GPUs, and there is none; on the CPU make tensors by commsir.torch.window"
        )
    device = torch.cuda.current_device()
    groups = [ops.group_of(used.group_name, device), backend.group_of(used, torch.device("cuda", device))]
    return [one for one in groups if one is not None], _shared.setdefault(used, {}).setdefault(device, {})


def _agreed_extents(used: Any, memory: Any, known: dict[int, int]) -> list[tuple[int, int]]:
    """The part of `memory` to share, equal on all ranks of a process group, or an error on all of them."""
    mine: list[tuple[int, int]] = []
    wrong: Exception | None = None
    try:
        mine = _extents(memory)
    except Exception as error:
        wrong = error
    told = str(wrong) if wrong else [(size, known.get(address) == size) for address, size in mine]
    heard: list[Any] = [None] * used.size()
    dist.all_gather_object(heard, told, group=used)
    if wrong:
        raise wrong
    if any(other != told for other in heard):
        raise RuntimeError(_describe_differences(heard))
    return [one for one in mine if known.get(one[0]) != one[1]]


def _describe_differences(heard: list[Any]) -> str:
    """Describes each rank's value if they differ."""
    ranks: dict[str, list[str]] = {}
    for rank, told in enumerate(heard):
        if isinstance(told, str):
            said = f"cannot share: {told}"
        else:
            sizes = ", ".join(f"{size}{' (shared before)' if old else ''}" for size, old in told)
            said = f"{len(told)} piece{'s' * (len(told) != 1)} of {sizes} bytes" if told else "nothing"
        ranks.setdefault(said, []).append(str(rank))
    return "\n".join(
        [
            "commsir: ranks share memory that is not alike",
            *(f"  rank{'s' * (len(of) != 1)} {', '.join(of)}: {said}" for said, of in ranks.items()),
            "  all ranks must make the same allocations in the pool, in the same order, and then share it",
        ]
    )


def share(memory: torch.Tensor | torch.cuda.MemPool, group: Any = None) -> None:
    """Lets calls of a process group use memory of the current GPU in place. All its ranks call this.

    `memory` is a tensor (all of its storage) or a pool, by whomever its memory was allocated: torch, its symmetric
    memory, ncclMemAlloc. It holds for `torch.ops.commsir` and, where the group's backend is ours, for the backend. A
    pool may be shared again when it has grown. Ranks share equally long memory, and equally many equally long pieces of
    a pool, which go by their addresses; else all of them raise, and nothing is shared.
    From then on a call gives, on all ranks, tensors in this memory at the same distance from its beginning, or on all
    ranks other tensors, as with NCCL's registered windows. The memory must stay until all ranks have called `unshare`.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    groups, known = _sharing(used)
    for address, size in _agreed_extents(used, memory, known):
        if address in known:  # It has grown in its place.
            del known[address]
            for one in groups:
                one.forget(address)
        for number, one in enumerate(groups):
            try:
                one.share(address, size)
            except capi.CommsIRError:
                for earlier in groups[:number]:
                    earlier.forget(address)
                raise
        known[address] = size


def unshare(memory: torch.Tensor | torch.cuda.MemPool, group: Any = None) -> None:
    """Ends `share` of `memory` in `group`, on this rank; waits for kernels that use the memory."""
    groups, known = _sharing(group)
    for address, _ in _extents(memory):
        if known.pop(address, None) is not None:
            for one in groups:
                one.forget(address)


def window_tensor(
    group: capi.Group,
    shape: int | tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    *,
    base: int = 0,
    rank: int = -1,
) -> torch.Tensor:
    """Returns symmetric memory of a `group` as a tensor of `shape` and `dtype`.

    Without `base` it is allocated, collectively. With `base`, an address in a window (`tensor.data_ptr()`), and
    `rank`, it is that rank's copy as this rank reaches it: what is written there, that rank reads; this is for groups
    on the CPU. The memory lives until the group is destroyed, or nothing refers to it and its tensors any more.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if group.device.type == "cuda" and rank >= 0:
        raise RuntimeError("commsir: on GPUs peers' copies are reached by commsir.torch.window(…).peer(rank)")
    size = prod(sizes) * dtype.itemsize
    address = base or group.allocate(max(size, 1))
    if rank >= 0:
        own, address = address, group.peer(address, rank)
        if not address:
            raise ValueError(f"commsir: {own:#x} lies in no window, or rank {rank} is out of reach")
    if not size:
        return torch.empty(sizes, dtype=dtype, device=group.device)
    return capi.memory(address, size, group.device, owner=group).view(dtype).view(sizes)
