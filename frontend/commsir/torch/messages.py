"""Sends and receives of the process group in Python on the CPU, by CommsIR: runtime/torch/c10d/Messages.h.

Between ranks of one host; others are Gloo's (transfers.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import backend, capi, dynamo
from commsir.torch.transfers import Transfer

dist: Any = torch.distributed

__all__ = ["Messages"]


#: What threads that ask a store which does not answer still use.
_lost: list[Any] = []


class _Message(ctypes.Structure):
    """commsir_message."""

    _fields_ = [
        ("peer", ctypes.c_int64),
        ("tag", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("what", ctypes.c_char_p),
    ]


def _load(path: str) -> ctypes.CDLL:
    library = capi.load(path)
    for name in ("destroy", "confirm"):
        getattr(library, f"commsir_p2p_{name}").argtypes = [ctypes.c_void_p]
    library.commsir_p2p_leave.argtypes = [ctypes.c_void_p, ctypes.c_double]
    library.commsir_p2p_abort.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.commsir_p2p_reaches.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p]
    library.commsir_transfer_free.restype = None
    library.commsir_transfer_wait.argtypes = [ctypes.c_void_p, ctypes.c_double]
    library.commsir_transfer_source.restype = ctypes.c_int64
    for name in ("is_over", "source", "free"):
        getattr(library, f"commsir_transfer_{name}").argtypes = [ctypes.c_void_p]
    return library


@dynamo.opaque
class MessageWork:
    """A send or a receive that has begun."""

    def __init__(
        self,
        owner: Messages,
        transfer: ctypes.c_void_p,
        tensor: torch.Tensor,
        timeout: timedelta,
        fail: Callable[[str], None],
    ) -> None:
        self._owner, self._transfer, self._tensor, self._timeout, self._fail = owner, transfer, tensor, timeout, fail

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:  # noqa: B008 (torch's own signature)
        limit = timeout if timeout and timeout.total_seconds() > 0 else self._timeout
        self._owner.confirm()
        try:
            self._owner.check(
                self._owner.library.commsir_transfer_wait(self._transfer, ctypes.c_double(limit.total_seconds()))
            )
        except capi.CommsIRError as error:
            why = f"commsir: {error}"
            if error.status == capi.DISAGREE:
                self._fail(why)
            raise dist.DistBackendError(why) from None
        return True

    def is_completed(self) -> bool:
        return bool(self._owner.library.commsir_transfer_is_over(self._transfer))

    def is_success(self) -> bool:
        return self.is_completed() and not self._owner.library.commsir_transfer_wait(self._transfer, ctypes.c_double(0))

    def source_rank(self) -> int:
        return int(self._owner.library.commsir_transfer_source(self._transfer))

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._owner.keep(self._transfer, self._tensor)


@dynamo.opaque
class Messages:
    """What a process group has for them. Tells the other ranks that this one is there, without waiting for any."""

    def __init__(self, settings: backend.Settings) -> None:
        self._settings, self._process, self._lock = settings, os.getpid(), threading.Lock()
        self._handle = ctypes.c_void_p()
        #: Why there are none.
        self._missing = ""
        #: Of peers: why not.
        self._known: dict[int, str] = {}
        #: Under way, though nobody holds their Work.
        self._left: deque[tuple[ctypes.c_void_p, torch.Tensor]] = deque()
        self._callbacks = capi.Callbacks(settings.store)
        path = backend.library()
        if settings.size == 1:
            self._missing = "the group has one rank"
        elif not path:
            self._missing = "libcommsir.so was not found"
            # No host is called so: all others are told.
            self._callbacks.put(f"commsir/{settings.name}/sends/here/{settings.rank}", b"0 none")
        else:
            self._create(path)

    def _create(self, path: str) -> None:
        self.library = _load(path)
        face = self._callbacks.as_store()
        try:
            self.check(
                self.library.commsir_p2p_create(
                    self._settings.name.encode(),
                    ctypes.c_int64(self._settings.rank),
                    ctypes.c_int64(self._settings.size),
                    ctypes.byref(face),
                    ctypes.byref(self._handle),
                )
            )
        except capi.CommsIRError as error:
            if interrupt := self._callbacks.interrupt():
                raise interrupt from None
            self._missing = str(error)
        # From the first transfer on the store is asked on a connection of its own.
        self._callbacks.store = None

    def check(self, status: int) -> None:
        """Raises what the last call of this thread says."""
        if status:
            raise capi.CommsIRError((self.library.commsir_error_message() or b"no message").decode(), status)

    def why_not(self, peer: int, timeout: timedelta) -> str:
        """Why a transfer with `peer` (-1: any rank) cannot be CommsIR's, on both sides; empty: it can. Waits until the
        peer has made its process group."""
        if not self._handle:
            return self._missing
        with self._lock:
            if peer in self._known:
                return self._known[peer]
            if self._callbacks.store is None:
                self._callbacks.store = self._settings.connect()
        reached = ctypes.c_int()
        try:
            self.check(
                self.library.commsir_p2p_reaches(self._handle, peer, timeout.total_seconds(), ctypes.byref(reached))
            )
        except capi.CommsIRError as error:
            if interrupt := self._callbacks.interrupt():
                raise interrupt from None
            milliseconds = round(timeout.total_seconds() * 1000)
            late = f"Timed out waiting {milliseconds}ms for " if error.status == capi.DEADLOCK else ""
            said = f" (the store: {self._callbacks.raised})" if self._callbacks.raised else ""
            raise dist.DistBackendError(f"commsir: {late}the other side of a transfer: {error}{said}") from None
        return self._known.setdefault(peer, "" if reached.value else "ranks do not share memory")

    def begin(
        self, side: Transfer, tensor: torch.Tensor, timeout: timedelta, fail: Callable[[str], None]
    ) -> MessageWork:
        """`fail` is called with the reason where the other side's is another."""
        message = _Message(side.peer, side.tag, tensor.data_ptr(), tensor.nbytes, side.what.encode())
        transfer = ctypes.c_void_p()
        begun = self.library.commsir_p2p_send if side.sends else self.library.commsir_p2p_receive
        try:
            self.check(begun(self._handle, ctypes.byref(message), ctypes.byref(transfer)))
        except capi.CommsIRError as error:
            raise dist.DistBackendError(f"commsir: {error}") from None
        return MessageWork(self, transfer, tensor, timeout, fail)

    def keep(self, transfer: ctypes.c_void_p, tensor: torch.Tensor) -> None:
        """Nobody holds the Work any more. The tensor stays until the transfer is over."""
        if os.getpid() != self._process:
            return
        # A finaliser may come in the middle of another, or of another thread's.
        self._left.append((transfer, tensor))
        for _ in range(len(self._left)):
            with contextlib.suppress(IndexError):
                one = self._left.popleft()
                if self.library.commsir_transfer_is_over(one[0]):
                    self.library.commsir_transfer_free(one[0])
                else:
                    self._left.append(one)

    def confirm(self) -> None:
        """Tells the library, once all ranks have met, that those that are gone are this group's."""
        if self._handle and self._settings.met:
            self.library.commsir_p2p_confirm(self._handle)

    def abort(self, reason: str) -> None:
        """Ends all transfers. Any thread."""
        if self._handle:
            self.library.commsir_p2p_abort(self._handle, reason.encode())

    def leave(self, seconds: float) -> None:
        """The end, after which nothing is under way any more. Sends have so long to get to where their receivers find
        them."""
        if not self._handle or os.getpid() != self._process:
            return
        self.confirm()
        if self.library.commsir_p2p_leave(self._handle, seconds):
            warnings.warn(
                f"commsir: the store of process group {self._settings.name} does not answer at the program's end, "
                "where sends or receives were under way that nobody has waited for",
                stacklevel=2,
            )

    def __del__(self) -> None:
        if not getattr(self, "_handle", None) or os.getpid() != self._process or sys.is_finalizing():
            return
        # In garbage that refers to itself, their Work may go later than this.
        if self.library.commsir_p2p_destroy(self._handle):
            # Whoever asks is in it until the process ends.
            _lost.append((self._callbacks, self._left))
            return
        while self._left:
            self.library.commsir_transfer_free(self._left.popleft()[0])
