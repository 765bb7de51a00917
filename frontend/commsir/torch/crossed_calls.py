"""Finds ranks that wait for each other in different calls: one in a kernel, one in the process group's own collective.

On the CPU, each collective of a compiled graph is a step of the ops' group (FusedOps.cpp), so ranks whose graphs differ
notice it. A rank that leaves compiled code altogether, as at Dynamo's recompile limit, runs the process group's
collective alone, and the others would wait in their kernel until the timeout.

A thread of each rank looks at its state. If a call blocks for a while, the rank writes into the process group's store
what it waits in. Two such states are proof: if a rank has begun collective n of the process group without the kernel,
and another is in the kernel without collective n, then they make their calls in different orders.
"""

from __future__ import annotations

import json
import linecache
import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist

from commsir.torch.destroy_hooks import when_gone
from commsir.torch.rendezvous import store_of

__all__ = ["watch"]

_log = logging.getLogger("commsir.compile")
_DIST: Any = dist
#: Seconds between two looks, and those that a call blocks before the rank says so.
_EVERY, _PATIENCE = 1.0, 5.0
#: Files of torch, those of its collectives, and the one that calls operations.
_TORCH = torch.__file__.removesuffix("__init__.py")
_COLLECTIVES, _OPERATIONS = f"{_TORCH}distributed/", f"{_TORCH}_ops.py"


@dataclass(frozen=True)
class _State:
    """What a rank waits in. `steps`: kernels that have ended; `number`: of the process group's last collective."""

    in_kernel: bool
    steps: int
    number: int
    text: str

    def crosses(self, other: _State) -> bool:
        """Whether this rank is in a kernel that the other has passed without."""
        is_passed = self.in_kernel and not other.in_kernel and other.number > self.number
        return is_passed and self.steps == other.steps


_watches: dict[str, _Watch] = {}


def watch(process_group: Any, steps: Callable[[], int], abort: Callable[[str], None]) -> None:
    """Begins to watch a process group. `steps` counts the kernels that have ended on this rank; `abort` ends this
    rank's waits, with a reason."""
    name = str(process_group.group_name)
    if name not in _watches:
        _watches[name] = _Watch(process_group, steps, abort)


class _Watch:
    """Watches one process group in a thread of its own."""

    def __init__(self, process_group: Any, steps: Callable[[], int], abort: Callable[[str], None]) -> None:
        self._name = str(process_group.group_name)
        self._rank, self._ranks = int(process_group.rank()), int(process_group.size())
        self._backend = process_group._get_backend(torch.device("cpu"))
        self._store = _DIST.PrefixStore("commsir/ops/crossed", store_of(process_group))
        self._steps, self._abort = steps, abort
        self._seen: tuple[_State | None, float] = (None, 0.0)
        self._said: _State | None = None
        self.ended = threading.Event()
        threading.Thread(target=self._run, name="commsir-crossed-calls", daemon=True).start()

    def _run(self) -> None:
        try:
            while not self.ended.wait(_EVERY):
                if self._is_found():
                    return
        except Exception as error:  # The store is gone with the process that holds it: nobody waits any more.
            _log.info("rank %d: ranks are not watched any more: %s", self._rank, error)

    def _is_found(self) -> bool:
        state, now = self._state(), time.monotonic()
        if state != self._seen[0]:
            self._seen = (state, now)
        blocked = state if now - self._seen[1] >= _PATIENCE else None
        if blocked != self._said:
            self._store.set(str(self._rank), json.dumps(vars(blocked)) if blocked else "")
            self._said = blocked
        reason = self._reason(blocked) if blocked else ""
        if reason:
            warnings.warn(reason, stacklevel=2)
            self._abort(reason)
        return bool(reason)

    def _state(self) -> _State | None:
        """What this rank waits in, if it waits in either kind of call."""
        try:
            number, steps = int(self._backend._get_sequence_number_for_group()), self._steps()
        except Exception:  # A backend that does not count.
            return None
        frames = sys._current_frames().values()
        for frame in frames:
            if called := _kernel(frame, self._name):
                return _State(True, steps, number, f"runs {called}{_place(frame)}")
        for frame in frames:
            if _waits(frame):
                text = f"runs collective {number} of the process group without it{_place(frame)}"
                return _State(False, steps, number, text)
        return None

    def _reason(self, own: _State) -> str:
        """Why ranks wait for each other; empty if they are not known to."""
        for rank in range(self._ranks):
            if rank == self._rank or not self._store.check([str(rank)]):
                continue
            text = self._store.get(str(rank)).decode()
            other = _State(**json.loads(text)) if text else None
            if other and own.crosses(other):
                return self._said_of(self._rank, own, rank, other)
            if other and other.crosses(own):
                return self._said_of(rank, other, self._rank, own)
        return ""

    def _said_of(self, first: int, kernel: _State, second: int, passed: _State) -> str:
        return (
            f"commsir: ranks make different calls in process group {self._name}: rank {first} {kernel.text}, but rank "
            f"{second} {passed.text}. All ranks had agreed on that kernel, but rank {second} does not run the compiled "
            "code any more, as after a recompile limit, set_stance or an error of the compiler: run this function "
            "compiled on all ranks, or uncompiled on all"
        )


def _operation(frame: FrameType) -> str:
    """The operation of torch that a thread is in, as "commsir.fused_collective"; empty: none. It has no frame of its
    own: this is the frame that calls it."""
    called = frame.f_locals.get("self") if frame.f_code.co_filename == _OPERATIONS else None
    return str(called) if isinstance(called, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)) else ""


def _kernel(frame: FrameType, group: str) -> str:
    """The call of this package on a process group that a thread is in; empty: none."""
    operation = _operation(frame)
    given = frame.f_locals.get("args", ())
    if not operation.startswith("commsir.") or not any(isinstance(one, str) and one == group for one in given):
        return ""
    shapes = [list(one.shape) for one in given if isinstance(one, torch.Tensor)]
    is_fused = operation.startswith("commsir.fused_collective")
    what = f"the kernel of an {given[0]}" if is_fused else operation
    return f"{what} of {shapes[0]}" if shapes else what


def _waits(frame: FrameType) -> bool:
    """Whether a thread is in a collective of torch.distributed, or waits for one."""
    file = frame.f_code.co_filename
    is_call = _operation(frame).startswith(("_c10d_functional.", "c10d.")) or file.startswith(_COLLECTIVES)
    return is_call or ".wait()" in linecache.getline(file, frame.f_lineno)


def _place(frame: FrameType | None) -> str:
    """The line of the program that a thread is in, apart from torch, this package and generated code."""
    while frame and str(frame.f_globals.get("__name__", "")).startswith(("torch.", "commsir.torch.")):
        frame = frame.f_back
    return f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _forget(name: str | None) -> None:
    for known in [known for known in _watches if name in (None, known)]:
        _watches.pop(known).ended.set()


when_gone(_forget)
