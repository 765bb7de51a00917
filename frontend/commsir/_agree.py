"""Runs work on one rank and shares its result, or its error, with all ranks."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import sys
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

from commsir import errors
from commsir.group import Group

__all__ = ["Ranks", "once", "ranks_of"]

T = TypeVar("T")

#: Longer than anything that is measured. A rank that dies ends the others' wait at once.
_LONG = 7 * 24 * 3600.0


class Ranks(NamedTuple):
    """The processes that share one result."""

    ranks: int
    #: Where their kernels run: "cpu" or "cuda".
    target: str
    #: Makes a group on their CPUs, of a name that says what for: all ranks call it.
    beside: Callable[[str], Group]


def ranks_of(group: Any) -> Ranks | None:
    """Returns the ranks that `group` refers to, or None for this process alone.

    `group` is a commsir.Group or a process group of torch.distributed. None selects torch's default group, if there is
    one. False selects this process alone.
    """
    if group is False:
        return None
    if isinstance(group, Group):
        return Ranks(group.ranks, "cpu" if group.device == "cpu" else "cuda", group._make_cpu_group)
    dist = getattr(sys.modules.get("torch"), "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        if group is not None:
            _refuse(group)
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
            raise errors.UsageError(
                f"this is one of {os.environ['WORLD_SIZE']} processes, which do not know each other yet: call "
                "torch.distributed.init_process_group first, pass group=commsir.Group(…), or, for this process alone, "
                "group=False"
            )
        return None
    used = dist.distributed_c10d._get_default_group() if group is None else group
    if not hasattr(used, "get_group_store"):
        _refuse(group)
    target = (
        "cuda" if "cuda" in str(dist.get_backend_config(used)) and sys.modules["torch"].cuda.is_available() else "cpu"
    )
    return Ranks(used.size(), target, lambda what: _torch_ranks(dist, used, what))


def _refuse(group: Any) -> NoReturn:
    raise errors.UsageError(f"group is a {type(group).__name__}, not a commsir.Group or one of torch.distributed")


def _torch_ranks(dist: Any, used: Any, what: str) -> Group:
    """Returns the ranks of a torch process group; they meet in the group's store."""
    number = _counts[what, used.group_name] = _counts.get((what, used.group_name), 0) + 1
    name = f"{used.group_name}-{what}-{number}"
    store = dist.PrefixStore(f"commsir/{name}", used.get_group_store().clone())
    return Group(used.rank(), used.size(), store=store, name=name)


_counts: dict[tuple[str, str], int] = {}


def once(ranks: Ranks | None, what: str, work: Callable[[], T]) -> T:
    """Runs `work` on rank 0 and returns its result on all ranks.

    The other ranks sleep until then. An error of rank 0 is raised on all ranks.
    """
    if ranks is None or ranks.ranks == 1:
        return work()
    with ranks.beside(what) as group:
        news = group.window(1, np.int64, signals=1)
        if group.rank != 0:
            return cast("T", _receive_outcome(group, news))
        try:
            result = work()
        except Exception as error:
            _send_outcome(group, news, _pickled(error))
            raise
        _send_outcome(group, news, pickle.dumps((True, result)))
        return result


def _pickled(error: Exception) -> bytes:
    try:
        data = pickle.dumps((False, error))
        _unpickled(data)  # As others will.
        return data
    except Exception:  # It may hold anything.
        return pickle.dumps((False, RuntimeError(f"rank 0: {type(error).__name__}: {error}")))


#: Modules whose results `once` passes on: they add themselves.
_passed: list[types.ModuleType] = []


def passes(module: str) -> None:
    """Allows `once` to share the exceptions and dataclasses of this module."""
    _passed.append(sys.modules[module])


class _Results(pickle.Unpickler):
    """Unpickler for the results that `once` shares. It loads no code, because another rank's memory could hold any."""

    def find_class(self, module: str, name: str) -> Any:
        for known in (errors, builtins, *_passed):
            found = getattr(known, name, None)
            if isinstance(found, type) and found.__module__ == module == known.__name__ and _is_result(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def _is_result(kind: type) -> bool:
    return issubclass(kind, Exception) or is_dataclass(kind)


def _unpickled(data: bytes) -> tuple[bool, Any]:
    try:
        fine, result = _Results(io.BytesIO(data)).load()
        if fine or isinstance(result, Exception):
            return bool(fine), result
        what = type(result).__name__
    except Exception as error:  # As pickle has it.
        what = str(error)
    raise errors.DisagreementError(f"rank 0 has sent an invalid result: {what}")


def _send_outcome(group: Group, news: Any, data: bytes) -> None:
    for peer in range(1, group.ranks):
        news.signal(peer, len(data))
    text = group.window(len(data), np.uint8, signals=1)
    for peer in range(1, group.ranks):
        text.put_signal(np.frombuffer(data, np.uint8).copy(), peer)
    text.release()  # Lets ranks meet: nobody goes while another still reads.


def _receive_outcome(group: Group, news: Any) -> Any:
    news.wait(source=0, timeout=_LONG)
    text = group.window(int(news.read_signal()), np.uint8, signals=1)
    text.wait(source=0)
    fine, result = _unpickled(text.array.tobytes())
    text.release()
    if not fine:
        raise result
    return result
