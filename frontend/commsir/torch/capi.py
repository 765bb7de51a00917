"""One rank of a group whose calls take torch's tensors by their addresses, for the ops, interop.py and reference.py.

commsir.Group is for arrays of all libraries. Both go through one binding of the C API (frontend/ffi).
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commsir import _native, errors
from commsir._arguments import OfThisProcess, number
from commsir._arrays import dlpack_name, dtype_name, refuse_short_storage
from commsir._signature import Signature
from commsir._sources import kernel_text
from commsir.errors import UsageError
from commsir.group import StoreCallbacks

if TYPE_CHECKING:
    from commsir._kernel import Kernel

__all__ = [
    "Collective",
    "CommsIRError",
    "Group",
    "GroupKernel",
    "element_type",
    "memory",
    "named_type",
]


class _OnGpu:
    """GPU memory with the interface that torch imports, and its owner."""

    def __init__(self, data: int, size: int, owner: object) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (data, False), "version": 3}


def memory(address: int, size: int, device: torch.device, owner: object = None) -> torch.Tensor:
    """Returns a tensor of bytes over `size` > 0 bytes that another object owns, on the CPU or on this GPU.

    `owner` stays alive as long as the tensor's memory is used.
    """
    if device.type == "cuda":
        return torch.as_tensor(_OnGpu(address, size, owner), device=device)
    shown = (ctypes.c_char * size).from_address(address)
    shown.owner = owner  # type: ignore[attr-defined]
    return torch.frombuffer(shown, dtype=torch.uint8)


@dataclass(frozen=True)
class Collective:
    """A call on contiguous memory: arrays are (address, elements), with address 0 if this rank has none.

    `named` is what the elements are taken for, where `element` says only how they are moved.
    """

    op: str
    reduction: str
    element: str
    source: tuple[int, int]
    target: tuple[int, int]
    root: int = 0
    named: str = ""
    #: Empty: chosen.
    algorithm: str = ""

    def arguments(self) -> tuple[Any, ...]:
        """As the binding takes them."""
        memory = [*self.source, *self.target]
        return self.op, self.reduction, self.element, self.named, self.root, self.algorithm, memory


#: COMMSIR_ABORTED.
_ABORTED = 10


class CommsIRError(dist.DistBackendError):
    """A call of the C API that failed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _ask(name: str, *arguments: Any) -> Any:
    """Calls the binding, which returns [status, result, …]. Returns the results, or raises the error."""
    answer = _native.library().get_function(name)(*arguments)
    if int(answer[0]) != 0:
        error = errors.from_json(int(answer[0]), str(answer[1]))
        raise CommsIRError(str(error), int(answer[0])) from error
    return answer[1] if len(answer) == 2 else tuple(answer)[1:]


_TYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.uint8: "i8",
    torch.int8: "i8",
    torch.bool: "i8",
    torch.int16: "i16",
    torch.uint16: "i16",
    torch.int32: "i32",
    torch.uint32: "i32",
    torch.int64: "i64",
    torch.uint64: "i64",
}


#: What elements are taken for, where that is not how they are moved or calculated with.
_NAMES = {
    torch.bool: "i1",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.complex32: "complex<f16>",
    torch.complex64: "complex<f32>",
    # Counted in words of 8 bytes.
    torch.complex128: "halves of complex<f64>",
}


def element_type(dtype: torch.dtype) -> str:
    """Returns MLIR's name of a type, or an empty string if CommsIR does not support it."""
    return _TYPES.get(dtype, "")


def named_type(dtype: torch.dtype) -> str:
    """The caller's element type, which must be equal on all ranks even if only bytes are moved."""
    return _NAMES.get(dtype) or _TYPES.get(dtype) or str(dtype).removeprefix("torch.")


def _device(ordinal: int) -> torch.device:
    return torch.device("cpu") if ordinal < 0 else torch.device("cuda", ordinal)


class GroupKernel(OfThisProcess, Signature):
    """A kernel that a group has compiled. It keeps its signals and counters between launches."""

    def __init__(self, group: Group, kernel: int, described: str) -> None:
        super().__init__(described)
        self._group, self._kernel = group, kernel

    def _tensor(self, argument: dict[str, Any], value: Any) -> torch.Tensor | None:
        """The tensor for the kernel; None if the group provides it."""
        kind = argument["kind"]
        what = f"commsir: argument '{argument['name']}' of kernel {self.name}"
        if kind in ("signal", "counter"):
            return None
        if kind == "scalar":
            # On the host, whatever torch's default device, or that of a tensor that is given.
            return _scalar(value, self.number_type(argument), what)
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"{what} is a {type(value).__name__}, not a tensor")
        if value.device != self._group.device:
            raise UsageError(f"{what} is on {value.device}, but the group is on {self._group.device}: move it there")
        if not value.is_contiguous():
            raise UsageError(f"{what} is not contiguous: call .contiguous() first")
        if value.is_neg():
            raise UsageError(f"{what} negates what is in its memory: call .resolve_neg() first")
        refuse_short_storage(value, what)
        self.check(argument, element_type(value.dtype) or dtype_name(value.dtype), value.shape)
        return value

    def __call__(self, *values: Any, stream: int | None = None, **named: Any) -> None:
        """Launches it; on a GPU in torch's current stream, or `stream`, a cudaStream_t."""
        tensors = [self._tensor(argument, value) for argument, value in self.match(values, named)]
        if stream is None and self._group.device.type == "cuda":
            stream = torch.cuda.current_stream(self._group.device).cuda_stream
        self._group.launch(self._kernel, tensors, stream or 0)


def _scalar(value: Any, kind: str, what: str) -> torch.Tensor:
    """Converts a number, or a tensor of one, to a kernel's type without changing its value."""
    exact = number(value.item() if isinstance(value, torch.Tensor) else value, kind, what)
    try:
        made = torch.tensor(exact, dtype=_scalar_type(kind), device="cpu")
    except (RuntimeError, OverflowError, ValueError):
        made = None
    if made is None or (math.isfinite(exact) and not made.isfinite()):
        raise UsageError(f"{what} is {exact}, which does not fit {kind}")
    return made


def _scalar_type(name: str) -> torch.dtype:
    """Returns torch's type for MLIR's name; for integers, the signed type."""
    return getattr(torch, dlpack_name(name))  # type: ignore[no-any-return]


class Group(OfThisProcess):
    """One rank of a group, made collectively from a torch store. One thread may use it at a time, except `abort`."""

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        *,
        name: str,
        timeout: timedelta,
        device: int = -1,
        nccl_comm: int = 0,
        shares_gpu: bool = True,
    ) -> None:
        self._handle, self._process = 0, os.getpid()
        self.rank, self.size, self.device = rank, size, _device(device)
        # Training runs large collectives concurrently with its arithmetic: they take as few CTAs as carry what NCCL
        # does. What runs in the stream of the arithmetic takes as many as are fastest.
        ctas = -1 if shares_gpu else 0
        meeting = StoreCallbacks(store)
        arguments = (name, rank, size, device, timeout.total_seconds(), nccl_comm, ctas, "")
        try:
            self._handle = int(_ask("group_create", *arguments, meeting.set, meeting.get))
        except CommsIRError as error:
            if meeting.interrupt:
                raise meeting.interrupt from None
            if meeting.raised is None:
                raise
            raise CommsIRError(f"{error} (the store: {meeting.raised})", error.status) from meeting.raised
        if meeting.interrupt:
            self.destroy()
            raise meeting.interrupt

    @classmethod
    def borrowed(cls, address: int, rank: int, size: int, *, device: int = -1) -> Group:
        """Wraps a commsir_group that another object owns. Valid as long as the owner lives."""
        made = cls.__new__(cls)
        made._process = os.getpid()
        made.device, made.rank, made.size = _device(device), rank, size
        made._handle = int(_native.call("group_borrow", address))
        return made

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size} on {self.device}{'' if self._handle else ', destroyed'}>"

    @property
    def address(self) -> int:
        """Address of the commsir_group, for C++ code; 0: the group was destroyed."""
        return int(_native.call("group_address", self._handle))

    def _ask(self, name: str, *arguments: Any) -> Any:
        if not self._handle:
            raise CommsIRError("commsir: the group was destroyed; make a new one", _ABORTED)
        return _ask(name, self._handle, *arguments)

    def why_not(self, call: Collective) -> str:
        """Returns why CommsIR does not compile a call, or an empty string if it does."""
        return str(_native.call("collective_why_not", self._handle, *call.arguments()))

    def collective(self, call: Collective, stream: int = 0) -> None:
        """Runs a call. On a GPU, the call is queued in a stream."""
        self._ask("collective_run", *call.arguments(), stream)

    def compare(self, text: str, stream: int = 0) -> None:
        """Raises an error with status COMMSIR_DISAGREE unless all ranks pass the same text. Collective.

        Nothing is compared while `stream` is captured.
        """
        self._ask("group_compare", text, stream)

    def kernel(self, source: str | os.PathLike[str] | Kernel, name: str = "", **options: Any) -> GroupKernel:
        """Compiles a user kernel, as commsir.Group.kernel does. Collective when it is new.

        Call the result with tensors for its arrays, and with its scalars, in order or by name.
        """
        text = kernel_text(source, self.size, options)
        kernel, described = self._ask("group_kernel", text, name, json.dumps(options) if options else "")
        return GroupKernel(self, int(kernel), str(described))

    def launch(self, kernel: int, tensors: Sequence[torch.Tensor | None], stream: int) -> None:
        """Launches a kernel with one tensor per argument, None for arguments that the group provides."""
        memory = [number for one in tensors for number in ((0, 0) if one is None else (one.data_ptr(), one.nbytes))]
        self._ask("kernel_launch_at", kernel, memory, stream)

    def allocate(self, size: int) -> int:
        """Symmetric memory of `size` bytes on every rank. Collective."""
        return int(self._ask("window_allocate_bytes", size))

    def release(self, base: int) -> None:
        """Collective; `base` is what `allocate` returned."""
        self._ask("window_release", base)

    def adopt(self, own: int, size: int, parts: Sequence[int]) -> None:
        """Registers memory that another library made symmetric, given the addresses at which this rank reaches each
        part.
        """
        self._ask("window_adopt", own, size, list(parts))

    def share(self, own: int, size: int) -> None:
        """Registers memory of this rank's GPU as a window, whoever allocated it. Collective; `size` is equal on all
        ranks.
        """
        self._ask("window_share", own, size)

    def forget(self, own: int) -> None:
        """Ends `adopt` or `share`, on this rank."""
        _native.call("window_forget", self._handle, own)

    def peer(self, data: int, rank: int) -> int:
        """Returns the address at which this rank reaches another rank's copy of symmetric memory; 0: out of reach."""
        return int(_native.call("window_address", self._handle, data, rank))

    def put(self, peer: int, to: int, source: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes to a rank's copy of symmetric memory. `to` lies in this rank's. On a GPU, in a stream."""
        self._ask("window_put", peer, to, source, size, stream)

    def get(self, peer: int, source: int, to: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes from a rank's copy of symmetric memory. `source` lies in this rank's."""
        self._ask("window_get", peer, source, to, size, stream)

    def reserve_signals(self, count: int) -> int:
        """Reserves signal cells on every rank, initially 0, and returns the number of the first. Collective."""
        return int(self._ask("signals_reserve", count))

    def signal(self, peer: int, cell: int, stream: int = 0, adds: bool = False) -> None:
        """A cell of a rank gets 1, or 1 more if it `adds`, behind what this rank has put there in the stream.

        On a GPU, a copy engine sets a cell, and a kernel adds to it.
        """
        self._ask("signal_send", peer, cell, int(adds), 1, stream)

    def take_signal(self, cell: int, value: int, source: int, stream: int = 0) -> None:
        """Waits until a cell of this rank, signaled by `source`, is at least `value`, then subtracts `value`.

        On a GPU the stream waits, and `poll` raises the error of a wait that failed.
        """
        self._ask("signal_take", cell, value, source, stream)

    def signal_others(self, first: int, stream: int = 0) -> None:
        """Adds 1 to cell `first` + this rank of every other rank, behind what this rank has put there in the stream.

        On a GPU in one launch.
        """
        self._ask("signal_others", first, 1, stream)

    def take_from_others(self, first: int, stream: int = 0) -> None:
        """`take_signal` of cell `first` + r for every other rank r; on a GPU in one launch."""
        self._ask("signal_take_others", first, 1, stream)

    def contains(self, data: int, size: int) -> bool:
        """Whether the memory lies in one window."""
        return bool(_native.call("window_contains", self._handle, data, size))

    def poll(self) -> None:
        """Raises the errors that launches have reported since the last call."""
        self._ask("group_poll")

    def counts(self) -> dict[str, Any]:
        """Counters of the group."""
        return dict(json.loads(str(self._ask("group_stats"))))

    def abort(self, reason: str) -> None:
        """Ends all waits. Any thread may call it."""
        if self._handle:
            _native.call("group_abort", self._handle, reason)

    def destroy(self) -> None:
        """Destroys the group. All ranks do so; a second call does nothing."""
        self._end(waits=True)

    def drop(self) -> None:
        """Destroys the group without waiting for other ranks, which may continue."""
        self._end(waits=False)

    # Late at the interpreter's exit the globals of modules are None: it brings its own.
    def __del__(
        self, is_finalizing: Callable[[], bool] = sys.is_finalizing, getpid: Callable[[], int] = os.getpid
    ) -> None:
        # In a child of fork it is the parent's; and who leaves the process has no time for this.
        if not is_finalizing() and getpid() == self._process:
            self.drop()

    def _end(self, waits: bool) -> None:
        handle, self._handle = self._handle, 0
        if handle:
            _native.call("group_close", handle, waits)
