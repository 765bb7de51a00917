"""Patches functions of torch that reject backends other than Gloo and NCCL by name, or process groups in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from commsir.torch import call_counts

__all__ = ["Options", "install"]

c10d: Any = distributed_c10d
_native: Any = torch._C._distributed_c10d
_Backend: Any = _native.Backend


def _is_own_class(group: Any) -> bool:
    """Whether the backend belongs to a subclass of commsir.torch.ProcessGroup, whatever its name."""
    return hasattr(group, "submit")


def _is_ours(group: Any) -> bool:
    if c10d._rank_not_in_group(group):
        return False
    return "commsir" in str(dist.get_backend_config(group)) or _is_own_class(_used(group))


def _used(group: Any) -> Any:
    return c10d._get_default_group() if group is None else group


def _unwrapped(group: Any) -> list[Any]:
    from commsir.torch import backend

    return backend.ours(group)


def _has_own_barrier(group: Any) -> bool:
    """Whether a group in Python, of any name, has a barrier that reports missing ranks."""
    torchs = c10d.ProcessGroup.monitored_barrier
    return getattr(type(_used(group)), "monitored_barrier", torchs) is not torchs


def _replace(name: str, wrap: Callable[[Any], Any]) -> None:
    made = wrap(getattr(c10d, name))
    setattr(c10d, name, made)
    if hasattr(dist, name):
        setattr(dist, name, made)


def _monitored_barrier(original: Any) -> Any:
    @functools.wraps(original)
    def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> Any:
        if not _is_ours(group) and not _has_own_barrier(group):
            return original(group, timeout, wait_all_ranks)
        limit = timedelta(seconds=timeout) if isinstance(timeout, (int, float)) else timeout
        limit = c10d.default_pg_timeout if limit is None else limit
        used = _used(group)
        if _unwrapped(used):  # A copy of reference.py has Gloo's.
            call_counts.count(used.group_name, "monitored_barrier", "store", "it names who is missing")
        return used.monitored_barrier(limit, wait_all_ranks=wait_all_ranks)

    return monitored_barrier


def _set_timeout(original: Any) -> Any:
    @functools.wraps(original)
    def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
        if not _is_ours(group):
            original(timeout, group)
            return
        for found in _unwrapped(_used(group)):
            found.set_timeout(timeout)

    return _set_pg_timeout


def _shrinkable(original: Any) -> Any:
    @functools.wraps(original)
    def _validate_shrink_backend_requirements(info: dict[str, Any]) -> Any:
        group = info["process_group"]
        # The wrapper of TORCH_DISTRIBUTED_DEBUG=DETAIL says that it shrinks nothing.
        if _is_own_class(group):
            return group
        return _unwrapped(group)[0] if _is_ours(group) else original(info)

    return _validate_shrink_backend_requirements


def _restore_devices(group: Any, made: Any, config: str) -> None:
    """Registers the backend for its former devices; torch registers it for one, the CPU if no GPU is bound."""
    types = dist.ProcessGroup.BackendType
    known = {device.type for device in group._device_types}
    for device, name in (part.split(":") for part in config.split(",")):
        if name == "commsir" and device not in known:
            group._register_backend(torch.device(device), types.NCCL if "cuda" in known else types.GLOO, made)


def _shrunk(original: Any) -> Any:
    @functools.wraps(original)
    def _create_shrunk_process_group(made: Any, ranks: Any, metadata: Any, is_default_group: bool) -> Any:
        # One of a class in Python makes another of its class.
        if not isinstance(made, dist.ProcessGroup):
            group = original(made, ranks, metadata, is_default_group)
            if made.name() == "commsir":
                _restore_devices(group, made, str(metadata["backend_config"]))
            return group
        made._set_group_name(metadata["new_group_name"])
        old = metadata["original_group_name"]
        made._set_group_desc("default:shrunken" if is_default_group else f"{old}:shrunk")
        c10d._world.pg_backend_config[made] = metadata["backend_config"]
        return made

    return _create_shrunk_process_group


def _split_source(original: Any) -> Any:
    @functools.wraps(original)
    def _get_split_source(group: Any) -> Any:
        """Of groups bound to a GPU, what new ones are made from: ours need nothing, and NCCL's nothing of ours."""
        source = original(group)
        return None if source is not None and source.name() == "commsir" else source

    return _get_split_source


class Options(_Backend.Options):  # type: ignore[misc]
    """Options that torch copies to split a group, as it does for the meshes of bound groups."""

    def __deepcopy__(self, memo: Any) -> Any:
        return Options(self.backend, self._timeout)


def _builtin_hook(original: Any) -> Any:
    @functools.wraps(original)
    def _register_builtin_comm_hook(model: Any, comm_hook_type: Any) -> None:
        """That in C++ looks for a list of tensors in the future of a call, where a group in Python has an object: it
        gets torch's hook in Python, which does the same."""
        in_python = type(model.process_group) is not dist.ProcessGroup
        if not in_python or comm_hook_type != _native.BuiltinCommHookType.FP16_COMPRESS:
            original(model, comm_hook_type)
            return
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        model.logger._set_comm_hook_name(str(comm_hook_type))
        _native._register_comm_hook(model.reducer, model.process_group, default_hooks.fp16_compress_hook)

    return _register_builtin_comm_hook


def _give_options() -> None:
    """Before torch 2.15, torch asks backends for options, which only its own backends provide."""
    if not hasattr(_Backend, "options"):
        _Backend.options = property(lambda used: Options(used.name()))


def install() -> None:
    """Installs the patches. Other backends behave as before."""
    _give_options()
    if hasattr(c10d, "_get_split_source"):
        _replace("_get_split_source", _split_source)
    _replace("monitored_barrier", _monitored_barrier)
    _replace("_set_pg_timeout", _set_timeout)
    ddp: Any = torch.nn.parallel.DistributedDataParallel
    ddp._register_builtin_comm_hook = _builtin_hook(ddp._register_builtin_comm_hook)
    if hasattr(c10d, "shrink_group"):
        _replace("_validate_shrink_backend_requirements", _shrinkable)
        _replace("_create_shrunk_process_group", _shrunk)
