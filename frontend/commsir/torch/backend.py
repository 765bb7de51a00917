"""Creates process groups: loads or builds the C++ backend, or falls back to Gloo and NCCL."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import dynamo, extension, lazy_views
from commsir.torch._release import BACKEND as _NAME
from commsir.torch._release import folders as _folders
from commsir.torch._release import paths_of

dist: Any = torch.distributed

__all__ = [
    "Settings",
    "abort",
    "create",
    "delegate",
    "library",
    "load_module",
    "loaded_module",
    "make",
    "make_group",
    "make_in_cpp",
    "recent_calls",
    "serve",
    "settings",
]

_EXTENSION = extension.Extension(
    _NAME, ["torch/c10d/*.cpp"], ["torch/*.h", "torch/c10d/*.h", "capi/commsir.h", "support/Rendezvous.h"]
)
#: Seconds that windows wait for peers at the most.
_PATIENCE = 300.0
_loaded: Any = None
_searched = False
#: Why there is none, if there is none.
_missing = ""


@functools.cache
def _warn_without_library() -> None:
    looked = ", ".join(str(folder) for folder in _folders())
    warnings.warn(
        f"commsir: libcommsir.so is not in {looked}: all calls go to Gloo or NCCL. Install the wheel again, or, in a "
        "checkout, run `make build`; COMMSIR_LIBRARY names a folder elsewhere",
        stacklevel=2,
    )


@dataclass
class Settings:
    """Parameters of a process group."""

    store: Any
    rank: int
    size: int
    timeout: timedelta
    name: str
    global_ranks: list[int] = field(default_factory=list)
    #: The backend, where it is made already.
    made: Any = None

    def __post_init__(self) -> None:
        if not library():
            _warn_without_library()


def settings(options: Any) -> Settings:
    """Reads the options that torch passes to the creator of a backend."""
    return Settings(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        list(options.global_ranks_in_group),
    )


def library() -> str:
    """Returns the path of libcommsir.so, or an empty string if it is missing; all calls are then delegated."""
    for folder in _folders():
        if (folder / "libcommsir.so").is_file():
            return str(folder / "libcommsir.so")
    return ""


@functools.cache
def _record_nccl_rank(rank: int) -> None:
    """torch's NCCL takes the first rank that a process has in a group of it for its rank in the world, guesses GPUs by
    that, and names files; but this may be its rank in a pair. (It also takes the first group for the one whose flight
    recorder hears of other ranks' dumps: in such a process there is none that does.)"""
    first = dist.ProcessGroupNCCL(dist.HashStore(), rank, rank + 1, dist.ProcessGroupNCCL.Options())
    first.shutdown()


def delegate(timeout: timedelta) -> Callable[[Any, str, int, int, Sequence[int], str], Any]:
    """Creates the backend for calls that CommsIR does not compile, for a group or for a pair of its ranks."""

    @dynamo.opaque  # C++ calls it in the first call that is delegated, which may be in a compiled function.
    def make(store: Any, device: str, rank: int, size: int, global_ranks: Sequence[int], name: str) -> Any:
        # What it looks for in the store is there as soon as the other ranks are.
        store.set_timeout(min(timeout, store.timeout))
        if device == "cpu":
            chosen = dist.ProcessGroupGloo._Options()
            # Pairs connect at their first call: ranks that send to each other do not wait for the rest.
            chosen._devices = [dist.ProcessGroupGloo.create_default_device(lazy_init=True)]
            chosen._timeout = timeout
            gloo = dist.ProcessGroupGloo(store, rank, size, chosen)
            gloo.options.global_ranks_in_group = list(global_ranks)
            gloo.options.group_name = name
            return gloo
        if not dist.is_nccl_available():
            raise RuntimeError("commsir: this call is delegated to NCCL, which this torch was built without")
        if global_ranks and global_ranks[rank] != rank:
            _record_nccl_rank(global_ranks[rank])
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        options.global_ranks_in_group = list(global_ranks)
        options.group_name = name
        return dist.ProcessGroupNCCL(store, rank, size, options)

    return make


def prebuilt() -> dict[str, list[str]]:
    """Returns the minor releases of torch with prebuilt backends, each with its Python versions."""
    found: dict[tuple[int, int], set[int]] = {}
    for folder in _folders():
        for path in folder.glob(f"{_NAME}.torch-*.so"):
            name = re.fullmatch(r".*\.torch-(\d+)\.(\d+)\.cpython-3(\d+)-.*", path.name)
            if name:
                found.setdefault((int(name[1]), int(name[2])), set()).add(int(name[3]))
    return {
        f"{major}.{minor}": [f"3.{python}" for python in sorted(found[major, minor])] for major, minor in sorted(found)
    }


def _load_prebuilt() -> Any:
    """Loads the backend that was built for this torch and Python. Returns None if there is none or it does not load."""
    for path in paths_of(torch.__version__, _folders()):
        try:
            return extension.load(_NAME, path)
        except ImportError as error:
            # A torch that others have built may lack what PyPI's has.
            warnings.warn(f"commsir: {path} does not fit torch {torch.__version__}: {error}", stacklevel=2)
    return None


def _describe_mismatch() -> str:
    """Lists the available backends, for the error that none fits this torch and Python."""
    have = ", ".join(f"{minor} (Python {', '.join(pythons)})" for minor, pythons in prebuilt().items())
    return (
        f"commsir: no C++ backend for torch {torch.__version__} and Python "
        f"{sys.version_info.major}.{sys.version_info.minor} is there"
        + (f"; prebuilt are those for releases of torch {have}" if have else "")
    )


def _build_module() -> Any:
    """Compiles the backend for this torch and Python. Raises the error that prevented it."""
    return _EXTENSION.build()


def loaded_module() -> Any:
    """The extension, if one was loaded."""
    return _loaded


def module_at_hand() -> Any:
    """Returns the extension if no build is needed, otherwise None."""
    global _loaded, _searched
    if not _searched and os.environ.get("COMMSIR_TORCH_BACKEND", "") in ("", "cpp"):
        _loaded = _load_prebuilt()
        _searched = _loaded is not None
    return _loaded


def load_module() -> Any:
    """Loads the extension. Returns None if it is not available; all calls then go to Gloo and NCCL.

    COMMSIR_TORCH_BACKEND selects "cpp" (prebuilt, otherwise built) or "build" (always built). With either, a missing
    backend is an error. By default, the backend is used if it is available.
    """
    global _loaded, _searched, _missing
    wanted = os.environ.get("COMMSIR_TORCH_BACKEND", "")
    if wanted not in ("", "cpp", "build"):
        raise ValueError(f'COMMSIR_TORCH_BACKEND is "{wanted}"; say cpp or build, or unset it')
    if not _searched:
        _loaded = _load_prebuilt() if wanted != "build" else None
        if _loaded is None:
            try:
                _loaded = _build_module()
            except (RuntimeError, ImportError, OSError) as error:
                _missing = f"{_describe_mismatch()}; it could not be built: {error}"
        _searched = True
        if _missing and not wanted:
            warnings.warn(f"{_missing}. All calls go to Gloo or NCCL", stacklevel=2)
    if _loaded is None and wanted:
        raise RuntimeError(_missing)
    return _loaded


def create(options: Any, backend_options: Any) -> Any:
    """Creates a backend for torch's init_process_group and new_group."""
    return make(settings(options))


def make(made: Settings) -> Any:
    """Creates a process group's backend. Without a backend for this torch, creates a process group of Gloo and NCCL."""
    return make_in_cpp(made) if load_module() else _make_from_delegates(made)


def make_in_cpp(made: Settings) -> Any:
    """Creates a process group's C++ backend. Raises RuntimeError if there is none for this torch and Python."""
    lazy_views.install(ours)
    if (module := load_module()) is None:
        raise RuntimeError(f"{_missing}. A subclass of commsir.torch.ProcessGroup needs it")
    return module.create(
        made.store, made.rank, made.size, made.timeout, made.name, made.global_ranks, library(), delegate(made.timeout)
    )


def _make_from_delegates(made: Settings) -> Any:
    group, make = dist.ProcessGroup(made.store, made.rank, made.size), delegate(made.timeout)
    # Ranks that have one wait for this one in vain, and tell why.
    made.store.set("commsir/others", f"rank {made.rank} takes Gloo and NCCL for all calls: {_missing}")
    types = dist.ProcessGroup.BackendType
    served = {"cpu": types.GLOO} | ({"cuda": types.NCCL} if torch.cuda.is_available() else {})
    for device, kind in served.items():
        store = dist.PrefixStore(f"commsir/others/{device}", made.store)
        other = make(store, device, made.rank, made.size, made.global_ranks, made.name)
        group._register_backend(torch.device(device), kind, other)
    group._set_default_backend(types.GLOO)
    return group


def serve(group: Any, backend: Any) -> None:
    """Registers this backend for all devices of a process group without backends."""
    kind = dist.ProcessGroup.BackendType.CUSTOM
    for device in ("cpu", "cuda"):
        group._register_backend(torch.device(device), kind, backend)
    group._set_default_backend(kind)


def make_group(made: Settings) -> Any:
    """Creates a process group that torch's registry of names does not contain."""
    if isinstance(backend := make(made), dist.ProcessGroup):
        return backend
    group = dist.ProcessGroup(made.store, made.rank, made.size)
    serve(group, backend)
    return group


def ours(group: Any) -> list[Any]:
    """Returns CommsIR's C++ backends of a group, without wrappers."""
    used = dist.distributed_c10d._get_default_group() if group is None else group
    backends = (used._get_backend(torch.device(device)) for device in used._device_types)
    # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps backends.
    found = {id(b): b for b in (getattr(b, "wrapped_pg", b) for b in backends)}
    return [backend for backend in found.values() if backend.name() == "commsir"]


def group_of(process_group: Any, device: torch.device) -> Any:
    """Returns CommsIR's group (capi.Group) below a process group on a device, or None for other backends.

    The process group owns it. The first call is collective.
    """
    from commsir.torch import capi

    if device.type not in (one.type for one in process_group._device_types):
        return None
    found = process_group._get_backend(device)
    found = getattr(found, "wrapped_pg", found)
    if found.name() != "commsir" or _loaded is None:
        return None
    handle, ordinal = _loaded.group(found, device), -1 if device.type == "cpu" else device.index
    return capi.Group.borrowed(handle, process_group.rank(), process_group.size(), device=ordinal)


def calls_of(group: Any) -> list[dict[str, Any]] | None:
    """Returns a group's last calls, oldest first, in the form that flight.py uses; None for other backends."""
    if not hasattr(group, "_device_types"):
        return None
    found = ours(group)
    return [dict(call) for backend in found for call in _loaded.recent(backend)] if found else None


def recent_calls(group: Any = None) -> list[tuple[int, str, str]]:
    """Returns the last calls of a group: (number, name, "queued" | "begun" | "done" | "failed"), oldest first.

    Sends and receives are numbered separately. TORCH_FR_BUFFER_SIZE sets how many calls are kept, by default 2000.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    return [(call["sequence"], call["what"], call["state"]) for call in calls_of(used) or []]


def end() -> None:
    """Ends the threads of all groups at exit, while Python still works, so that they drop their Python objects.

    A thread that drops a tensor or takes the GIL after that would crash the process. Calls in progress get a few
    seconds before they are aborted.
    """
    if _loaded is not None:
        _loaded.end()


def timeout_of(group: Any, device: str) -> timedelta | None:
    """Returns the timeout of a process group's calls, or None if its backend does not report it."""
    for backend in ours(group):
        return _loaded.timeout(backend)  # type: ignore[no-any-return]
    used = group._get_backend(torch.device(device)) if hasattr(group, "_get_backend") else group
    return getattr(getattr(used, "options", None), "_timeout", None)


def default_timeout_of(group: Any, device: str) -> float:
    """Returns the default timeout in seconds for objects of a process group: at most the timeout of its calls."""
    limit = timeout_of(group, device)
    return _PATIENCE if limit is None else min(_PATIENCE, limit.total_seconds())


def abort(group: Any = None, reason: str = "it was aborted") -> None:
    """Ends all waits of this rank in `group`, a process group (None: the default one), including those of ops and
    windows.

    Later calls of the group fail; their text has `reason`. Any thread may call it.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    for name in ("commsir.torch.ops", "commsir.torch.windows"):
        if module := sys.modules.get(name):
            module.abort(used, reason)
    for backend in ours(used):
        _loaded.abort(backend, reason)
