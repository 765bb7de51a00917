"""The CommsIR groups that ops run in: one for each process group and device, made in the first call.

`library` is the library of the ops in C++. It asks Python for a group that it does not know.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from commsir.torch import _release, backend, capi, lazy_views
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.rendezvous import Rendezvous, store_of

__all__ = ["ALONE", "abort", "counts_of", "group_of", "keep_message", "library", "rank_of", "size_of"]

# torch's own types say less than we know.
_OPS: Any = torch.ops
_C10D: Any = c10d
_DIST: Any = dist
_RESOLVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32)
_SIZE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)
_ADOPT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p)


class _Callbacks(ctypes.Structure):
    _fields_ = [("resolve", _RESOLVE), ("size", _SIZE), ("rank", _SIZE), ("adopt", _ADOPT), ("error", _ERROR)]


_groups: dict[tuple[str, int], tuple[Any, capi.Group]] = {}
#: The name of a group of this rank alone.
ALONE = "commsir/alone"
_making: dict[tuple[str, int], threading.Lock] = {}
#: Process groups without symmetric memory, of which was told.
_refused: set[str] = set()
_said = threading.local()


def group_of(name: str, device: int = -1) -> capi.Group:
    """Returns the group that the ops use for a process group on the CPU (-1) or a GPU. Collective when it is new."""
    process_group = None if name == ALONE else _C10D._resolve_process_group(name)
    # One of several threads makes it.
    with _making.setdefault((name, device), threading.Lock()):
        known = _groups.get((name, device))
        if known is None or known[0] is not process_group:
            if known is not None:  # Of an earlier process group of that name.
                library.commsir_torch_forget(name.encode())
            known = _groups[(name, device)] = (process_group, _make_group(process_group, name, device))
        return known[1]


def abort(process_group: Any, reason: str) -> None:
    """Ends the waits of ops in a process group's groups. Any thread may call it."""
    for known, made in list(_groups.values()):
        if known is process_group:
            made.abort(reason)


def _make_group(process_group: Any, name: str, device: int) -> capi.Group:
    if not backend.library():
        raise RuntimeError("torch.ops.commsir: libcommsir.so was not found; set COMMSIR_LIBRARY to its folder")
    if process_group is None:
        return capi.Group(_DIST.HashStore(), 0, 1, name=name, timeout=c10d.default_pg_timeout, device=device)
    return capi.Group(
        _DIST.PrefixStore(f"commsir/ops/{device >= 0}", _C10D._get_process_group_store(process_group)),
        process_group.rank(),
        process_group.size(),
        name=f"{name}.ops",
        timeout=_timeout_of(process_group, device),
        device=device,
        shares_gpu=False,
    )


def _timeout_of(process_group: Any, device: int) -> timedelta:
    return backend.timeout_of(process_group, "cpu" if device < 0 else "cuda") or c10d.default_pg_timeout


def keep_message(error: BaseException) -> None:
    """Keeps the text of an exception for callers in C++, which get a status alone."""
    _said.text = ctypes.create_string_buffer((str(error) or type(error).__name__).encode())


def _guarded(call: Any, failed: Any) -> Any:
    """Keeps exceptions of a callback for `error`, because a callback must not raise."""

    def safe(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except BaseException as error:  # Of Ctrl-C, too, ctypes would make 0, which may mean that all went well.
            keep_message(error)
            return failed

    return safe


def _resolve(name: bytes, device: int) -> int:
    return group_of(name.decode(), device).address


def size_of(name: bytes) -> int:
    """Returns the number of ranks of the process group of that name."""
    return 1 if name == ALONE.encode() else int(_C10D._resolve_process_group(name.decode()).size())


def rank_of(name: bytes) -> int:
    """Returns this rank in the process group of that name."""
    return int(_C10D._resolve_process_group(name.decode()).rank())


def _symmetric(name: str, device: int, data: int, size: int) -> list[int]:
    """Addresses of every rank's copy of torch's symmetric memory. Collective."""
    import torch.distributed._symmetric_memory as symm_mem

    rendezvous: Any = symm_mem.rendezvous
    handle = rendezvous(capi.memory(data, size, torch.device("cuda", device)), name)
    if handle is None:
        raise RuntimeError(f"the memory at {data:#x} is not symmetric memory of torch")
    offset = data - handle.buffer_ptrs[handle.rank]
    return [int(part) + offset for part in handle.buffer_ptrs]


@contextlib.contextmanager
def _bounded_store_timeout(process_group: Any, limit: timedelta) -> Iterator[None]:
    """Limits waits in the process group's store to `limit`."""
    store = _C10D._get_process_group_store(process_group)
    before = store.timeout
    store.set_timeout(min(limit, before))
    try:
        yield
    finally:
        store.set_timeout(before)


def _extents(process_group: Any, limit: timedelta, reached: Any) -> tuple[list[int], str]:
    """Addresses of every rank's copy as this rank reaches it, or the reason why no rank uses the memory in place."""
    # Nothing of this rank alone, such as the number of its GPU, may be in the name of the place.
    place = _DIST.PrefixStore("commsir/ops/adopt", store_of(process_group))
    rank, size = process_group.rank(), process_group.size()

    def meet(said: str) -> list[str]:
        met = Rendezvous(place, rank, size, limit).hold(said)
        if not met.epoch:
            raise RuntimeError(
                f"commsir: rank {rank}: Timed out waiting {round(limit.total_seconds() * 1000)}ms for all ranks to use "
                f"symmetric memory of process group {process_group.group_name}: {met.failure}"
            )
        return met.said

    # torch's own meeting would wait without a word for ranks that do not come.
    meet("")
    parts, why = list[int](), ""
    try:
        with _bounded_store_timeout(process_group, limit):
            parts = reached()
        why = "" if all(parts) else "it does not reach all ranks"
    except Exception as error:
        why = str(error) or type(error).__name__
    refused = next(((other, said) for other, said in enumerate(meet(why)) if said), None)
    return parts, f"rank {refused[0]}: {refused[1]}" if refused else ""


def _adopt(name: bytes, device: int, data: int, size: int) -> int:
    """1: on some rank torch's symmetric memory does not reach all others, as over several hosts; all ranks hear of it.

    A newer torch says of every group that it has symmetric memory.
    """
    group = name.decode()
    process_group = _C10D._resolve_process_group(group)
    parts, refused = _extents(
        process_group, _timeout_of(process_group, device), lambda: _symmetric(group, device, data, size)
    )
    if not refused:
        group_of(group, device).adopt(data, size, parts)
        return 0
    if group not in _refused:
        _refused.add(group)
        warnings.warn(
            f"commsir: symmetric memory of process group {group} is not used, inputs are staged: {refused}",
            stacklevel=2,
        )
    return 1


def _error() -> int:
    text = getattr(_said, "text", None)
    return ctypes.addressof(text) if text is not None else 0


def _load() -> tuple[Any, _Callbacks]:
    for folder in _release.folders():
        path = folder / "libcommsir_torch_ops.so"
        if path.is_file():
            _OPS.load_library(str(path))
            lazy_views.install_outputs()
            library = ctypes.CDLL(str(path))
            callbacks = _Callbacks(
                _RESOLVE(_guarded(_resolve, 0)),
                _SIZE(_guarded(size_of, 0)),
                _SIZE(_guarded(rank_of, 0)),
                _ADOPT(_guarded(_adopt, -1)),
                _ERROR(_error),
            )
            library.commsir_torch_set_callbacks(ctypes.byref(callbacks))
            library.commsir_torch_take_defect.restype = ctypes.c_char_p
            return library, callbacks
    raise RuntimeError(
        "torch.ops.commsir: libcommsir_torch_ops.so was not found; it lies next to libcommsir.so "
        "(COMMSIR_LIBRARY names the folder)"
    )


#: The callbacks live as long as the library may call them.
library, _callbacks = _load()


def counts_of(process_group: Any) -> dict[str, Any]:
    """Counters of the groups that the ops made for a process group, by device type."""
    made = {device: group for (_, device), (known, group) in list(_groups.items()) if known is process_group}
    return {"cpu.ops" if device < 0 else "cuda.ops": group.counts() for device, group in made.items()}


def _forget(name: str | None) -> None:
    """The process group is gone (without a name: all are), and its name may be another's next."""
    _refused.difference_update(list(_refused) if name is None else [name])
    for key in [key for key in _groups if name in (None, key[0])]:
        library.commsir_torch_forget(key[0].encode())
        _groups.pop(key)[1].destroy()


when_gone(_forget)
