"""What a program holds of a call of the process group in Python."""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import dynamo

dist: Any = torch.distributed

__all__ = ["Work", "has_ended"]


#: Seconds that who waits for a call waits longer than the call.
_GRACE = 5.0


@dynamo.opaque
class Work(dist.Work):  # type: ignore[misc]
    """Done when its call is; sends and receives are waited for by who waits."""

    def __init__(
        self, tensors: list[torch.Tensor], timeout: timedelta, what: str, abort: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._tensors, self._timeout, self._what, self._abort = tensors, timeout, what, abort
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._future: Any = torch.futures.Future()
        self._inner: list[Any] = []
        #: Those that somebody has waited for, and that Gloo would wait for another message of.
        self._waited: set[int] = set()
        self._after: list[Callable[[], Any]] = []
        #: Held while those run: nobody else finds none and goes on.
        self._copying = threading.Lock()
        #: Where the call ends in its stream; None on the CPU.
        self.end: Any = None
        #: Who waits for it waits until then, and not only in the stream.
        self.host_waits = False
        self.on_gpu = any(tensor.is_cuda for tensor in tensors)
        #: Raises what kernels have reported by now.
        self.poll: Callable[[], None] = lambda: None

    def complete(self, error: BaseException | None = None) -> None:
        """The group has carried out the call, or begun it (sends and receives)."""
        self._error = error
        self._done.set()
        if error is None:
            self._future.set_result(self._tensors)
        else:
            self._future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))

    def begun(self, inner: Any, after: Sequence[Callable[[], Any]]) -> None:
        """A send or receive that goes on by itself (None: as part of another), and what follows it."""
        if inner is not None:
            self._inner.append(inner)
        self._after.extend(after)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:  # noqa: B008 (torch's own signature)
        """Raises what the call has raised, or that its time is over."""
        try:
            return self._wait(timeout)
        except KeyboardInterrupt:
            self._abort("it was interrupted while it waited")
            raise

    def _wait(self, timeout: timedelta) -> bool:
        given = bool(timeout) and timeout.total_seconds() > 0
        limit = timeout if given else self._timeout
        # The call's own wait knows who is late, and has as long.
        if not self._done.wait(limit.total_seconds() + (0 if given else _GRACE)):
            ms = round(limit.total_seconds() * 1000)
            what = f"commsir: Timed out waiting {ms}ms for {self._what}: another rank has not called it"
            self._abort(what)
            raise dist.DistBackendError(what)
        if self._error is not None:
            raise self._error
        # The group's thread marks it next: who has waited finds it done.
        self._future.wait()
        for work in self._inner:
            if id(work) not in self._waited:
                _wait_apart(work, timeout)
                if not self.on_gpu:
                    self._waited.add(id(work))
        self._copy_back()
        # As NCCL has it: who names a time waits here, and not only in the stream. In a capture there is that alone.
        if (given or self.host_waits) and self.end is not None and not torch.cuda.is_current_stream_capturing():
            self._wait_for_end(limit)
            # A kernel that gave up has ended, too.
            self.poll()
        return True

    def _copy_back(self) -> None:
        """Copies what was received to where it belongs, once, when that is there for the current stream."""
        with self._copying:
            if not self._after:
                return
            for copy in self._after:
                copy()
            if self.on_gpu:
                self.end = torch.cuda.Event()  # type: ignore[no-untyped-call, unused-ignore]
                self.end.record()
            # Last: who asks meanwhile is not told that all is there.
            self._after.clear()

    def _wait_for_end(self, limit: timedelta) -> None:
        deadline = time.monotonic() + limit.total_seconds()
        while not has_ended(self.end):
            if time.monotonic() > deadline:
                ms = round(limit.total_seconds() * 1000)
                what = (
                    f"commsir: Timed out waiting {ms}ms for {self._what}: it is still running on the GPU; another rank "
                    "may not have called it"
                )
                self._abort(what)
                raise dist.DistBackendError(what)
            time.sleep(1e-4)

    def synchronize(self) -> None:
        """The tensors are on the CPU, or the call has been put into the current stream."""

    def block_current_stream(self) -> None:
        """What follows in the stream comes after the call; on the CPU, what follows here."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether it is over, also where it has failed; on a GPU, once what it put into its stream is."""
        if not self._future.done():
            return False
        if self.on_gpu and torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"commsir: {self._what}: nothing is completed while a graph is captured; wait() for it, which is "
                "recorded, too"
            )
        if self.end is not None and not has_ended(self.end):
            return False
        if not all(work.is_completed() for work in self._inner):
            return False
        # What has failed is over, and has nothing to copy. NCCL's work does not tell.
        if self._after and (self.on_gpu or self.is_success()):
            self._copy_back()
            return self.end is None or has_ended(self.end)
        return True

    def is_success(self) -> bool:
        """Whether it is over and has not failed."""
        return self._done.is_set() and self._error is None and all(work.is_success() for work in self._inner)

    def exception(self) -> BaseException | None:
        """What the call has raised."""
        return self._error

    def result(self) -> list[torch.Tensor]:
        """The tensors of the call."""
        return self._tensors

    def source_rank(self) -> int:
        """Whom a receive from any rank has heard."""
        return int(self._inner[0].source_rank())

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Done with the tensors when the call is."""
        return self._future


@functools.cache
def _exchange_capture_mode() -> Any:
    """None: this torch's GPUs are not NVIDIA's."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode
    except OSError:
        return None


def has_ended(event: Any) -> bool:
    """Whether the stream has come to the event. To ask would end the capture of another thread, were this one not
    told to be none of its business."""
    exchange = _exchange_capture_mode()
    if exchange is None:
        return bool(event.query())
    mode = ctypes.c_int(2)  # CU_STREAM_CAPTURE_MODE_RELAXED
    exchange(ctypes.byref(mode))
    try:
        return bool(event.query())
    finally:
        exchange(ctypes.byref(mode))


def _wait_apart(work: Any, timeout: timedelta) -> None:
    """Waits for work of another backend, which knows nothing of Ctrl-C: on another thread, where that may come."""

    def wait() -> None:
        try:
            work.wait(timeout) if timeout else work.wait()
        except BaseException as error:
            failed.append(error)

    failed: list[BaseException] = []
    if isinstance(work, Work) or threading.current_thread() is not threading.main_thread():
        wait()
    else:
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join()
    if failed:
        raise failed[0]
