"""One rank of a group, by ctypes over the C API: what the process group in Python and interop.py stand on."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commsir._arrays import dlpack_name, dtype_name
from commsir._signature import Signature
from commsir._sources import kernel_text
from commsir.errors import UsageError
from commsir.torch import dynamo
from commsir.torch.rendezvous import look

if TYPE_CHECKING:
    from commsir._kernel import Kernel

__all__ = [
    "Callbacks",
    "Collective",
    "CommsIRError",
    "Group",
    "GroupKernel",
    "element_type",
    "load",
    "memory",
    "named_type",
    "version",
    "width",
]


class _OnGpu:
    """Bytes of a GPU as torch wants to be shown them, and their owner."""

    def __init__(self, data: int, size: int, owner: object) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (data, False), "version": 3}


def memory(address: int, size: int, device: torch.device, owner: object = None) -> torch.Tensor:
    """`size` bytes, more than none, that somebody else owns, on the CPU or on this GPU, as a tensor of bytes.

    `owner` lives as long as the tensor's memory is used.
    """
    if device.type == "cuda":
        return torch.as_tensor(_OnGpu(address, size, owner), device=device)
    shown = (ctypes.c_char * size).from_address(address)
    shown.owner = owner  # type: ignore[attr-defined]
    return torch.frombuffer(shown, dtype=torch.uint8)


class _Store(ctypes.Structure):
    _fields_ = [
        ("self", ctypes.c_void_p),
        ("set", ctypes.c_void_p),
        ("get", ctypes.c_void_p),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("rank", ctypes.c_int64),
        ("ranks", ctypes.c_int64),
        ("device", ctypes.c_int32),
        ("timeout", ctypes.c_double),
        ("nccl_comm", ctypes.c_void_p),
        ("ctas", ctypes.c_int64),
    ]


class Collective(ctypes.Structure):
    """commsir_collective."""

    _fields_ = [
        ("op", ctypes.c_char_p),
        ("reduction", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("root", ctypes.c_int64),
        ("peer", ctypes.c_int64),
        ("input", ctypes.c_void_p),
        ("input_elements", ctypes.c_int64),
        ("output", ctypes.c_void_p),
        ("output_elements", ctypes.c_int64),
        ("algorithm", ctypes.c_char_p),
        ("protocol", ctypes.c_char_p),
        ("send_counts", ctypes.c_void_p),
        ("recv_counts", ctypes.c_void_p),
        ("type_name", ctypes.c_char_p),
    ]

    @classmethod
    def of(
        cls,
        op: str,
        reduction: str,
        element: str,
        source: tuple[int, int],
        target: tuple[int, int],
        root: int = 0,
        named: str = "",
    ) -> Collective:
        """A call on flat memory: arrays are (address, elements), with address 0 where this rank has none.

        `named` is what the elements are taken for, where `element` says only how they are moved.
        """
        (a, n), (b, m) = source, target
        made = cls(op.encode(), reduction.encode(), element.encode(), root, 0, a or None, n, b or None, m, b"", b"")
        made.type_name = named.encode()
        return made


class _Argument(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


_SET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_GET = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_double,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
)

#: Statuses after which ranks tell each other what they were calling.
DEADLOCK, DISAGREE = 5, 9
ABORTED = 10


class CommsIRError(dist.DistBackendError):
    """A call of the C API that failed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


_libraries: dict[str, ctypes.CDLL] = {}


def load(path: str) -> ctypes.CDLL:
    """libcommsir.so, opened once."""
    if path not in _libraries:
        library = ctypes.CDLL(path)
        library.commsir_error_message.restype = ctypes.c_char_p
        for name in (
            "commsir_group_ended",
            "commsir_group_stats",
            "commsir_group_why_not",
            "commsir_kernel_describe",
        ):
            getattr(library, name).restype = ctypes.c_void_p
        library.commsir_free.argtypes = [ctypes.c_void_p]
        library.commsir_window_peer.restype = ctypes.c_void_p
        for name in ("destroy", "drop", "ended", "poll", "stats"):
            getattr(library, f"commsir_group_{name}").argtypes = [ctypes.c_void_p]
        library.commsir_group_destroy.restype = library.commsir_group_drop.restype = None
        library.commsir_group_abort.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        _libraries[path] = library
    return _libraries[path]


def version(path: str) -> str:
    """That of libcommsir.so, and of what it compiles with."""
    library = load(path)
    library.commsir_version.restype = ctypes.c_char_p
    return str(library.commsir_version().decode())


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

_WIDTHS = {name: dtype.itemsize for dtype, name in _TYPES.items()}


def width(element: str) -> int:
    """Bytes of an element, by MLIR's name of its type."""
    return _WIDTHS[element]


def element_type(dtype: torch.dtype) -> str:
    """MLIR's name of a type; empty: CommsIR has none."""
    return _TYPES.get(dtype, "")


def named_type(dtype: torch.dtype) -> str:
    """What elements are taken for: those of other ranks must be the same, even where bytes alone move."""
    return _NAMES.get(dtype) or _TYPES.get(dtype) or str(dtype).removeprefix("torch.")


def _device(ordinal: int) -> torch.device:
    return torch.device("cpu") if ordinal < 0 else torch.device("cuda", ordinal)


class Callbacks:
    """A store as the C API asks for it; `raised` is what it has raised last. ctypes would drop that, of Ctrl-C, too,
    and answer 0, which means that all is well."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.raised: BaseException | None = None
        self._malloc = ctypes.CDLL(None).malloc
        self._malloc.restype = ctypes.c_void_p
        self._malloc.argtypes = [ctypes.c_size_t]
        self._face = (_SET(self._put), _GET(self._get))

    def as_store(self) -> ctypes.Structure:
        """commsir_store, as long as this lives."""
        put, get = self._face
        return _Store(None, ctypes.cast(put, ctypes.c_void_p), ctypes.cast(get, ctypes.c_void_p))

    def put(self, key: str, value: bytes) -> None:
        """As C's `set` does it."""
        self.store.set(key, value.hex())

    def interrupt(self) -> BaseException | None:
        """Ctrl-C and the like: nobody is asked after it."""
        return None if isinstance(self.raised, Exception) else self.raised

    def _put(self, _: Any, key: bytes, data: int, size: int) -> int:
        if self.interrupt():
            return 1
        try:
            self.put(key.decode(), ctypes.string_at(data, size))
        except BaseException as error:
            self.raised = error
            return 1
        return 0

    def _get(self, _: Any, key: bytes, timeout: float, data: Any, size: Any) -> int:
        if self.interrupt():
            return 1
        try:
            found = look(self.store, key.decode(), timeout)
            if found is None:
                return 1
            value = bytes.fromhex(found.decode())
            data[0] = self._malloc(max(len(value), 1))
            ctypes.memmove(data[0], value, len(value))
            size[0] = len(value)
        except BaseException as error:
            self.raised = error
            return 1
        return 0


class GroupKernel(Signature):
    """commsir_kernel: a kernel that a group has compiled, which keeps its signals and counters."""

    def __init__(self, group: Group, kernel: ctypes.c_void_p, described: str) -> None:
        super().__init__(described)
        self._group, self._kernel = group, kernel

    def _tensor(self, argument: dict[str, Any], value: Any) -> torch.Tensor | None:
        """What the kernel gets; None where the group has its own."""
        kind = argument["kind"]
        if kind in ("signal", "counter"):
            return None
        if kind == "scalar":
            # On the host, whatever torch's default device, or that of a tensor that is given.
            return torch.tensor(value, dtype=_scalar_type(self.number_type(argument)), device="cpu")
        what = f"commsir: argument '{argument['name']}' of kernel {self.name}"
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"{what} is a {type(value).__name__}, not a tensor")
        if value.device != self._group.device:
            raise UsageError(f"{what} is on {value.device}, but the group is on {self._group.device}: move it there")
        if not value.is_contiguous():
            raise UsageError(f"{what} is not contiguous: call .contiguous() first")
        self.check(argument, element_type(value.dtype) or dtype_name(value.dtype), value.shape)
        return value

    def __call__(self, *values: Any, stream: int | None = None, **named: Any) -> None:
        """Launches it; on a GPU in torch's current stream, or `stream`, a cudaStream_t."""
        tensors = [self._tensor(argument, value) for argument, value in self.match(values, named)]
        if stream is None and self._group.device.type == "cuda":
            stream = torch.cuda.current_stream(self._group.device).cuda_stream
        self._group.launch(self._kernel, tensors, stream or 0)


def _scalar_type(name: str) -> torch.dtype:
    """torch's type for MLIR's name; of integers the one with a sign."""
    return getattr(torch, dlpack_name(name))  # type: ignore[no-any-return]


@dynamo.opaque
def _copy(peer: int, first: int, second: int, size: int, stream: int) -> tuple[Any, ...]:
    return (
        ctypes.c_int64(peer),
        ctypes.c_void_p(first),
        ctypes.c_void_p(second),
        ctypes.c_size_t(size),
        ctypes.c_void_p(stream or None),
    )


class Group:
    """commsir_group: made collectively from a torch store. Belongs to one thread at a time, but for `abort`."""

    def __init__(
        self,
        path: str,
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
        self.handle, self._process = ctypes.c_void_p(), os.getpid()
        self.library = load(path)
        self.rank, self.size, self.device = rank, size, _device(device)
        callbacks = Callbacks(store)
        # Training runs large collectives beside its arithmetic: they take as few CTAs as carry what NCCL does. What
        # runs in the stream of the arithmetic takes as many as are fastest.
        ctas = -1 if shares_gpu else 0
        options = _Options(name.encode(), rank, size, device, timeout.total_seconds(), nccl_comm or None, ctas=ctas)
        face = callbacks.as_store()
        status = self.library.commsir_group_create(ctypes.byref(options), ctypes.byref(face), ctypes.byref(self.handle))
        if interrupt := callbacks.interrupt():
            self.destroy()
            raise interrupt
        try:
            self._check(status)
        except CommsIRError as error:
            raised = callbacks.raised
            if raised is None:
                raise
            raise CommsIRError(f"{error} (the store: {raised})", status) from raised

    @classmethod
    def borrowed(cls, path: str, handle: int, rank: int, size: int, *, device: int = -1) -> Group:
        """A commsir_group that is another's, as long as that lives."""
        made = cls.__new__(cls)
        made._process = -1  # Nobody's to end here.
        made.device = _device(device)
        made.library, made.rank, made.size, made.handle = load(path), rank, size, ctypes.c_void_p(handle)
        return made

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size} on {self.device}{'' if self.handle else ', destroyed'}>"

    @property
    def _open(self) -> ctypes.c_void_p:
        if not self.handle:
            raise CommsIRError("commsir: the group was destroyed; make a new one", ABORTED)
        return self.handle

    def _check(self, status: int) -> None:
        if status:
            raise CommsIRError((self.library.commsir_error_message() or b"no message").decode(), status)

    def _text(self, pointer: int | None) -> str:
        if not pointer:
            return ""
        text = ctypes.string_at(pointer).decode()
        self.library.commsir_free(pointer)
        return text

    def why_not(self, call: Collective) -> str:
        """Why CommsIR does not compile a call; empty: it does."""
        return self._text(self.library.commsir_group_why_not(self.handle, ctypes.byref(call)))

    def collective(self, call: Collective, stream: int = 0) -> None:
        """Runs a call; on a GPU, puts it into a stream."""
        self._check(
            self.library.commsir_group_collective(self._open, ctypes.byref(call), ctypes.c_void_p(stream or None))
        )

    def kernel(self, source: str | os.PathLike[str] | Kernel, name: str = "", **options: Any) -> GroupKernel:
        """A kernel of the caller's own, as of commsir.Group: called with its arrays, as tensors, and its scalars, in
        order or by name. Collective when it is new."""
        text = kernel_text(source, self.size, options)
        kernel = ctypes.c_void_p()
        self._check(
            self.library.commsir_group_kernel(
                self._open,
                text.encode(),
                name.encode(),
                json.dumps(options).encode() if options else None,
                ctypes.byref(kernel),
            )
        )
        return GroupKernel(self, kernel, self._text(self.library.commsir_kernel_describe(kernel)))

    def launch(self, kernel: ctypes.c_void_p, tensors: Sequence[torch.Tensor | None], stream: int) -> None:
        """A kernel with one tensor for each argument, None for what is the group's."""
        _ = self._open  # Its kernels have gone with it.
        arguments = (_Argument * len(tensors))(
            *(_Argument(None, 0) if one is None else _Argument(one.data_ptr(), one.nbytes) for one in tensors)
        )
        self._check(
            self.library.commsir_kernel_launch(
                kernel, arguments, ctypes.c_size_t(len(tensors)), ctypes.c_void_p(stream or None)
            )
        )

    def allocate(self, size: int) -> int:
        """Symmetric memory of `size` bytes on every rank. Collective."""
        base = ctypes.c_void_p()
        self._check(self.library.commsir_window_allocate(self._open, ctypes.c_size_t(size), ctypes.byref(base)))
        return base.value or 0

    def release(self, base: int) -> None:
        """Collective; `base` is what `allocate` returned."""
        self._check(self.library.commsir_window_release(self._open, ctypes.c_void_p(base)))

    def adopt(self, own: int, size: int, parts: Sequence[int]) -> None:
        """Memory that others made symmetric, as a window: where this rank reaches each rank's part."""
        array = (ctypes.c_uint64 * len(parts))(*parts)
        self._check(self.library.commsir_window_adopt(self._open, ctypes.c_void_p(own), ctypes.c_size_t(size), array))

    def share(self, own: int, size: int) -> None:
        """Memory of this rank's GPU, by whomever it was allocated, as a window. Collective; `size` as everywhere."""
        self._check(self.library.commsir_window_share(self._open, ctypes.c_void_p(own), ctypes.c_size_t(size)))

    def forget(self, own: int) -> None:
        """Ends `adopt` and `share`, on this rank."""
        self.library.commsir_window_forget(self.handle, ctypes.c_void_p(own))

    def peer(self, data: int, rank: int) -> int:
        """Where this rank reaches another rank's copy of symmetric memory; 0: out of reach."""
        found = self.library.commsir_window_peer(self.handle, ctypes.c_void_p(data), ctypes.c_int64(rank))
        return int(found or 0)

    def put(self, peer: int, to: int, source: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes to a rank's copy of symmetric memory. `to` lies in this rank's. On a GPU, in a stream."""
        self._check(self.library.commsir_put(self._open, *_copy(peer, to, source, size, stream)))

    def get(self, peer: int, source: int, to: int, size: int, stream: int = 0) -> None:
        """Copies `size` bytes from a rank's copy of symmetric memory. `source` lies in this rank's."""
        self._check(self.library.commsir_get(self._open, *_copy(peer, source, to, size, stream)))

    def reserve_signals(self, count: int) -> int:
        """Cells of signals on every rank, at first 0; the number of the first. Collective."""
        first = ctypes.c_int64()
        self._check(self.library.commsir_signals_reserve(self._open, ctypes.c_int64(count), ctypes.byref(first)))
        return first.value

    def signal(self, peer: int, cell: int, stream: int = 0, adds: bool = False) -> None:
        """A cell of a rank gets 1, or 1 more if it `adds`, behind what this rank has put there in the stream.

        On a GPU, a copy engine sets a cell, and a kernel adds to it.
        """
        given = ctypes.c_int64(cell), ctypes.c_int32(adds), ctypes.c_int64(1)
        self._check(self.library.commsir_signal(self._open, ctypes.c_int64(peer), *given, ctypes.c_void_p(stream)))

    def take_signal(self, cell: int, value: int, source: int, stream: int = 0) -> None:
        """Waits until a cell of this rank, which `source` signals, holds `value` or more, and takes so much from it.

        On a GPU the stream waits; `poll` raises what it waited for in vain.
        """
        taken = ctypes.c_int64(cell), ctypes.c_int64(value), ctypes.c_int64(source)
        self._check(self.library.commsir_take_signal(self._open, *taken, ctypes.c_void_p(stream)))

    def contains(self, data: int, size: int) -> bool:
        """Whether memory lies in one window."""
        return bool(self.library.commsir_window_contains(self.handle, ctypes.c_void_p(data), ctypes.c_size_t(size)))

    def set_timeout(self, timeout: timedelta) -> None:
        """Of waits that begin later."""
        self._check(self.library.commsir_group_set_timeout(self._open, ctypes.c_double(timeout.total_seconds())))

    def poll(self) -> None:
        """Raises what launches have reported since."""
        self._check(self.library.commsir_group_poll(self.handle))

    def ended(self) -> str:
        """Why the group can no longer be used; empty: it can."""
        return self._text(self.library.commsir_group_ended(self.handle))

    def counts(self) -> dict[str, Any]:
        """What the group has done."""
        return dict(json.loads(self._text(self.library.commsir_group_stats(self.handle)) or "{}"))

    def abort(self, reason: str) -> None:
        """Ends all waits. Any thread."""
        self.library.commsir_group_abort(self.handle, reason.encode())

    def destroy(self) -> None:
        """Ends the group, as all ranks do; may be called twice."""
        self._end("destroy")

    def drop(self) -> None:
        """The same where other ranks may go on: waits for none."""
        self._end("drop")

    # Late at the interpreter's exit the globals of modules are None: it brings its own.
    def __del__(
        self, is_finalizing: Callable[[], bool] = sys.is_finalizing, getpid: Callable[[], int] = os.getpid
    ) -> None:
        # In a child of fork it is the parent's; and who leaves the process has no time for this.
        if not is_finalizing() and getpid() == self._process:
            self.drop()

    def _end(self, how: str) -> None:
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            getattr(self.library, f"commsir_group_{how}")(handle)
