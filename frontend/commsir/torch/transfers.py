"""Sends and receives of the process group in Python on the CPU: runtime/torch/c10d/Transfers.h, on the same keys.

Gloo ends the process where a message is longer than what receives it, and takes one that is shorter. So each has a tag
of its size and type: what does not fit does not meet. Sides that wait long for each other say in the store what they
send and receive, and both fail where that is not the same.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch.rendezvous import STORE_ERRORS

dist: Any = torch.distributed

__all__ = ["Transfer", "Transfers"]

#: Seconds that a side waits before it tells, and after which it looks again.
_PATIENCE, _PERIOD = 1.0, 0.5
#: Seconds that a look that is under way may take at the program's end.
_LAST_LOOK = 2.0


@dataclass(frozen=True)
class Transfer:
    """One side; `peer` -1: of any rank."""

    sends: bool
    rank: int
    peer: int
    tag: int
    what: str

    @classmethod
    def of(cls, sends: bool, rank: int, peer: int, tag: int, tensor: torch.Tensor) -> Transfer:
        if tag < 0:
            raise ValueError(f"commsir: Tag must be nonnegative, not {tag}")
        return cls(sends, rank, peer, tag, f"{tensor.numel()} x {str(tensor.dtype).removeprefix('torch.')}")

    def fitting(self) -> int:
        """The tag that Gloo gets: FNV-1a, in 31 bits."""
        made = 0xCBF29CE484222325
        for letter in f"{self.tag} {self.what}".encode():
            made = (made ^ letter) * 0x100000001B3 % (1 << 64)
        return (made ^ made >> 32) & 0x7FFFFFFF


class TransferWork:
    """Gloo's Work, which fails where the other side's is another."""

    def __init__(self, transfer: Transfer, number: int, work: Any, store: Any, fail: Callable[[str], None]) -> None:
        self._transfer, self._number, self._work, self._store, self._fail = transfer, number, work, store, fail
        self._lock = threading.Lock()
        self._waited = self._told = False
        #: Why it will never be; empty: it may.
        self._why = ""
        self.begun = time.monotonic()
        _watcher.add(self)

    def _key(self, sends: bool) -> str:
        one = self._transfer
        source, target = (one.rank, one.peer) if one.sends else (one.peer, one.rank)
        return f"{source}-{target}/{one.tag}/{self._number}/{'sends' if sends else 'receives'}"

    def look(self) -> None:
        """Says what this side does, and fails if the other one does something else."""
        one = self._transfer
        with self._lock:
            if not self._told:
                self._store.set(self._key(one.sends), one.what)
                self._told = True
            other = self._key(not one.sends)
            if not self._waited or not self._store.check([other]):
                return
            theirs = self._store.get(other).decode(errors="replace")
            if theirs == one.what:
                return
            here, there = (one.rank, one.what), (one.peer, theirs)
            (source, sent), (target, received) = (here, there) if one.sends else (there, here)
            self._why = (
                f"commsir: rank {source} sends {sent} to rank {target}, which receives {received} (tag {one.tag}, "
                f"message {self._number} between them). Send and receive tensors of one type and size"
            )

    def wait(self, *timeout: timedelta) -> bool:
        """Gloo's wait cannot be ended: where it never ends by itself, its thread is left to it."""
        self._waited = True
        over, failed = threading.Event(), list[BaseException]()

        def wait() -> None:
            try:
                self._work.wait(*timeout)
            except BaseException as error:
                failed.append(error)
            over.set()

        threading.Thread(target=wait, daemon=True).start()
        while not over.wait(_PERIOD) and not self._why:
            pass
        _watcher.remove(self)
        with self._lock:
            if self._why:
                self._fail(self._why)
                raise dist.DistBackendError(self._why)
            if failed:
                raise failed[0]
            if self._told:
                # What was said is of no use any more.
                with contextlib.suppress(*STORE_ERRORS):
                    self._store.delete_key(self._key(self._transfer.sends))
        return True

    def is_completed(self) -> bool:
        return bool(self._work.is_completed())

    def is_success(self) -> bool:
        return bool(self._work.is_success())

    def source_rank(self) -> int:
        return int(self._work.source_rank())


class _Watcher:
    """A thread that looks for all groups, while there is something to look at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Work that nobody holds any more is waited for by nobody.
        self._opened: weakref.WeakSet[TransferWork] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def add(self, one: TransferWork) -> None:
        with self._lock:
            self._opened.add(one)
            if self._thread is None:
                self._over.clear()
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def remove(self, one: TransferWork) -> None:
        with self._lock:
            self._opened.discard(one)

    def end(self) -> None:
        """At the program's end: no thread may be in Python after that."""
        with self._lock:
            self._opened.clear()
            thread = self._thread
        self._over.set()
        if thread is not None:
            thread.join(_LAST_LOOK)
        if thread is not None and thread.is_alive():
            # It is left to the process's end: a store whose server is gone may answer after minutes.
            warnings.warn(
                "commsir: the store of a process group does not answer at the program's end, where sends or receives "
                "were under way that nobody has waited for",
                stacklevel=2,
            )

    def _run(self) -> None:
        while not self._over.wait(_PERIOD):
            with self._lock:
                if not self._opened:
                    self._thread = None
                    return
                late = [one for one in self._opened if time.monotonic() - one.begun >= _PATIENCE]
            for one in late:
                # A store that does not answer says nothing of the transfer.
                with contextlib.suppress(*STORE_ERRORS):
                    one.look()
        with self._lock:
            self._thread = None


_watcher = _Watcher()


def _begin_anew() -> None:
    """In a child of fork() there is no such thread."""
    global _watcher
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_begin_anew)


def end_all() -> None:
    """At the program's end."""
    _watcher.end()


class Transfers:
    """The transfers of a process group."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: How many there were with a peer and a tag: the n-th that is sent is the n-th that is received.
        self._counts: dict[tuple[bool, int, int], int] = {}
        #: Tags by which any rank's were received, which are not counted.
        self._from_any: set[int] = set()

    def watch(self, transfer: Transfer, begun: Any, store: Any, fail: Callable[[str], None]) -> Any:
        """The Work of a transfer that has begun, in issue order; `fail` is called with the reason where the other
        side's is another."""
        with self._lock:
            if transfer.peer < 0:
                self._from_any.add(transfer.tag)
            if begun is None or (not transfer.sends and transfer.tag in self._from_any):
                return begun
            key = (transfer.sends, transfer.peer, transfer.tag)
            number = self._counts.get(key, 0)
            self._counts[key] = number + 1
        return TransferWork(transfer, number, begun, store, fail)
