"""One rank of a group of processes: symmetric memory, collectives, and user kernels."""

from __future__ import annotations

import contextlib
import json
import math
import operator
import os
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, cast

from commsir import _native, errors
from commsir._arguments import OfThisProcess, memory_of, number
from commsir._arguments import int64 as _int64
from commsir._arrays import (
    Array,
    View,
    empty,
    is_immutable,
    numpy_type,
    spelled,
    to_library_of,
    truths,
    view,
)
from commsir._binding import refuse_zero_bytes
from commsir._signature import Signature
from commsir._sources import kernel_text
from commsir.window import GroupWindow

if TYPE_CHECKING:
    import numpy as np
    import tvm_ffi

    from commsir._kernel import Kernel

__all__ = ["Group", "GroupKernel", "StoreCallbacks", "Store"]

#: The most dimensions of an array.
_MOST_SIZES = 64


class Store(Protocol):
    """A store through which ranks meet. torch's stores have this interface."""

    def set(self, key: str, value: bytes) -> Any: ...

    def get(self, key: str) -> bytes:
        """Waits for the key."""
        ...


class StoreCallbacks:
    """Lets the library use a Python store. Keeps the exception that the store raised, because C cannot carry it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.raised: BaseException | None = None

    def set(self, key: str, value: bytes) -> None:
        try:
            self._should_retry()
            self.store.set(str(key), bytes(value))
        except BaseException as error:
            self.raised = error
            raise

    def get(self, key: str, timeout: float) -> bytes:
        try:
            self._should_retry()
            is_there = not hasattr(self.store, "check") or self._wait_for_key(str(key), timeout)  # torch's have it
        except BaseException as error:
            self.raised = error
            raise
        if not is_there:  # That is no failure of the store.
            raise TimeoutError(f"key '{key}' has not arrived within {timeout:.1f} s")
        try:
            value = bytes(self.store.get(str(key)))
            # A key that has come late is no reason for a failure.
            self.raised = None
            return value
        except BaseException as error:
            self.raised = error
            raise

    @property
    def interrupt(self) -> BaseException | None:
        """Records Ctrl-C or a similar exception. The store is not asked after that."""
        return None if isinstance(self.raised, Exception) else self.raised

    def _should_retry(self) -> None:
        """Raises after Ctrl-C. Otherwise the library may ask a store again that has failed."""
        if self.interrupt:
            raise self.interrupt

    def _wait_for_key(self, key: str, timeout: float) -> bool:
        """Waits for a key with short waits, because torch's stores log a warning for each wait that times out."""
        store, end, pause = cast("Any", self.store), time.monotonic() + timeout, 0.0002
        while not store.check([key]):
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        return True

    def ask(self, name: str, *arguments: Any) -> Any:
        """Calls the binding with both callbacks as the last arguments."""
        try:
            return _ask(name, *arguments, self.set, self.get)
        except errors.CommsError as error:
            if self.interrupt:
                raise self.interrupt from None
            raise error from self.raised


def _ask(name: str, *arguments: Any) -> Any:
    """Calls the binding, which returns [status, result, …]. Returns the results, or raises the error."""
    refuse_zero_bytes(arguments)
    answer = _native.call(name, *arguments)
    if int(answer[0]) != 0:
        raise errors.from_json(int(answer[0]), str(answer[1]))
    return answer[1] if len(answer) == 2 else tuple(answer)[1:]


def _number(value: Any, kind: str, what: str) -> np.ndarray[Any, Any]:
    """Converts a number to a kernel's type without changing its value: 3.5 is not an i32, 300 is not an i8."""
    import numpy as np

    exact = number(value, kind, what)
    try:
        with np.errstate(over="ignore"):
            made = np.array(exact, numpy_type(kind))
        if np.isfinite(made) or not math.isfinite(exact):
            return made
    except OverflowError:
        pass
    raise errors.UsageError(f"{what} is {value!r}, which does not fit {kind}")


class GroupKernel(OfThisProcess, Signature):
    """A kernel that a group has compiled. Call it with its arguments, in order or by name."""

    def __init__(self, group: Group, handle: int, described: str, source: Any = None) -> None:
        super().__init__(described)
        #: The checker's verdict at compile time, its scope and assumptions, and the digest of the kernel.
        self.certificate = _native.Proof.read(json.loads(described)["proof"])
        self._group, self._handle, self._source = group, handle, source

    def _converted(self, argument: dict[str, Any], value: Any) -> View | None:
        """Converts a value for the library. Returns None if the group provides the argument."""
        what, kind = f"argument '{argument['name']}' of kernel {self.name}", argument["kind"]
        if kind in ("signal", "counter"):
            return None
        if kind == "scalar":
            return view(_number(value, self.number_type(argument), what), what)
        seen = self._group._view(value, what, written=True)
        self.check(argument, "i8" if seen.type == "i1" else seen.type, seen.shape)
        return seen

    def __call__(self, *values: Any, stream: int | None = None, **named: Any) -> None:
        seen = [self._converted(argument, value) for argument, value in self.match(values, named)]
        with _in_terms_of(self._source):
            self._group._launch(self._handle, [one and one.tensor for one in seen], stream)
        for argument, one in zip(self.arguments, seen, strict=True):
            if one and not one.is_unmodified():
                raise errors.UsageError(
                    f"kernel {self.name} writes argument '{argument['name']}', but its array is read-only: "
                    "pass a copy of it"
                )


def _in_terms_of(source: Any) -> contextlib.AbstractContextManager[None]:
    """Rewrites errors about a Python kernel in Python terms. Errors about MLIR text stay as they are."""
    if not hasattr(source, "__commsir_function__"):
        return contextlib.nullcontext()
    from commsir.language import diagnostics

    return diagnostics.in_terms_of(source)


def _address(communicator: Any, ordinal: int) -> int:
    """Returns the address of an ncclComm_t; 0: none."""
    if communicator is None:
        return 0
    address = communicator if isinstance(communicator, int) else getattr(communicator, "ptr", None)
    # The first pages of memory are nobody's: NCCL would end the process.
    if not isinstance(address, int) or not 65536 <= address < 2**63 or address % 8:
        raise errors.UsageError(
            f"{communicator!r} is not a usable NCCL communicator: give nccl4py's, initialized, the address of "
            "an ncclComm_t (commsir.torch.nccl_communicator() has torch's), or None for one of the group's own"
        )
    if ordinal < 0:
        raise errors.UsageError("an NCCL communicator joins GPUs: give the group its GPU as well (device=0)")
    return address


def _ordinal(device: Any) -> int:
    """Returns the number of a GPU; -1 for the CPU."""
    if hasattr(device, "__index__"):
        return _gpu(operator.index(device))
    name = str(device)
    number = name.removeprefix("cuda:")
    if name != "cpu" and not number.isdigit():
        raise errors.UsageError(f'there is no device \'{name}\': write "cpu", or a GPU by its number: 0 or "cuda:0"')
    return -1 if name == "cpu" else _gpu(int(number))


def _gpu(number: int) -> int:
    if not -(2**31) <= number < 2**31:  # The library would take another for it.
        raise errors.UsageError(f"there is no GPU {number}")
    return number


def _check_options(rank: Any, ranks: Any, folder: Any, store: Any, timeout: Any) -> None:
    if (folder is None) == (store is None):
        raise errors.UsageError("a group meets in a folder or through a store: give one of them")
    for what, given in (("rank", rank), ("number of ranks", ranks)):
        if not hasattr(given, "__index__"):
            raise errors.UsageError(f"the {what} is {given!r}, which is not an integer: write int(…)")
    if not hasattr(timeout, "__float__") or not timeout > 0:
        raise errors.UsageError(f"the timeout is {timeout!r}, but must be more than 0 seconds, as a number")
    if store is not None and not (hasattr(store, "set") and hasattr(store, "get")):
        raise errors.UsageError(
            f"a store needs set(key, value) and get(key), which a {type(store).__name__} does not have"
        )


class Group(OfThisProcess):
    """This process as one rank of a group of `ranks` processes.

    All ranks create the group with the same name, and make the same calls in the same order. They meet in `folder`,
    which all can access, or through `store`. `device` is "cpu" or a GPU: its number, "cuda:0", or a torch device.
    `timeout` is in seconds. `communicator` is an NCCL communicator over these ranks, in their order: nccl4py's, or the
    address of an ncclComm_t. The group uses it, and its owner keeps it.

    Several threads may use one group. Collective calls take turns in the order in which the threads arrive. That order
    must be the same on all ranks, unless the calls are equal; otherwise give each thread its own group. Puts, gets,
    signals and waits of windows, `abort`, `poll` and `stats` run concurrently with them.
    """

    def __init__(
        self,
        rank: int,
        ranks: int,
        *,
        folder: str | os.PathLike[str] | None = None,
        store: Store | None = None,
        name: str = "world",
        device: Any = "cpu",
        timeout: float = 300,
        communicator: Any = None,
    ) -> None:
        _check_options(rank, ranks, folder, store, timeout)
        ordinal = _ordinal(device)
        rank, ranks = _int64(rank, "the rank"), _int64(ranks, "the number of ranks")
        arguments = (name, rank, ranks, ordinal, float(timeout), _address(communicator, ordinal), 0)
        handle = (
            StoreCallbacks(store).ask("group_create", *arguments, "")
            if store is not None
            else _ask("group_create", *arguments, os.fspath(cast("str", folder)), None, None)
        )
        self._adopt(int(handle), rank, ranks, ordinal)
        self._meets(name, folder, store)

    def _meets(self, name: str, folder: str | os.PathLike[str] | None, store: Store | None) -> None:
        self._name, self._folder, self._store, self._besides = name, folder, store, 0

    def _make_cpu_group(self, what: str) -> Group:
        """Makes a CPU group of the same ranks, to exchange Python data. Collective."""
        self._besides += 1
        name = f"{self._name}-{what}-{self._besides}"
        return Group(self.rank, self.ranks, folder=self._folder, store=self._store, name=name)

    def _adopt(self, handle: int, rank: int, ranks: int, ordinal: int) -> None:
        self._handle, self.rank, self.ranks, self._ordinal = handle, rank, ranks, ordinal
        self._place = "cpu:0" if ordinal < 0 else f"cuda:{ordinal}"
        #: By address: whoever releases the array of one ends it.
        self._windows: weakref.WeakValueDictionary[int, GroupWindow] = weakref.WeakValueDictionary()
        library = _native.library()
        self._collective = library.get_function("group_collective")
        self._kernel_launch = library.get_function("kernel_launch")

    @property
    def device(self) -> str:
        """ "cpu", or the GPU as "cuda:0"."""
        return "cpu" if self._ordinal < 0 else f"cuda:{self._ordinal}"

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.ranks} on {self.device}{', closed' * (not self._handle)}>"

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is not None:
            self.abort(f"rank {self.rank} raised {type(value).__name__}: {value}")
        self.close()

    # Late at the interpreter's exit the globals of modules are None: it brings its own.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_handle", 0) and not is_finalizing():
            self._destroy_handle(waits=False)

    def close(self) -> None:
        """Closes the group. Its memory lives as long as an array refers to it.

        On GPUs all ranks call this, and wait for each other for a few seconds. A group that is garbage-collected
        instead waits for nobody; its memory is freed when all ranks have dropped it.

        Calls of other threads fail with AbortedError from now on, including those that wait for signals or for their
        turn. Calls in progress get 5 s to end before the group is aborted. Join the threads first.
        """
        self._destroy_handle(waits=True)

    def _destroy_handle(self, waits: bool) -> None:
        handle, self._handle = self._handle, 0
        if handle:
            _native.call("group_close", handle, waits)

    # --- memory ---

    def allocate(
        self,
        shape: SupportsIndex | Sequence[SupportsIndex],
        dtype: Any = "f32",
        *,
        to: Callable[[Any], Any] | None = None,
    ) -> Array:
        """Allocates a zeroed array in symmetric memory. Collective, with the same arguments on all ranks.

        `shape` is a size or several, in elements of the type `dtype` ("f32", or NumPy's or torch's). Every rank can
        access the other ranks' parts. On the CPU the result is a NumPy array. On a GPU it is an object that supports
        only DLPack, or the result of `to`, for example `torch.from_dlpack`. `to` must not be JAX's function, because
        JAX arrays are immutable.
        """
        sizes, (kind, name) = _sizes(shape), spelled(dtype)
        tensor = _ask("window_allocate", self._handle, self._ordinal, list(sizes), name)
        if to is not None:
            made = to(tensor)
            if is_immutable(made):
                base = int(tensor.data_ptr())
                del made, tensor  # Nobody has what is released.
                _ask("window_release", self._handle, base)
                raise errors.UsageError("JAX's arrays never change, and peers write to windows: make one of torch")
            return made
        if self._ordinal >= 0:
            return tensor
        array = memory_of(tensor, sizes, kind)
        return array.view(name) if name.startswith("uint") else array

    def window(
        self,
        shape: SupportsIndex | Sequence[SupportsIndex],
        dtype: Any = "f32",
        *,
        signals: int = 8,
        to: Callable[[Any], Any] | None = None,
    ) -> GroupWindow:
        """Allocates a zeroed array on each rank that the others can put to and get from, with `signals` cells.
        Collective.

        See GroupWindow. `shape`, `dtype` and `to` are as in `allocate`. If ranks differ in an argument, all of them get
        a DisagreementError.
        """
        count = _int64(signals, "the number of signals")
        try:
            array = self.allocate(shape, dtype, to=to)
        except errors.DisagreementError as error:
            if str(error).count("allocat") < 2:  # Another rank calls something else.
                raise
            raise errors.DisagreementError(
                f"rank {self.rank} makes a window of {_sizes(shape)} {spelled(dtype)[0]}, another rank another: {error}"
            ) from None
        try:
            first = int(_ask("signals_reserve", self._handle, count))
        except errors.CommsError as error:
            self.release(array)
            if not isinstance(error, errors.DisagreementError):
                raise
            raise errors.DisagreementError(
                f"rank {self.rank} makes a window of {count} signals, another rank of another number: {error}"
            ) from None
        return GroupWindow(self, array, first, count, to)

    def release(self, array: Array) -> None:
        """Frees memory of `allocate`. Collective.

        On the CPU the memory lives until its last array is gone. On a GPU it is freed at once, and its arrays must not
        be used any more.
        """
        base = self._extent(array)[0]
        if self._handle and (window := self._windows.get(base)):
            window._end()
        _ask("window_release", self._handle, base)

    def share(self, array: Array) -> None:
        """Registers an array on this rank's GPU as a window, so that kernels use it in place. Collective.

        All ranks pass arrays of one size. The memory may come from cudaMalloc, ncclMemAlloc, or a pool over them. It
        must stay allocated until `forget` on all ranks, or until the group ends. CPU arrays cannot be registered; use
        `allocate`.
        """
        if is_immutable(array):
            raise errors.UsageError(
                "JAX's arrays never change, so that there is nothing to use again: share one of torch"
            )
        _ask("window_share", self._handle, *self._extent(array))

    def forget(self, array: Array) -> None:
        """Ends the registration of `array` by `share`, on this rank. Waits for other threads' calls that use it."""
        _native.call("window_forget", self._handle, self._extent(array)[0])

    def is_symmetric(self, array: Array) -> bool:
        """Whether the array lies in a window of this group, so that collectives use it without a copy."""
        return bool(_native.call("window_contains", self._handle, *self._extent(array)))

    def _extent(self, array: Array) -> tuple[int, int]:
        """Returns the address and the size in bytes."""
        seen = self._view(array)
        tensor = seen.tensor
        size = (int(tensor.dtype.bits) + 7) // 8 * math.prod(seen.shape)
        return int(tensor.data_ptr() if seen.frozen is None else seen.frozen.ctypes.data), size

    def _view(self, array: Array, what: str = "the array", *, written: bool = False) -> View:
        return view(array, what, self._place, written=written)

    def _stream(self, stream: int | None) -> int:
        if stream is not None or self._ordinal < 0:
            return 0 if stream is None else _int64(stream, "the stream")
        torch = sys.modules.get("torch")
        if torch is None or torch.version.cuda is None:
            return 0
        return int(torch.cuda.current_stream(self._ordinal).cuda_stream)

    def _wait_for_reads(self, seen: View | None, stream: int) -> None:
        """Waits until a call has read a JAX array. JAX may free the array at any time and use its memory again."""
        if seen is not None and seen.immutable and self._ordinal >= 0:
            _ask("group_finish", self._handle, stream)

    # --- collectives ---

    def collective(
        self,
        op: str,
        input: Array | None,  # noqa: A002
        output: Array | None,
        *,
        reduction: str = "",
        root: int = 0,
        peer: int = 0,
        algorithm: str = "",
        protocol: str = "",
        stream: int | None = None,
    ) -> None:
        """Runs the collective `op`, such as "all_gather", on its arrays. Collective. The methods below call this.

        `input` and `output` have one element type, and the sizes of the op (docs/Groups.md); None: this rank has no
        such array. `reduction` is "sum", "prod", "min", "max" or "avg", for integers also "and", "or" or "xor". `root`
        is the rank of ops that have one; `peer` the other rank of "send" and "recv". `algorithm` and `protocol` name a
        choice; "": by size and machine. On the CPU the call has ended when it returns. On a GPU it is queued in
        `stream`, a cudaStream_t: by default torch's current stream or, without torch, CUDA's default stream. Errors:
        UsageError, DisagreementError if ranks make different calls, DeadlockError if a peer is late.
        """
        source = None if input is None else self._view(input, "the input")
        target = source if output is input else None if output is None else self._view(output, "the output")
        if target is not None and not target.is_writable():
            why = (
                "is a JAX array, which is immutable: leave it out, and take what the call returns"
                if target.immutable
                else "is read-only: pass an array that can be written"
            )
            raise errors.UsageError(f"the output {why}")
        if source is not None and target is not None and source.type != target.type:
            raise errors.UsageError(f"the input is {source.type}, but the output {target.type}: they must be alike")
        one = source or target
        if one is None:
            raise errors.UsageError(f"{op} needs an array")
        if not isinstance(reduction, str):
            raise errors.UsageError(f'{op}: the reduction is {reduction!r}, but must be a text: "sum", "max", …')
        used = self._stream(stream)
        if source is not None and one.type == "i1" and reduction:
            source = self._view(truths(input, used), "the input")
        answer = self._collective(
            self._handle,
            op,
            reduction,
            one.type if one.type[0] != "i" else _type_for(op, reduction, one),
            _int64(root, "the root"),
            _int64(peer, "the peer"),
            source and source.tensor,
            target and target.tensor,
            algorithm,
            protocol,
            used,
        )
        if int(answer[0]) != 0:
            with contextlib.suppress(errors.CommsError):
                self._wait_for_reads(source, used)  # Some pieces may be on their way.
            raise errors.from_json(int(answer[0]), str(answer[1]))
        self._wait_for_reads(source, used)

    def _new(self, op: str, input: Array, shape: tuple[int, ...], **options: Any) -> Array:  # noqa: A002
        """Runs a collective into a new array of the input's library."""
        self._view(input, "the input")  # What is wrong with it comes first.
        made = empty(input, shape)
        self.collective(op, input, made, **options)
        return to_library_of(made, input)

    def all_reduce(self, input: Array, output: Array | None = None, *, op: str = "sum", **options: Any) -> Array:  # noqa: A002
        """Reduces `input` over all ranks into `output`, or in place. Collective; see `collective` for `options`, order
        and errors.

        `op` is "sum", "prod", "min", "max" or "avg", for integers also "and", "or" or "xor". Every rank gets the same
        bits. A JAX array is reduced into a new array. Returns the array with the result.
        """
        if output is None:
            if is_immutable(input):
                return self._new("all_reduce", input, _shape(input), reduction=op, **options)
            output = input
        self.collective("all_reduce", input, output, reduction=op, **options)
        return output

    def all_gather(self, input: Array, output: Array | None = None, **options: Any) -> Array:  # noqa: A002
        """Gathers every rank's `input` into `output`, in rank order. Without `output`, returns a new array with all
        rows. Collective; see `collective` for `options`.
        """
        if output is None:
            rows, *rest = _shape(input) or (1,)
            return self._new("all_gather", input, (rows * self.ranks, *rest), **options)
        self.collective("all_gather", input, output, **options)
        return output

    def reduce_scatter(
        self,
        input: Array,  # noqa: A002
        output: Array | None = None,
        *,
        op: str = "sum",
        **options: Any,
    ) -> Array:
        """Writes this rank's part of the reduced `input` to `output`: of N ranks, rows r / N to (r + 1) / N. Without
        `output`, returns a new array with that part. Collective; `op` is as for `all_reduce`, see `collective` for
        `options`.
        """
        if output is None:
            rows, *rest = _shape(input) or (1,)
            if rows % self.ranks:
                raise errors.UsageError(
                    f"reduce_scatter: {rows} rows cannot be divided equally among {self.ranks} ranks"
                )
            return self._new("reduce_scatter", input, (rows // self.ranks, *rest), reduction=op, **options)
        self.collective("reduce_scatter", input, output, reduction=op, **options)
        return output

    def all_to_all(self, input: Array, output: Array | None = None, **options: Any) -> Array:  # noqa: A002
        """Sends part p of `input` to rank p. Without `output`, returns a new array with the shape of `input`.
        Collective; see `collective` for `options`.
        """
        if output is None:
            return self._new("all_to_all", input, _shape(input), **options)
        self.collective("all_to_all", input, output, **options)
        return output

    def broadcast(self, array: Array, *, root: int = 0, **options: Any) -> Array:
        """Copies the array of rank `root` to every rank, in place; JAX arrays into a new array. Returns the array with
        the result. Collective; see `collective` for `options`.
        """
        if is_immutable(array):
            return self._new("broadcast", array, _shape(array), root=root, **options)
        self.collective("broadcast", array, array, root=root, **options)
        return array

    # --- kernels ---

    def kernel(
        self, source: str | os.PathLike[str] | Kernel, name: str = "", *, concurrent: bool = False, **options: Any
    ) -> GroupKernel:
        """Compiles a kernel for this group. Collective.

        The source is a `@commsir.kernel`, with sizes for its open dimensions by name, MLIR text, or an MLIR file.
        `options` are those sizes and algorithm, protocol, blocks, threads, cluster, check. On GPUs, launches of a
        `concurrent` kernel need not be ordered with the group's other launches; it must fit on the GPU together with
        them.
        """
        if concurrent is not False:
            options["concurrent"] = concurrent
        text = kernel_text(source, self.ranks, options)
        with _in_terms_of(source):
            handle, described = _ask("group_kernel", self._handle, text, name, json.dumps(options))
        return GroupKernel(self, int(handle), str(described), source)

    def _launch(self, kernel: int, tensors: list[tvm_ffi.Tensor | None], stream: int | None) -> None:
        answer = self._kernel_launch(self._handle, kernel, tensors, self._stream(stream))
        if int(answer[0]) != 0:
            raise errors.from_json(int(answer[0]), str(answer[1]))

    # --- the rest ---

    def stats(self) -> dict[str, int]:
        """Returns counters: launches, kernels compiled and loaded from the cache, bytes, arrays used in place and
        staged.
        """
        return cast("dict[str, int]", json.loads(str(_ask("group_stats", self._handle))))

    def poll(self) -> None:
        """Raises the first failure that a launch on a GPU has reported since the last call. Does not wait."""
        _ask("group_poll", self._handle)

    def finish(self, stream: int | None = None) -> None:
        """Waits until all work in the stream has ended. Raises the first failure reported since the last call.

        On the CPU, calls have ended when they return.
        """
        _ask("group_finish", self._handle, self._stream(stream))

    def abort(self, reason: str = "aborted") -> None:
        """Ends all current and future waits of this rank, and of its peers for it. Any thread may call it.

        Calls fail with AbortedError from now on; its text has `reason`.
        """
        _ask("group_abort", self._handle, reason)

    def shrink(self, survivors: Sequence[int], store: Store) -> Group:
        """Makes a new group of the surviving ranks and aborts this one. All survivors call this.

        `survivors` are ascending ranks of this group, the same list on all of them; a rank's place in it is its new
        rank. Survivors find each other through `store`.
        """
        ranks = [_int64(rank, "a survivor") for rank in survivors]
        if self.rank not in ranks:
            raise errors.UsageError(f"rank {self.rank} is not among the survivors {ranks}")
        handle = StoreCallbacks(store).ask("group_shrink", self._handle, ranks)
        made = Group.__new__(Group)
        made._adopt(int(handle), ranks.index(self.rank), len(ranks), self._ordinal)
        made._meets("-".join([self._name, *map(str, ranks)]), None, store)
        return made


def _type_for(op: str, reduction: str, seen: View) -> str:
    """Returns the element type that a collective computes with: integers are signed, and booleans are integers."""
    if reduction in ("min", "max", "avg") and seen.is_unsigned():
        raise errors.UsageError(
            f"{op}: {reduction} requires signed integers, but the array is unsigned: convert it to a wider "
            "signed type, or, if its numbers are small enough, pass a view of it as the signed type"
        )
    if seen.type != "i1":
        return seen.type
    if reduction in ("sum", "prod", "avg"):
        raise errors.UsageError(
            f'{op}: there is no {reduction} of booleans: say op="max" (any rank\'s) or op="min" (all ranks\')'
        )
    return "i8"  # 0 or 1.


def _sizes(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(size) for size in ((shape,) if hasattr(shape, "__index__") else shape))
    except TypeError:
        raise errors.UsageError(f"the shape is {shape!r}, but must be a whole number or several") from None
    if len(sizes) > _MOST_SIZES:
        raise errors.UsageError(f"the shape has {len(sizes)} sizes, but at most {_MOST_SIZES} are possible")
    return tuple(_int64(size, f"a size of the shape {sizes}") for size in sizes)


def _shape(array: Array) -> tuple[int, ...]:
    return tuple(int(size) for size in getattr(array, "shape", ()))
