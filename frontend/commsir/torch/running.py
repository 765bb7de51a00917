"""How the process group in Python runs calls: one begins after the other, on a thread of the group or in a stream."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import backend, call_counts, capi, dynamo, flight, forms, transfers
from commsir.torch.call import Call
from commsir.torch.messages import Messages
from commsir.torch.side import Side
from commsir.torch.work import Work, has_ended

dist: Any = torch.distributed

__all__ = ["Running", "end_all"]

#: Seconds for calls under way at the end of a program, and once they are aborted.
_LAST_CALLS, _LAST_WAITS = 5.0, 2.0


@dynamo.opaque
class Running(dist.ProcessGroup):  # type: ignore[misc]
    """Takes calls that were taken apart."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        forms.take_all(cls)
        dynamo.opaque(cls)

    def __init__(self, settings: backend.Settings) -> None:
        super().__init__(settings.rank, settings.size)
        self.settings = settings
        self._sides: dict[str, Side] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._coalesced: list[Call] | None = None
        self._recent: deque[flight.Record] = deque(maxlen=flight.limit())
        self._number = self._transfer_number = 0
        self._messages, self._transfers = Messages(settings), transfers.Transfers()
        #: `device`: of the call that this thread carries out.
        self._carried = threading.local()
        #: Why the group can no longer be used; empty: it can.
        self._ended = ""
        self._process = os.getpid()
        _living.add(self)

    def _side(self, device: str) -> Side:
        with self._lock:
            if device not in self._sides:
                self._sides[device] = Side(self.settings, device, lambda: self._ended)
            return self._sides[device]

    @property
    def group(self) -> capi.Group:
        """CommsIR's group, for kernels of the caller's own; made at first use, collectively.

        In what `submit` runs it is the group of where the call's tensors are, elsewhere that for CPU tensors.
        """
        return self.group_on(getattr(self._carried, "device", "cpu"))

    def group_on(self, device: str) -> capi.Group:
        """The same for "cpu" or "cuda"."""
        found = self._side(device).group(self.settings.timeout)
        if isinstance(found, str):
            raise RuntimeError(f"commsir: no group: {found}")
        return found

    # A call.

    def _check_usable(self, name: str) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"commsir: {name}: process group {self.settings.name} was made before this process was forked; "
                "start workers with the spawn method, or call init_process_group in the child"
            )
        if self._ended:
            raise RuntimeError(
                f"commsir: {name}: process group {self.settings.name} can no longer be used: {self._ended}. "
                "Call destroy_process_group and init_process_group again"
            )

    def submit(
        self,
        name: str,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        run: Callable[[], None],
        opts: Any = None,
    ) -> Work:
        """A call that is `run`, in its turn, on the group's thread: for collectives of a subclass."""
        call = Call(name, self.settings.size, opts)
        call.inputs, call.outputs, call.run = list(inputs), list(outputs), run
        return self._submit(call)

    def _submit(self, call: Call) -> Work:
        self._check_usable(call.name)
        if not call.has_memory():
            return self._without_memory(call)
        device = call.device()
        if device == "cuda":
            self._side(device).check_gpu(call.name, [*call.inputs, *call.outputs, *call.kept][0].get_device())
        if call.sends:
            self._transfer_number += 1
            call.number = self._transfer_number
        else:
            self._number += 1
            call.number = self._number
        call.timeout = call.timeout or self.settings.timeout
        call.record = call.recorded()
        self._recent.append(call.record)
        work = Work(list(call.outputs or call.inputs), call.timeout, call.name, self.abort_because)
        work.on_gpu, work.host_waits = call.on_gpu(), call.host_waits
        work.poll = self._poll
        call.work = work
        if self._coalesced is not None:
            self._coalesced.append(call)
            return work
        if device == "cuda":
            # Calls go into the current stream: order is the stream's.
            self._carry_out(call, device)
        else:
            self._enqueue(lambda: self._carry_out(call, device))
        return work

    def _without_memory(self, call: Call) -> Work:
        work = Work(list(call.outputs or call.inputs), self.settings.timeout, call.name, self.abort_because)
        work.complete()
        return work

    def _enqueue(self, job: Callable[[], None]) -> None:
        if threading.current_thread() is self._thread:
            # A callback of a future asks for it, and may wait: the thread is here. It comes before what has been put
            # in meanwhile, which may be something else on another rank.
            return job()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work_off, daemon=True)
                self._thread.start()
        self._jobs.put(job)

    def _work_off(self) -> None:
        while job := self._jobs.get():
            job()
            # Its tensors do not wait here for the next one.
            del job

    def _carry_out(self, call: Call, device: str) -> None:
        assert call.work and call.record
        failed: BaseException | None = None
        try:
            if device == "cuda":
                self._side(device).poll()
            with torch._C._AutoDispatchBelowADInplaceOrView():
                self._run(call, device)
            if call.on_gpu() and not torch.cuda.is_current_stream_capturing():
                call.work.end = torch.cuda.current_stream(self._side(device).gpu()).record_event()
            call.record.mark("done")
        except BaseException as error:
            call.record.mark("failed")
            if self._side(device).failed:
                self.abort_because("its ranks have not met")
            if self._side(device).ended:
                self.abort_because(self._side(device).ended)
            failed = error
            if device == "cuda" and isinstance(error, KeyboardInterrupt):
                self.abort_because("it was interrupted in a call")
                call.work.complete(error)
                raise
        if device == "cpu":
            # Before anybody hears that it is over, and may end the program.
            call.drop()
        call.work.complete(failed)

    def _run(self, call: Call, device: str) -> None:
        assert call.timeout
        reason = call.reason
        if call.begins:
            reason = self._messages.why_not(call.root, call.timeout)
        elif not reason and call.steps and self.settings.size > 1:
            reason = self._side(device).why_not(call, call.timeout)
        path = "commsir" if not reason else "gloo" if device == "cpu" else "nccl"
        call_counts.count(self.settings.name, call.name, path, reason)
        assert call.record
        call.record.mark("begun")
        for copy in call.before:
            copy()
        if not reason and call.begins:
            assert call.work
            call.work.begun(call.begins(), call.after)
        elif not reason:
            self._run_own(call, device)
        else:
            self._run_delegated(call, device, reason)
        if not call.sends:
            for copy in call.after:
                copy()

    def _run_own(self, call: Call, device: str) -> None:
        if call.run:
            before = getattr(self._carried, "device", "cpu")
            self._carried.device = device
            try:
                call.run()
            finally:
                self._carried.device = before
            return
        for copy in call.pack:
            copy()
        for step in call.steps:
            self._launch(call, step, device)
        for copy in call.unpack:
            copy()

    def _launch(self, call: Call, step: capi.Collective, device: str) -> None:
        if step.input_elements or step.output_elements:
            self._side(device).launch(call, step, call.timeout or self.settings.timeout)

    def _run_delegated(self, call: Call, device: str, reason: str) -> None:
        side = self._side(device)
        timeout = call.timeout or self.settings.timeout
        if not call.delegated:
            raise RuntimeError(f"commsir: {call.name} is not CommsIR's ({reason}), and no other backend has it")
        of_two = call.sends and device == "cuda"
        work = call.delegated(side.pair_with(call.root, timeout) if of_two else side.delegate(timeout))
        if call.sends:
            assert call.work
            call.work.begun(work, call.after)
        elif work:
            work.wait()

    def _poll(self) -> None:
        """Raises what launches on the GPU have reported since; the group is over then."""
        side = self._side("cuda")
        try:
            side.poll()
        except BaseException:
            if side.ended:
                self.abort_because(side.ended)
            raise

    def _begin_after_gpu(self, call: Call) -> None:
        """As NCCL's barrier has it: what the current stream of the group's GPU has been given by now is done before
        the call begins."""
        side = self._sides.get("cuda")
        if side is None or torch.cuda.is_current_stream_capturing():
            return
        end = torch.cuda.current_stream(side.gpu()).record_event()

        def wait() -> None:
            assert call.timeout
            deadline = time.monotonic() + call.timeout.total_seconds()
            while not has_ended(end) and not self._ended:
                if time.monotonic() > deadline:
                    raise dist.DistBackendError(
                        f"commsir: Timed out waiting {round(call.timeout.total_seconds() * 1000)}ms for {call.name}: "
                        "its GPU still runs what was queued before it"
                    )
                time.sleep(1e-4)

        def wait_or_end() -> None:
            try:
                wait()
            except BaseException as error:
                # Its peers are in the call: no other may be taken for it.
                self.abort_because(str(error))
                raise

        call.before.append(wait_or_end)

    # Batches.

    def _start_coalescing(self, device: torch.device) -> None:
        self._check_usable("start_coalescing")
        self._coalesced = []

    def _end_coalescing(self, device: torch.device) -> Work:
        calls, self._coalesced = self._coalesced or [], None
        every = Work([t for c in calls for t in c.outputs], self.settings.timeout, "coalesced", self.abort_because)
        where = calls[0].device() if calls else "cpu"
        every.on_gpu, every.poll = any(call.on_gpu() for call in calls), self._poll
        for call in calls:
            if call.device() != where:
                raise RuntimeError(
                    f"commsir: coalesced calls on {where} and {call.device()}; coalesce the calls of one device"
                )

        def carry_out() -> None:
            failed: BaseException | None = None
            try:
                self._carry_out_batch(calls, where, every)
            except BaseException as error:
                failed = error
            every.complete(failed)

        if where == "cuda":
            carry_out()
        else:
            self._enqueue(carry_out)
        return every

    def _together(self, tensors: Sequence[torch.Tensor], works: Sequence[Any]) -> Work:
        """Calls that were issued one after the other, as one."""
        every = Work(list(tensors), self.settings.timeout, "coalesced", self.abort_because)
        every.on_gpu, every.poll = any(tensor.is_cuda for tensor in tensors), self._poll
        for work in works:
            every.begun(work, ())
        if every.on_gpu:
            every.complete()
        else:
            self._enqueue(every.complete)
        return every

    def _carry_out_batch(self, calls: list[Call], device: str, every: Work) -> None:
        """Calls between two marks; on GPUs, sends and receives begin together."""
        if device == "cuda" and calls[0].sends:
            return self._carry_out_pairs(calls, every)
        for call in calls:
            self._carry_out(call, device)
            assert call.work
            every.begun(call.work, ())
        return None

    def _carry_out_pairs(self, calls: list[Call], every: Work) -> None:
        """None of them waits for another: pairs of ranks begin theirs together, in an order of pairs that all ranks
        keep, so that no two wait for each other crosswise. A batch of one, too: its peer may have a batch of several.
        """
        by_pair: dict[tuple[int, int], list[Call]] = {}
        for call in calls:
            low, high = sorted((self.settings.rank, call.root))
            by_pair.setdefault((low, high), []).append(call)
        for _, parts in sorted(by_pair.items()):
            pair = self._side("cuda").pair_with(parts[0].root, parts[0].timeout or self.settings.timeout)
            pair._start_coalescing()
            try:
                for part in parts:
                    self._carry_out(part, "cuda")
            finally:
                every.begun(pair._end_coalescing(), ())
            # Theirs come after that: what they received is copied when it is there.
            for part in parts:
                every.begun(part.work, ())

    # Waiting.

    def _drain(self) -> None:
        if self._thread is not None:
            done = threading.Event()
            self._jobs.put(done.set)
            done.wait()

    def _wait_for_pending_works(self) -> None:
        self._drain()

    # Reports.

    def get_error(self) -> Any:
        """Whether the group can still be used."""
        kinds = torch._C._distributed_c10d.ErrorType
        return kinds.COMM_ERROR if self._ended else kinds.SUCCESS

    def recent_calls(self) -> list[dict[str, Any]]:
        """The last calls, as flight.py has them, the oldest first."""
        return [record.as_dict() for record in list(self._recent)]

    def group_counts(self) -> dict[str, Any]:
        """What the groups of CommsIR have counted, by kind of device."""
        made = {device: side.counts() for device, side in list(self._sides.items())}
        return {device: found for device, found in made.items() if found is not None}

    # The end.

    def set_timeout(self, timeout: timedelta) -> None:
        """Of calls to come."""
        if timeout.total_seconds() <= 0:
            raise RuntimeError(f"commsir: process group {self.settings.name}: the timeout must be more than 0")
        self.settings.timeout = timeout
        for side in list(self._sides.values()):
            side.set_timeout(timeout)

    _set_default_timeout = set_timeout

    def abort_because(self, reason: str) -> None:
        """Ends all waits of this rank."""
        self._ended = self._ended or reason
        self._messages.abort(reason)
        for side in list(self._sides.values()):
            side.abort(reason)

    def abort(self) -> None:
        """Ends all waits of this rank."""
        self.abort_because("it was aborted")

    def shutdown(self) -> None:
        """After the calls that are under way."""
        if os.getpid() != self._process:
            return
        self._stop()
        if self._ended:
            return
        self._ended = "it was destroyed"
        self._messages.leave(_LAST_CALLS)
        for side in self._sides.values():
            side.shut_down()

    def _stop(self, seconds: float | None = None) -> bool:
        """Ends the thread after its jobs; False: it is still at them."""
        if self._thread is None:
            return True
        self._jobs.put(None)
        self._thread.join(seconds)
        if self._thread.is_alive():
            return False
        self._thread = None
        return True

    def _end(self, seconds: float) -> None:
        """At the program's end."""
        if os.getpid() != self._process:
            return
        deadline = time.monotonic() + seconds
        aborted = bool(self._ended)
        if not self._stop(seconds):
            aborted = True
            self.abort_because("its program has ended before its calls")
            # Where that ends no wait, the thread is left to the process's end.
            if not self._stop(_LAST_WAITS):
                return
        self._messages.leave(max(0.0, deadline - time.monotonic()))
        for side in self._sides.values():
            side.drop_gloo(leave=aborted)


_living: weakref.WeakSet[Running] = weakref.WeakSet()


def end_all() -> None:
    """At the program's end: no thread of a group may be in Python, or hold a tensor of its, after that."""
    deadline = time.monotonic() + _LAST_CALLS
    interrupted: KeyboardInterrupt | None = None
    for group in list(_living):
        try:
            group._end(max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt as error:
            interrupted, deadline = error, 0.0
            group._end(0.0)
    transfers.end_all()
    if interrupted:
        raise interrupted
