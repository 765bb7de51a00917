"""Makes process groups: finds or builds the C++ backend, or takes the one in Python."""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import dynamo, extension
from commsir.torch._release import BACKEND as _NAME
from commsir.torch._release import folders as _folders
from commsir.torch._release import paths_of
from commsir.torch.rendezvous import STORE_ERRORS, Meeting, Met

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
    "recent_calls",
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
#: Of all groups: making a connection is rare.
_making = threading.Lock()


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
    """What a process group is made from."""

    store: Any
    rank: int
    size: int
    timeout: timedelta
    name: str
    global_ranks: list[int] = field(default_factory=list)
    _own: Any = field(default=None, init=False, repr=False)
    #: All ranks have made the process group.
    met: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if not library():
            _warn_without_library()

    def own_store(self) -> Any:
        """`store` on a connection of its own, which a group's thread may block while the program uses the other."""
        with _making:
            if self._own is None:
                self._own = self.connect()
        return self._own

    def connect(self) -> Any:
        """The store on a new connection: who waits in one keeps all of it waiting."""
        try:
            return self.store.clone()
        except STORE_ERRORS as error:
            raise dist.DistStoreError(
                f"commsir: process group {self.name} gets no connection of its own to the store: {error}"
            ) from error

    def meet(
        self,
        prefix: str,
        timeout: timedelta,
        stopped: Callable[[], bool],
        says: str = "",
        complain: Callable[[list[int]], str] | None = None,
        members: Sequence[int] = (),
    ) -> Met:
        """Collective: all ranks, or `members`, meet below `prefix` and read what each one says."""
        store = dist.PrefixStore(prefix, self.own_store())
        rank, size = (members.index(self.rank), len(members)) if members else (self.rank, self.size)
        return Meeting(store, rank, size, timeout, stopped, complain).hold(says)

    def global_rank(self, member: int) -> int:
        """A member's number in the world."""
        return self.global_ranks[member] if self.global_ranks else member


def settings(options: Any) -> Settings:
    """The options that torch hands to the maker of a backend."""
    return Settings(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        list(options.global_ranks_in_group),
    )


def library() -> str:
    """Path of libcommsir.so; empty: it is not there, and every call is delegated."""
    for folder in _folders():
        if (folder / "libcommsir.so").is_file():
            return str(folder / "libcommsir.so")
    return ""


@functools.cache
def _tell_nccl_the_rank(rank: int) -> None:
    """torch's NCCL takes the first rank that a process has in a group of it for its rank in the world, guesses GPUs by
    that, and names files; but this may be its rank in a pair. (It also takes the first group for the one whose flight
    recorder hears of other ranks' dumps: in such a process there is none that does.)"""
    first = dist.ProcessGroupNCCL(dist.HashStore(), rank, rank + 1, dist.ProcessGroupNCCL.Options())
    first.shutdown()


def delegate(timeout: timedelta) -> Callable[[Any, str, int, int, Sequence[int], str], Any]:
    """Makes the backend that takes what CommsIR does not compile, for a group or for a pair of its ranks."""

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
            _tell_nccl_the_rank(global_ranks[rank])
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        options.global_ranks_in_group = list(global_ranks)
        options.group_name = name
        return dist.ProcessGroupNCCL(store, rank, size, options)

    return make


def prebuilt() -> dict[str, list[str]]:
    """Minors of torch that backends are prebuilt for, each with its Pythons."""
    found: dict[tuple[int, int], set[int]] = {}
    for folder in _folders():
        for path in folder.glob(f"{_NAME}.torch-*.so"):
            name = re.fullmatch(r".*\.torch-(\d+)\.(\d+)\.cpython-3(\d+)-.*", path.name)
            if name:
                found.setdefault((int(name[1]), int(name[2])), set()).add(int(name[3]))
    return {
        f"{major}.{minor}": [f"3.{python}" for python in sorted(found[major, minor])] for major, minor in sorted(found)
    }


def _prebuilt() -> Any:
    """The backend that was built for this torch and Python; None: there is none, or it does not fit after all."""
    for path in paths_of(torch.__version__, _folders()):
        try:
            return extension.load(_NAME, path)
        except ImportError as error:
            # A torch that others have built may lack what PyPI's has.
            warnings.warn(f"commsir: {path} does not fit torch {torch.__version__}: {error}", stacklevel=2)
    return None


def _nothing_fits() -> str:
    """What is at hand instead of a backend for this torch and Python."""
    have = ", ".join(f"{minor} (Python {', '.join(pythons)})" for minor, pythons in prebuilt().items())
    return (
        f"commsir: no C++ backend for torch {torch.__version__} and Python "
        f"{sys.version_info.major}.{sys.version_info.minor} is there"
        + (f"; prebuilt are those for releases of torch {have}" if have else "")
    )


def _built() -> Any:
    """The backend, compiled for this torch and Python; raises what kept it from being compiled."""
    return _EXTENSION.build()


def loaded_module() -> Any:
    """The extension, if one was loaded."""
    return _loaded


def module_at_hand() -> Any:
    """The extension, where it does not have to be built first; else None."""
    global _loaded, _searched
    if not _searched and os.environ.get("COMMSIR_TORCH_BACKEND", "") in ("", "cpp"):
        _loaded = _prebuilt()
        _searched = _loaded is not None
    return _loaded


def load_module() -> Any:
    """The extension; None: the backend in Python is used.

    COMMSIR_TORCH_BACKEND says which: "cpp" (prebuilt, else built), "build" (built, even where a prebuilt one fits),
    "python"; the default is "cpp" where it can be had.
    """
    global _loaded, _searched, _missing
    wanted = os.environ.get("COMMSIR_TORCH_BACKEND", "")
    if wanted not in ("", "cpp", "build", "python"):
        raise ValueError(f'COMMSIR_TORCH_BACKEND is "{wanted}"; say cpp, build or python')
    if wanted == "python":
        return None
    if not _searched:
        _loaded = _prebuilt() if wanted != "build" else None
        if _loaded is None:
            try:
                _loaded = _built()
            except (RuntimeError, ImportError, OSError) as error:
                _missing = f"{_nothing_fits()}; it could not be built: {error}"
        _searched = True
        if _missing and not wanted:
            warnings.warn(f"{_missing}. The backend in Python is used, which does the same but is slower", stacklevel=2)
    if _loaded is None and wanted:
        raise RuntimeError(_missing)
    return _loaded


def create(options: Any, backend_options: Any) -> Any:
    """What torch calls for init_process_group and new_group."""
    return make(settings(options))


def make(made: Settings) -> Any:
    """A process group's backend."""
    from commsir.torch import lazy_views

    lazy_views.install()
    module = load_module()
    if module is None:
        from commsir.torch.process_group import ProcessGroup

        return ProcessGroup(made)
    return module.create(
        made.store, made.rank, made.size, made.timeout, made.name, made.global_ranks, library(), delegate(made.timeout)
    )


def ours(group: Any) -> list[Any]:
    """The backends of a group that are CommsIR's in C++, without wrappers."""
    used = dist.distributed_c10d._get_default_group() if group is None else group
    backends = (used._get_backend(torch.device(device)) for device in used._device_types)
    # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps backends.
    found = {id(b): b for b in (getattr(b, "wrapped_pg", b) for b in backends)}
    return [backend for backend in found.values() if backend.name() == "commsir"]


def group_of(process_group: Any, device: torch.device) -> Any:
    """CommsIR's group (capi.Group) below a process group on a device; None: its backend there is another.

    It stays the process group's. Collective when it is new.
    """
    from commsir.torch import capi

    if device.type not in (one.type for one in process_group._device_types):
        return None
    found = process_group._get_backend(device)
    found = getattr(found, "wrapped_pg", found)
    if hasattr(found, "group_on"):
        return found.group_on(device.type)
    if found.name() != "commsir" or _loaded is None:
        return None
    handle, ordinal = _loaded.group(found, device), -1 if device.type == "cpu" else device.index
    return capi.Group.borrowed(library(), handle, process_group.rank(), process_group.size(), device=ordinal)


def calls_of(group: Any) -> list[dict[str, Any]] | None:
    """The last calls of a group, as flight.py has them, the oldest first; None: the group is another backend's."""
    if hasattr(group, "recent_calls"):
        return list(group.recent_calls())
    if not hasattr(group, "_device_types"):
        return None
    found = ours(group)
    return [dict(call) for backend in found for call in _loaded.recent(backend)] if found else None


def recent_calls(group: Any = None) -> list[tuple[int, str, str]]:
    """The last calls of a group: (number, what, "queued" | "begun" | "done" | "failed"), the oldest first.

    Sends and receives are counted for themselves. TORCH_FR_BUFFER_SIZE says how many are kept; the default is 2000.
    """
    used = dist.distributed_c10d._get_default_group() if group is None else group
    return [(call["sequence"], call["what"], call["state"]) for call in calls_of(used) or []]


def end() -> None:
    """At the program's end, while Python is still whole: threads of groups end, and drop what they hold of Python's.

    A thread that drops a tensor, or takes the interpreter's lock, after that takes the process down with it. Calls that
    are under way get a few seconds, and are aborted then.
    """
    running = sys.modules.get("commsir.torch.running")
    try:
        if _loaded is not None:
            _loaded.end()
    finally:
        if running is not None:
            running.end_all()


def timeout_of(group: Any, device: str) -> timedelta | None:
    """How long calls of a process group wait for peers; None: its backend does not tell."""
    if hasattr(group, "settings"):
        return group.settings.timeout  # type: ignore[no-any-return]
    for backend in ours(group):
        return _loaded.timeout(backend)  # type: ignore[no-any-return]
    used = group._get_backend(torch.device(device)) if hasattr(group, "_get_backend") else group
    return getattr(getattr(used, "options", None), "_timeout", None)


def patience_of(group: Any, device: str) -> float:
    """Seconds that what is made beside a process group waits for peers where its caller does not say: never longer than
    the process group's calls."""
    limit = timeout_of(group, device)
    return _PATIENCE if limit is None else min(_PATIENCE, limit.total_seconds())


def abort(group: Any = None, reason: str = "it was aborted") -> None:
    """Ends all waits of this rank in a group, which cannot be used afterwards; those of ops and of windows, too."""
    used = dist.distributed_c10d._get_default_group() if group is None else group
    for name in ("commsir.torch.ops", "commsir.torch.windows"):
        if module := sys.modules.get(name):
            module.abort(used, reason)
    if hasattr(used, "abort_because"):
        used.abort_because(reason)
        return
    for backend in ours(used):
        _loaded.abort(backend, reason)
