"""The process group in Python: what the C++ backend does, where that cannot be had, and a class to subclass.

A subclass overrides one collective and keeps the rest:

    class Mine(commsir.torch.ProcessGroup):
        def allreduce(self, tensors, opts):
            return self.submit("all_reduce", tensors, tensors, run=lambda: my_all_reduce(self.group, tensors[0]))

    commsir.torch.register_backend("mine", Mine)
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import backend, capi, counts, flight
from commsir.torch.meeting import Meeting, Met

dist: Any = torch.distributed

__all__ = ["ProcessGroup", "Work"]

Tensors = list[torch.Tensor]
_R = dist.ReduceOp
#: Of numbers, and of booleans.
_REDUCTIONS = {
    _R.SUM.value: ("sum", "or"),
    _R.AVG.value: ("avg", ""),
    _R.PRODUCT.value: ("prod", "and"),
    _R.MIN.value: ("min", "and"),
    _R.MAX.value: ("max", "or"),
    _R.BAND.value: ("and", "and"),
    _R.BOR.value: ("or", "or"),
    _R.BXOR.value: ("xor", "xor"),
    _R.PREMUL_SUM.value: ("sum", "or"),
}
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
#: How long a rank that has failed waits for what the others were calling.
_GOSSIP = timedelta(seconds=3)


class Work(dist.Work):  # type: ignore[misc]
    """What a program holds: done when its call is; sends and receives are waited for by who waits."""

    def __init__(self, tensors: Tensors, timeout: timedelta, what: str, abort: Callable[[str], None]) -> None:
        super().__init__()
        self._tensors, self._timeout, self._what, self._abort = tensors, timeout, what, abort
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._future: Any = torch.futures.Future()
        self._inner: list[Any] = []
        self._after: list[Callable[[], None]] = []

    def complete(self, error: BaseException | None = None) -> None:
        """The group has carried out the call, or begun it (sends and receives)."""
        self._error = error
        self._done.set()
        if error is None:
            self._future.set_result(self._tensors)
        else:
            self._future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))

    def begun(self, inner: Any, after: Sequence[Callable[[], None]]) -> None:
        """A send or receive that goes on by itself."""
        self._inner.append(inner)
        self._after.extend(after)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:  # noqa: B008 (torch's own signature)
        try:
            return self._wait(timeout)
        except KeyboardInterrupt:
            self._abort("it was interrupted while it waited")
            raise

    def _wait(self, timeout: timedelta) -> bool:
        limit = timeout if timeout and timeout.total_seconds() > 0 else self._timeout
        if not self._done.wait(limit.total_seconds()):
            ms = round(limit.total_seconds() * 1000)
            what = f"commsir: Timed out waiting {ms}ms for {self._what}: another rank has not called it"
            self._abort(what)
            raise dist.DistBackendError(what)
        if self._error is not None:
            raise self._error
        for work in self._inner:
            _wait_apart(work, timeout)
        while self._after:
            self._after.pop(0)()
        return True

    def synchronize(self) -> None:
        """The tensors are on the CPU, or the call has been put into the current stream."""

    def is_completed(self) -> bool:
        return self._done.is_set() and all(work.is_completed() for work in self._inner)

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Tensors:
        return self._tensors

    def source_rank(self) -> int:
        return int(self._inner[0].source_rank())

    _source_rank = source_rank

    def get_future(self) -> Any:
        return self._future


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


class _Call:
    """One call taken apart: copies around the flat collectives of CommsIR."""

    def __init__(self, name: str, opts: Any = None) -> None:
        self.name, self.reduction, self.root = name, "", -1
        self.inputs: Tensors = []
        self.outputs: Tensors = []
        self.kept: Tensors = []
        self.before: list[Callable[[], Any]] = []
        self.after: list[Callable[[], Any]] = []
        self.pack: list[Callable[[], Any]] = []
        self.unpack: list[Callable[[], Any]] = []
        self.steps: list[capi.Collective] = []
        self.run: Callable[[], None] | None = None
        self.delegated: Callable[[Any], Any] | None = None
        self.reason = ""
        self.sends = False
        self.async_op = getattr(opts, "asyncOp", True)
        given = getattr(opts, "timeout", None)
        self.timeout = given if given and given.total_seconds() > 0 else None
        self.number = 0
        self.work: Work | None = None
        self.record: flight.Record | None = None

    def dense(self, tensor: torch.Tensor, read: bool, write: bool) -> torch.Tensor:
        if tensor.layout != torch.strided:
            raise ValueError(f"commsir: {self.name} takes dense tensors; call .to_dense() first")
        if tensor.is_contiguous():
            return tensor
        stand = torch.empty_like(tensor, memory_format=torch.contiguous_format)
        if read:
            self.before.append(lambda: stand.copy_(tensor))
        if write:
            self.after.append(lambda: tensor.copy_(stand))
        return stand

    def input(self, tensor: torch.Tensor) -> torch.Tensor:
        self.inputs.append(self.dense(tensor, True, False))
        return self.inputs[-1]

    def output(self, tensor: torch.Tensor) -> torch.Tensor:
        self.outputs.append(self.dense(tensor, False, True))
        return self.outputs[-1]

    def both(self, tensor: torch.Tensor) -> torch.Tensor:
        self.inputs.append(self.dense(tensor, True, True))
        self.outputs.append(self.inputs[-1])
        return self.inputs[-1]

    def scratch(self, elements: int, like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        self.kept.append(torch.empty(elements, dtype=dtype or like.dtype, device=like.device))
        return self.kept[-1]

    def packed(self, tensors: Tensors, each: int) -> torch.Tensor:
        flat = self.scratch(each * len(tensors), tensors[0])

        def copy() -> None:
            for i, tensor in enumerate(tensors):
                flat.narrow(0, i * each, tensor.numel()).view(tensor.shape).copy_(tensor)

        self.pack.append(copy)
        return flat

    def unpacked(self, tensors: Tensors, each: int) -> torch.Tensor:
        flat = self.scratch(each * len(tensors), tensors[0])

        def copy() -> None:
            for i, tensor in enumerate(tensors):
                tensor.copy_(flat.narrow(0, i * each, tensor.numel()).view(tensor.shape))

        self.unpack.append(copy)
        return flat

    def _step(self, op: str, reduction: str, element: str, root: int, arrays: Sequence[tuple[int, int]]) -> None:
        (a, n), (b, m) = arrays
        self.steps.append(
            capi.Collective(
                op.encode(), reduction.encode(), element.encode(), root, 0, a or None, n, b or None, m, b"", b""
            )
        )

    def copy_step(self, op: str, source: torch.Tensor | None, target: torch.Tensor | None, root: int = 0) -> None:
        known = source if source is not None else target
        assert known is not None
        width = min(known.element_size(), 8)
        arrays = [(t.data_ptr(), t.nbytes // width) if t is not None else (0, 0) for t in (source, target)]
        self._step(op, "", f"i{8 * width}", root, arrays)

    def reduce_step(
        self, op: str, how: Any, source: torch.Tensor, target: torch.Tensor | None, ranks: int, root: int = 0
    ) -> None:
        kind = how.op if hasattr(how, "op") else how
        self._check_reduction(kind, source.dtype)
        if source.is_complex():
            source = torch.view_as_real(source)
            target = torch.view_as_real(target) if target is not None else None
        dtype, self.reduction = source.dtype, _REDUCTIONS[kind.value][source.dtype == torch.bool]
        result = target
        if kind in (_R.MIN, _R.MAX) and dtype in _UNSIGNED:
            turned, plain = torch.empty_like(source), source
            self.kept.append(turned)
            self.pack.append(lambda: _turn_top_bit(turned, plain))
            if result is not None:
                self.unpack.insert(0, lambda: _turn_top_bit(result, result))
            source = turned
        if kind == _R.PREMUL_SUM:
            scaled, plain = torch.empty_like(source), source
            self.kept.append(scaled)
            factor = how.__getstate__()[1]
            self.pack.append(lambda: torch.mul(plain, factor, out=scaled))
            source = scaled
        if kind == _R.AVG and not dtype.is_floating_point:
            self.reduction = "sum"
            if result is not None:
                self.unpack.insert(0, lambda: result.div_(ranks, rounding_mode="trunc"))
        element = capi.element_type(dtype)
        if not element:
            self.reason = f"element type {dtype}"
        arrays = [(t.data_ptr(), t.numel()) if t is not None else (0, 0) for t in (source, target)]
        self._step(op, self.reduction, element, root, arrays)

    def _check_reduction(self, kind: Any, dtype: torch.dtype) -> None:
        if kind in (_R.BAND, _R.BOR, _R.BXOR) and (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(
                f"commsir: Cannot use a bitwise ReduceOp with {dtype} in {self.name}; use an integer tensor"
            )
        if dtype.is_complex and kind not in (_R.SUM, _R.AVG, _R.PREMUL_SUM):
            raise RuntimeError(
                f"commsir: {self.name} does not support this ReduceOp on complex tensors; use SUM, AVG or PREMUL_SUM"
            )
        if dtype == torch.bool and kind == _R.AVG:
            raise RuntimeError(f"commsir: {self.name}: Cannot use ReduceOp.AVG with Boolean inputs; use a number")

    def recorded(self) -> flight.Record:
        return flight.Record(
            self.name,
            self.reduction,
            self.root,
            self.sends,
            self.number,
            [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in self.inputs],
            [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in self.outputs],
            round(self.timeout.total_seconds() * 1000) if self.timeout else 0,
        )

    def describe(self) -> str:
        return self.recorded().describe()


def _turn_top_bit(target: torch.Tensor, source: torch.Tensor) -> None:
    signed = _SIGNED[source.element_size()]
    torch.bitwise_xor(source.view(signed), torch.iinfo(signed).min, out=target.view(signed))


def _words(tensor: torch.Tensor) -> int:
    return (tensor.nbytes + 7) // 8


def _single(name: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"commsir: {name} takes one tensor, got {len(tensors)}; call it once for each tensor")
    return tensors[0]


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """Calls of one group begin in issue order, on a thread of their own."""

    #: torch asks these of a group's backend, which this is itself.
    supports_splitting = False
    supports_shrinking = True
    supports_coalescing = True
    supports_time_estimate = False

    def __init__(self, settings: backend.Settings) -> None:
        super().__init__(settings.rank, settings.size)
        self.settings = settings
        self._delegate = backend.delegate(settings.timeout)
        self._others: dict[str, Any] = {}
        self._groups: dict[str, capi.Group | str] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._coalesced: list[_Call] | None = None
        self._store: Any = None
        self._recent: deque[flight.Record] = deque(maxlen=flight.limit())
        self._number = self._transfers = 0
        self._epochs: dict[str, str] = {}
        self._without_library: dict[str, str] = {}
        self._ended = ""
        self._process = os.getpid()

    # What torch asks of a group.

    def getBackendName(self) -> str:  # noqa: N802 (torch's own name)
        return "commsir"

    def name(self) -> str:
        return "commsir"

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])

    @property
    def group_name(self) -> str:
        return str(dist.distributed_c10d._world.pg_names.get(self, self.settings.name))

    @property
    def group_desc(self) -> str:
        return getattr(self, "_description", "undefined")

    def _set_group_name(self, name: str) -> None:
        self.settings.name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def _get_backend(self, device: torch.device) -> ProcessGroup:
        return self

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    def set_timeout(self, timeout: timedelta) -> None:
        """Of calls to come."""
        if timeout.total_seconds() <= 0:
            raise ValueError(f"commsir: process group {self.settings.name}: the timeout must be more than 0")
        self.settings.timeout = timeout
        for other in self._others.values():
            other.set_timeout(timeout)

    _set_default_timeout = set_timeout

    # How calls are run.

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

    def _check_tensors(self, call: _Call) -> str:
        devices = {tensor.device for tensor in call.inputs + call.outputs}
        if len(devices) > 1:
            names = " and ".join(sorted(map(str, devices)))
            raise RuntimeError(f"commsir: {call.name} got tensors on {names}; move them to one device")
        device = devices.pop() if devices else torch.device("cpu")
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError(f"commsir: {call.name} got a tensor on {device}; move it to the CPU or a CUDA device")
        return device.type

    def submit(
        self,
        name: str,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        run: Callable[[], None],
        opts: Any = None,
    ) -> Work:
        """A call that is `run`, in its turn, on the group's thread: for collectives of a subclass."""
        call = _Call(name, opts)
        call.inputs, call.outputs, call.run = list(inputs), list(outputs), run
        return self._submit(call)

    def _submit(self, call: _Call) -> Work:
        self._check_usable(call.name)
        device = self._check_tensors(call)
        if call.sends:
            self._transfers += 1
            call.number = self._transfers
        else:
            self._number += 1
            call.number = self._number
        call.timeout = call.timeout or self.settings.timeout
        call.record = call.recorded()
        self._recent.append(call.record)
        work = Work(call.outputs or call.inputs, call.timeout, call.name, self.abort_because)
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

    def _enqueue(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work_off, daemon=True)
                self._thread.start()
        self._jobs.put(job)

    def _work_off(self) -> None:
        while job := self._jobs.get():
            job()

    def _carry_out(self, call: _Call, device: str) -> None:
        assert call.work
        assert call.record
        try:
            with torch._C._AutoDispatchBelowADInplaceOrView():
                self._run(call, device)
            call.record.mark("done")
            call.work.complete()
        except BaseException as error:
            call.record.mark("failed")
            call.work.complete(error)

    def _run(self, call: _Call, device: str) -> None:
        assert call.work and call.record
        reason = call.reason or (self._why_not(call, device) if self.settings.size > 1 and not call.run else "")
        path = "commsir" if not reason else "gloo" if device == "cpu" else "nccl"
        counts.count(self.settings.name, call.name, path, reason)
        call.record.mark("begun")
        for copy in call.before:
            copy()
        if not reason:
            self._run_own(call, device)
        elif not call.delegated:
            raise RuntimeError(f"commsir: {call.name} is not CommsIR's ({reason}), and no other backend has it")
        elif work := call.delegated(self._other(device, call.timeout)):
            if call.sends:
                call.work.begun(work, call.after)
                return
            work.wait()
        for copy in call.after:
            copy()

    def _run_own(self, call: _Call, device: str) -> None:
        if call.run:
            call.run()
            return
        for copy in call.pack:
            copy()
        for step in call.steps:
            self._launch(call, step, device)
        for copy in call.unpack:
            copy()

    def _launch(self, call: _Call, step: capi.Collective, device: str) -> None:
        if not step.input_elements and not step.output_elements:
            return
        if self.settings.size == 1:
            _copy(step, device)
            return
        group = self._groups[device]
        assert isinstance(group, capi.Group)
        stream = torch.cuda.current_stream().cuda_stream if device == "cuda" else 0
        group.set_timeout(call.timeout or self.settings.timeout)
        try:
            group.collective(step, stream)
        except capi.CommsIRError as error:
            text = f"commsir: rank {self.settings.rank}: {call.describe()} failed: {error}"
            if error.status in (capi.DEADLOCK, capi.DISAGREE):
                text += self._disagreement(call)
            raise dist.DistBackendError(text) from None

    # The group of CommsIR, and the other backend.

    @property
    def group(self) -> capi.Group:
        """CommsIR's group for CPU tensors, for kernels of the caller's own; made at first use, collectively."""
        found = self._group("cpu")
        if isinstance(found, str):
            raise RuntimeError(f"commsir: no group: {found}")
        return found

    def _own_store(self) -> Any:
        # On a connection of its own, which the group's thread may block while the program uses the other.
        with self._lock:
            if self._store is None:
                self._store = self.settings.store.clone()
        return self._store

    def _place(self, device: str, what: str) -> Any:
        """A place in the store where nothing of earlier groups is."""
        return dist.PrefixStore(f"commsir/{device}/{self._epochs[device]}/{what}", self._own_store())

    def _hold_meeting(
        self, prefix: str, timeout: timedelta, says: str = "", complain: Callable[[list[int]], str] | None = None
    ) -> Met:
        store = dist.PrefixStore(prefix, self._own_store())
        settings = self.settings
        return Meeting(store, settings.rank, settings.size, timeout, lambda: bool(self._ended), complain).hold(says)

    def _meet(self, device: str, timeout: timedelta | None) -> None:
        """Ranks agree on an epoch, and on whether all have the library."""
        if device in self._epochs:
            return
        limit = timeout or self.settings.timeout
        says = "" if backend.library() else "libcommsir.so was not found"
        met = self._hold_meeting(f"commsir/{device}/meeting", limit, says)
        if not met.epoch:
            late = "" if met.stopped else f"Timed out waiting {round(limit.total_seconds() * 1000)}ms for "
            self.abort_because("its ranks have not met")
            raise dist.DistBackendError(
                f"commsir: rank {self.settings.rank}: {late}the first meeting of process group {self.settings.name}: "
                f"{met.failure}"
            )
        self._epochs[device] = met.epoch
        lacking = next(((rank, why) for rank, why in enumerate(met.said) if why), None)
        self._without_library[device] = f"{lacking[1]} (rank {lacking[0]})" if lacking else ""

    def _group(self, device: str, timeout: timedelta | None = None) -> capi.Group | str:
        with self._lock:
            if device not in self._groups:
                self._groups[device] = self._make_group(device, timeout or self.settings.timeout)
            return self._groups[device]

    def _make_group(self, device: str, timeout: timedelta) -> capi.Group | str:
        self._meet(device, timeout)
        if why := self._without_library[device]:
            return why
        made: capi.Group | None = None
        try:
            made = capi.Group(
                backend.library(),
                self._place(device, "group"),
                self.settings.rank,
                self.settings.size,
                name=f"{self.settings.name}.{device}",
                timeout=timeout,
                device=-1 if device == "cpu" else torch.cuda.current_device(),
            )
        except capi.CommsIRError as error:
            why = f"no group: {error}"
        why = self._agree(device, why, timeout)
        if why and made:
            made.destroy()
        return why or made or ""

    def _agree(self, device: str, why: str, timeout: timedelta) -> str:
        """The first rank's reason, if any has one: all take the same path."""
        store = self._place(device, "agree")
        store.set(f"{self.settings.rank}", f"no {why}" if why else "yes")
        for rank in range(self.settings.size):
            store.wait([f"{rank}"], timeout)
            said = store.get(f"{rank}").decode()
            if said != "yes":
                return f"{said[3:]} (rank {rank})"
        return ""

    def _why_not(self, call: _Call, device: str) -> str:
        group = self._group(device, call.timeout)
        if isinstance(group, str):
            return group
        for step in call.steps:
            if why := group.why_not(step):
                return why
        return ""

    def _disagreement(self, call: _Call) -> str:
        own, lines = call.describe(), []
        try:
            store = self._place("cpu", "failed")
            store.set(f"{call.number}/{self.settings.rank}", own)
            for rank in range(self.settings.size):
                theirs = own
                if rank != self.settings.rank:
                    try:
                        store.wait([f"{call.number}/{rank}"], _GOSSIP)
                        theirs = store.get(f"{call.number}/{rank}").decode()
                    except (dist.DistStoreError, RuntimeError):
                        theirs = "nothing"
                if theirs != own:
                    lines.append(f"\n  rank {rank} called {theirs}")
        except (dist.DistError, RuntimeError) as error:
            return f"\n  (the store no longer answers: {error})"
        if not lines:
            return ""
        return (
            f"\ncall number {call.number} differs between ranks:\n  rank {self.settings.rank} called {own}"
            + "".join(lines)
            + "\nMake all ranks of the group call the same collectives in the same order, "
            "on tensors of one type and size."
        )

    def _other(self, device: str, timeout: timedelta | None = None) -> Any:
        with self._lock:
            if device not in self._others:
                # Pairs of ranks make communicators of NCCL while the others are in no call: they cannot meet.
                if device == "cpu":
                    self._meet(device, timeout)
                    store = self._place(device, "delegate")
                else:
                    store = dist.PrefixStore(f"commsir/{device}/delegate", self._own_store())
                self._others[device] = self._delegate(
                    store,
                    device,
                    self.settings.rank,
                    self.settings.size,
                    self.settings.global_ranks,
                    self.settings.name,
                )
                self._others[device].set_timeout(self.settings.timeout)
            return self._others[device]

    # One tensor.

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        opts = opts or dist.AllreduceOptions()
        call = _Call("all_reduce", opts)
        tensor = _single(call.name, tensors if isinstance(tensors, (list, tuple)) else [tensors])
        if tensor.layout != torch.strided:
            call.reason, call.inputs, call.outputs = "sparse tensor", [tensor], [tensor]
        else:
            tensor = call.both(tensor)
            call.reduce_step("all_reduce", opts.reduceOp, tensor, tensor, self.settings.size)
        call.delegated = lambda other: other.allreduce([tensor], opts)
        return self._submit(call)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        opts = opts or dist.AllreduceCoalescedOptions()
        call = _Call("all_reduce_coalesced", opts)
        self._check_types(call, tensors)
        listed = [call.both(tensor) for tensor in tensors]
        flat = call.scratch(sum(t.numel() for t in listed), listed[0])
        parts = torch.split(flat, [t.numel() for t in listed])
        call.pack.append(lambda: [part.copy_(t.view(-1)) for part, t in zip(parts, listed, strict=True)])
        call.unpack.append(lambda: [t.view(-1).copy_(part) for part, t in zip(parts, listed, strict=True)])
        call.reduce_step("all_reduce", opts.reduceOp, flat, flat, self.settings.size)
        call.delegated = lambda other: other.allreduce_coalesced(listed, opts)
        return self._submit(call)

    def broadcast(self, tensors: Any, opts: Any = None) -> Work:
        opts = opts or dist.BroadcastOptions()
        call = _Call("broadcast", opts)
        call.root = opts.rootRank
        self._check_rank(call.name, opts.rootRank)
        tensor = call.both(_single(call.name, tensors if isinstance(tensors, (list, tuple)) else [tensors]))
        call.copy_step("broadcast", tensor, tensor, opts.rootRank)
        call.delegated = lambda other: other.broadcast([tensor], opts)
        return self._submit(call)

    def reduce(self, tensors: Any, opts: Any = None) -> Work:
        opts = opts or dist.ReduceOptions()
        call = _Call("reduce", opts)
        call.root = opts.rootRank
        self._check_rank(call.name, opts.rootRank)
        given, root = _single(call.name, tensors), opts.rootRank == self.settings.rank
        tensor = call.both(given) if root else call.input(given)
        call.reduce_step("reduce", opts.reduceOp, tensor, tensor if root else None, self.settings.size, opts.rootRank)
        call.delegated = lambda other: other.reduce([tensor], opts)
        return self._submit(call)

    def barrier(self, opts: Any = None) -> Work:
        call = _Call("barrier", opts)
        token = torch.zeros(1, dtype=torch.int32)
        call.kept.append(token)
        call.reduce_step("all_reduce", _R.SUM, token, token, self.settings.size)
        call.delegated = lambda other: other.barrier(opts) if opts else other.barrier()
        return self._submit(call)

    # Gathering.

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        call = _Call("all_gather", opts)
        source, targets = call.input(_single(call.name, inputs)), list(outputs[0])
        self._check_count(call, targets)
        self._check_types(call, [source, *targets])
        call.outputs = targets
        if targets[self.settings.rank].numel() != source.numel():
            raise RuntimeError(
                f"commsir: all_gather of {source.numel()} elements into a tensor of "
                f"{targets[self.settings.rank].numel()}"
            )
        each = max(t.numel() for t in targets)
        part = source if source.numel() == each else call.packed([source], each)
        call.copy_step("all_gather", part, call.unpacked(targets, each))
        call.delegated = lambda other: other.allgather([targets], [source], opts or dist.AllgatherOptions())
        return self._submit(call)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        call = _Call("all_gather_into_tensor", opts)
        self._check_types(call, [input, output])
        if output.numel() != input.numel() * self.settings.size:
            raise RuntimeError(
                "commsir: all_gather_into_tensor: output tensor size must be equal to world_size times input tensor "
                f"size: got {output.numel()} and {input.numel()} elements for {self.settings.size} ranks"
            )
        source, target = call.input(input), call.output(output)
        call.copy_step("all_gather", source, target)
        call.delegated = lambda other: other._allgather_base(target, source, opts or dist.AllgatherOptions())
        return self._submit(call)

    def _gather_words(self, call: _Call, inputs: Tensors, outputs: list[Tensors]) -> None:
        """The tensors of each rank, as bytes behind each other, through one gather; `outputs` is one list a tensor."""
        offsets = [0]
        for tensor in inputs:
            offsets.append(offsets[-1] + 8 * _words(tensor))
        total = offsets.pop()
        source = call.scratch(total // 8, inputs[0], torch.int64).view(torch.uint8)
        target = call.scratch(total // 8 * self.settings.size, inputs[0], torch.int64).view(torch.uint8)

        def pack() -> None:
            for tensor, at in zip(inputs, offsets, strict=True):
                source.narrow(0, at, tensor.nbytes).copy_(tensor.contiguous().view(-1).view(torch.uint8))

        def unpack() -> None:
            for listed, at in zip(outputs, offsets, strict=True):
                for rank, tensor in enumerate(listed):
                    part = target.narrow(0, rank * total + at, tensor.nbytes)
                    tensor.copy_(part.view(tensor.dtype).view(tensor.shape))

        call.pack.append(pack)
        call.unpack.append(unpack)
        call.copy_step("all_gather", source.view(torch.int64), target.view(torch.int64))

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        call = _Call("all_gather_coalesced", opts)
        call.inputs, call.outputs = list(inputs), [t for listed in outputs for t in listed]
        self._check_count(call, outputs)
        self._gather_words(call, call.inputs, [list(column) for column in zip(*outputs, strict=True)])
        call.delegated = lambda other: other.allgather_coalesced(outputs, inputs)
        return self._submit(call)

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        call = _Call("all_gather_into_tensor_coalesced", opts)
        call.inputs = list(inputs)
        targets = [call.output(output) for output in outputs]
        parts = [
            [part.view(source.shape) for part in target.view(-1).chunk(self.settings.size)]
            for source, target in zip(inputs, targets, strict=True)
        ]
        self._gather_words(call, call.inputs, parts)
        call.delegated = lambda other: (
            [other._allgather_base(t, s.contiguous()).wait() for s, t in zip(inputs, targets, strict=True)] and None
        )
        return self._submit(call)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        opts = opts or dist.GatherOptions()
        call = _Call("gather", opts)
        call.root = opts.rootRank
        self._check_rank(call.name, opts.rootRank)
        source, together = call.input(_single(call.name, inputs)), None
        if opts.rootRank == self.settings.rank:
            targets = list(outputs[0])
            self._check_count(call, targets)
            self._check_types(call, [source, *targets], same_size=True)
            call.outputs = targets
            together = call.unpacked(targets, source.numel())
        call.copy_step("gather", source, together, opts.rootRank)
        call.delegated = lambda other: other.gather(outputs, [source], opts)
        return self._submit(call)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        opts = opts or dist.ScatterOptions()
        call = _Call("scatter", opts)
        call.root = opts.rootRank
        self._check_rank(call.name, opts.rootRank)
        target, together = call.output(_single(call.name, outputs)), None
        if opts.rootRank == self.settings.rank:
            sources = list(inputs[0])
            self._check_count(call, sources)
            self._check_types(call, [target, *sources], same_size=True)
            call.inputs = sources
            together = call.packed(sources, target.numel())
        call.copy_step("scatter", together, target, opts.rootRank)
        call.delegated = lambda other: other.scatter([target], inputs, opts)
        return self._submit(call)

    # Reduce-scatter.

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        opts = opts or dist.ReduceScatterOptions()
        call = _Call("reduce_scatter", opts)
        target, sources = call.output(_single(call.name, outputs)), list(inputs[0])
        self._check_count(call, sources)
        self._check_types(call, [target, *sources])
        call.inputs = sources
        each = max(t.numel() for t in sources)
        part = target if target.numel() == each else call.unpacked([target], each)
        call.reduce_step("reduce_scatter", opts.reduceOp, call.packed(sources, each), part, self.settings.size)
        call.delegated = lambda other: other.reduce_scatter([target], [sources], opts)
        return self._submit(call)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        opts = opts or dist.ReduceScatterOptions()
        call = _Call("reduce_scatter_tensor", opts)
        self._check_types(call, [input, output])
        if input.numel() != output.numel() * self.settings.size:
            raise RuntimeError(
                "commsir: reduce_scatter_tensor: input tensor must be the same size as output size times world size: "
                f"got {input.numel()} and {output.numel()} elements for {self.settings.size} ranks"
            )
        source, target = call.input(input), call.output(output)
        call.reduce_step("reduce_scatter", opts.reduceOp, source, target, self.settings.size)
        call.delegated = lambda other: other._reduce_scatter_base(target, source, opts)
        return self._submit(call)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        opts = opts or dist.ReduceScatterOptions()
        call = _Call("reduce_scatter_tensor_coalesced", opts)
        self._check_types(call, inputs)
        sources = [call.input(t) for t in inputs]
        targets = [call.output(t) for t in outputs]
        size, sizes = self.settings.size, [t.numel() for t in targets]
        source = call.scratch(sum(sizes) * size, sources[0]).view(size, -1)
        target = call.scratch(sum(sizes), sources[0])
        call.pack.append(
            lambda: [p.copy_(t.view(size, -1)) for p, t in zip(torch.split(source, sizes, 1), sources, strict=True)]
        )
        call.unpack.append(
            lambda: [t.view(-1).copy_(p) for p, t in zip(torch.split(target, sizes), targets, strict=True)]
        )
        call.reduce_step("reduce_scatter", opts.reduceOp, source, target, size)
        call.delegated = lambda other: (
            [other._reduce_scatter_base(t, s, opts).wait() for s, t in zip(sources, targets, strict=True)] and None
        )
        return self._submit(call)

    # All-to-all.

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Any,
        input_splits: Any,
        opts: Any = None,
    ) -> Work:
        call = _Call("all_to_all_single", opts)
        self._check_types(call, [input, output])
        source, target = call.input(input), call.output(output)
        rows_in, rows_out = self._splits(source, input_splits), self._splits(target, output_splits)
        if not input_splits and not output_splits:
            call.copy_step("all_to_all", source, target)
        else:
            self._uneven(call, list(torch.split(target, rows_out)), list(torch.split(source, rows_in)))
        call.delegated = lambda other: other.alltoall_base(
            target, source, list(output_splits), list(input_splits), opts or dist.AllToAllOptions()
        )
        return self._submit(call)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        call = _Call("all_to_all", opts)
        self._check_count(call, outputs)
        self._check_count(call, inputs)
        self._check_types(call, [*inputs, *outputs])
        call.inputs, call.outputs = list(inputs), list(outputs)
        self._uneven(call, call.outputs, call.inputs)

        def delegated(other: Any) -> Any:
            if call.inputs[0].is_cuda:
                return other.alltoall(call.outputs, call.inputs, opts or dist.AllToAllOptions())
            sizes = [t.numel() for t in call.outputs]
            flat = torch.empty(sum(sizes), dtype=call.inputs[0].dtype)
            joined = torch.cat([t.reshape(-1) for t in call.inputs])
            other.alltoall_base(flat, joined, sizes, [t.numel() for t in call.inputs], dist.AllToAllOptions()).wait()
            for part, tensor in zip(torch.split(flat, sizes), call.outputs, strict=True):
                tensor.copy_(part.view(tensor.shape))
            return None

        call.delegated = delegated
        return self._submit(call)

    def _splits(self, tensor: torch.Tensor, splits: Any) -> list[int]:
        size, rows = self.settings.size, tensor.shape[0] if tensor.dim() else 1
        if splits and (len(splits) != size or sum(splits) != rows):
            raise RuntimeError("commsir: Number of tensor splits not equal to group size, or not the tensor's length")
        if not splits and rows % size:
            raise RuntimeError("commsir: Tensor's dim 0 does not divide equally across group size")
        return list(splits) if splits else [rows // size] * size

    def _uneven(self, call: _Call, outputs: Tensors, inputs: Tensors) -> None:
        """The ranks agree on the greatest size, and exchange pieces of that size."""
        if inputs[0].is_cuda:
            call.reason = "sizes that differ by peer"
            return
        asked = _Call(call.name)
        most = torch.tensor([max(t.numel() for t in [*inputs, *outputs])])
        asked.reduce_step("all_reduce", _R.MAX, most, most, self.settings.size)
        probe = asked.scratch(self.settings.size, inputs[0])
        asked.copy_step("all_to_all", probe, probe)

        def run() -> None:
            if self.settings.size > 1 and (why := self._why_not(asked, "cpu")):
                assert call.delegated
                counts.count(self.settings.name, call.name, "gloo", why)
                if work := call.delegated(self._other("cpu")):
                    work.wait()
                return
            self._launch(call, asked.steps[0], "cpu")
            each = 1 << max(int(most) - 1, 0).bit_length()
            copies = _Call(call.name)
            source, target = copies.packed(inputs, each), copies.unpacked(outputs, each)
            copies.copy_step("all_to_all", source, target)
            self._run_own(copies, "cpu")

        call.run = run

    # Sends and receives.

    def _transfer(self, name: str, tensors: Any, peer: int, delegated: Callable[[Any, Tensors], Any]) -> Work:
        call = _Call(name)
        given = _single(name, tensors)
        tensor = call.input(given) if name == "send" else call.output(given)
        call.sends, call.root = True, peer
        call.reason = "point to point" if given.is_cuda else "tags and any source are matched by Gloo"
        call.delegated = lambda other: delegated(other, [tensor])
        return self._submit(call)

    def send(self, tensors: Any, to: int, tag: int = 0) -> Work:
        self._check_rank("send", to)
        return self._transfer("send", tensors, to, lambda other, listed: other.send(listed, to, tag))

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Work:
        self._check_rank("recv", source)
        return self._transfer("recv", tensors, source, lambda other, listed: other.recv(listed, source, tag))

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self._transfer("recvAnySource", tensors, -1, lambda other, listed: other.recv_anysource(listed, tag))

    # Checks.

    def _check_rank(self, name: str, rank: int) -> None:
        if not 0 <= rank < self.settings.size:
            raise ValueError(f"commsir: {name}: no rank {rank} in a group of {self.settings.size}")

    def _check_count(self, call: _Call, tensors: Sequence[Any]) -> None:
        if len(tensors) != self.settings.size:
            raise ValueError(
                f"commsir: {call.name} got {len(tensors)} tensors for {self.settings.size} ranks; "
                "give a tensor for each rank"
            )

    def _check_types(self, call: _Call, tensors: Sequence[torch.Tensor], same_size: bool = False) -> None:
        if not tensors:
            raise ValueError(f"commsir: {call.name} got no tensors")
        types = sorted({str(tensor.dtype) for tensor in tensors})
        if len(types) > 1:
            raise RuntimeError(
                f"commsir: {call.name} got tensors of the types {' and '.join(types)}; give tensors of one type"
            )
        sizes = sorted({tensor.numel() for tensor in tensors})
        if same_size and len(sizes) > 1:
            raise RuntimeError(f"commsir: {call.name} got tensors of {sizes} elements; give tensors of one size")

    # Batches, barriers, the end.

    def _start_coalescing(self, device: torch.device) -> None:
        self._check_usable("start_coalescing")
        self._coalesced = []

    def _end_coalescing(self, device: torch.device) -> Work:
        calls, self._coalesced = self._coalesced or [], None
        every = Work([t for c in calls for t in c.outputs], self.settings.timeout, "coalesced", self.abort_because)

        def carry_out() -> None:
            for call in calls:
                assert call.work
                self._carry_out(call, self._check_tensors(call))
                every.begun(call.work, ())
            every.complete()

        if calls and self._check_tensors(calls[0]) == "cuda":
            carry_out()
        else:
            self._enqueue(carry_out)
        return every

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        self._check_usable("monitored_barrier")
        limit = self.settings.timeout if timeout is None or timeout.total_seconds() < 0 else timeout
        ms, rank = round(limit.total_seconds() * 1000), self.settings.rank
        if not ms and not rank:
            raise RuntimeError("[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms")

        # The words are Gloo's, which programs look for.
        def complain(missing: list[int]) -> str:
            told = missing if wait_all_ranks else missing[:1]
            ranks = ("s " if len(told) > 1 else " ") + ", ".join(map(str, told))
            return f"[Rank 0]: Rank{ranks} failed to pass monitoredBarrier in {ms} ms"

        met = self._hold_meeting("commsir/monitored", limit, complain=complain)
        if not met.epoch and rank:
            raise RuntimeError(
                f"Rank {rank} successfully reached monitoredBarrier, "
                f"but received errors while waiting for send/recv from rank 0: {met.failure}"
            )
        if not met.epoch:
            raise RuntimeError(met.failure)

    # What torch asks of some backends.

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, options: Any = None) -> ProcessGroup:
        """A group of the ranks that are left, also where this one has failed; they meet in the store again."""
        left = [rank for rank in range(self.settings.size) if rank not in ranks_to_exclude]
        if self.settings.rank not in left:
            raise ValueError(f"commsir: shrink: rank {self.settings.rank} is left out; ranks that are left call this")
        if shrink_flags:
            self.abort_because(f"it shrinks to {len(left)} ranks")
        self._drain()
        ranks = self.settings.global_ranks or list(range(self.settings.size))
        listed = "_".join(map(str, left))
        made = backend.Settings(
            dist.PrefixStore(f"commsir/shrunk/{listed}", self.settings.store),
            left.index(self.settings.rank),
            len(left),
            getattr(options, "_timeout", None) or self.settings.timeout,
            f"{self.settings.name}:{listed}",
            [ranks[rank] for rank in left],
        )
        return type(self)(made)

    def _register_on_completion_hook(self, hook: Callable[[Any], None]) -> None:
        raise RuntimeError(
            "commsir: the process group in Python has no hooks on completion, which need torch's WorkInfo; "
            "use the C++ backend (COMMSIR_TORCH_BACKEND=cpp), or work.get_future().then(...)"
        )

    def _has_hooks(self) -> bool:
        return False

    def _enable_collectives_timing(self) -> None:
        """Times are always taken."""

    def _wait_for_pending_works(self) -> None:
        self._drain()

    def _drain(self) -> None:
        if self._thread is not None:
            done = threading.Event()
            self._jobs.put(done.set)
            done.wait()

    def get_error(self) -> Any:
        """Whether the group can still be used."""
        kinds = torch._C._distributed_c10d.ErrorType
        return kinds.COMM_ERROR if self._ended else kinds.SUCCESS

    @property
    def mem_allocator(self) -> Any:
        raise RuntimeError(
            "commsir: a process group has no allocator of its own: make symmetric tensors by commsir.torch.window or "
            "torch.distributed._symmetric_memory.empty"
        )

    def eager_connect_single_device(self, device: torch.device | None = None) -> None:
        """Groups are made at the first call."""

    def recent_calls(self) -> list[dict[str, Any]]:
        """The last calls, as flight.py has them, the oldest first."""
        return [record.as_dict() for record in list(self._recent)]

    def group_counts(self) -> dict[str, Any]:
        """What the groups of CommsIR have counted, by kind of device."""
        return {device: made.counts() for device, made in self._groups.items() if isinstance(made, capi.Group)}

    def abort_because(self, reason: str) -> None:
        """Ends all waits of this rank."""
        self._ended = self._ended or reason
        for made in self._groups.values():
            if isinstance(made, capi.Group):
                made.abort(reason)
        for other in self._others.values():
            other.abort()

    def abort(self) -> None:
        self.abort_because("it was aborted")

    def shutdown(self) -> None:
        if os.getpid() != self._process:
            return
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        if self._ended:
            return
        self._ended = "it was destroyed"
        for other in self._others.values():
            other.shutdown()


def _copy(step: capi.Collective, device: str) -> None:
    """A collective of one rank."""
    if not step.input or not step.output or step.input == step.output:
        return
    widths = {"8": 1, "6": 2, "2": 4, "4": 8}
    element = step.type.decode()
    width = 1 if element.startswith("f8") else widths[element[-1]]
    import ctypes

    if device == "cpu":
        ctypes.memmove(step.output, step.input, step.output_elements * width)
        return
    runtime: Any = torch.cuda
    runtime = runtime.cudart()
    runtime.cudaMemcpy(step.output, step.input, step.output_elements * width, 3)
