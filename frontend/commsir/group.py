"""One rank of a group of processes: symmetric memory, collectives, kernels of one's own."""

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
from commsir._arguments import int64 as _int64
from commsir._arguments import memory_of
from commsir._arrays import (
    Array,
    View,
    empty,
    handed,
    is_immutable,
    numpy_type,
    spelled,
    view,
)
from commsir._signature import Signature
from commsir._sources import kernel_text

if TYPE_CHECKING:
    import numpy as np
    import tvm_ffi

    from commsir._kernel import Kernel
    from commsir.window import GroupWindow

__all__ = ["Group", "GroupKernel", "StoreCallbacks", "Store"]


class Store(Protocol):
    """A store through which ranks meet. torch's stores have this interface."""

    def set(self, key: str, value: bytes) -> Any: ...

    def get(self, key: str) -> bytes:
        """Waits for the key."""
        ...


class StoreCallbacks:
    """A store for the library. Keeps the exception that it raised, because C cannot carry it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.raised: BaseException | None = None

    def set(self, key: str, value: bytes) -> None:
        try:
            self._go_on()
            self.store.set(str(key), bytes(value))
        except BaseException as error:
            self.raised = error
            raise

    def get(self, key: str, timeout: float) -> bytes:
        try:
            self._go_on()
            is_there = not hasattr(self.store, "check") or self._comes(str(key), timeout)  # torch's have it
        except BaseException as error:
            self.raised = error
            raise
        if not is_there:  # That is no failure of the store.
            raise TimeoutError(f"key '{key}' has not come within {timeout:.1f} s")
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
        """Ctrl-C and the like: no store is asked after it."""
        return None if isinstance(self.raised, Exception) else self.raised

    def _go_on(self) -> None:
        """The library asks a store again that has failed; but not after Ctrl-C."""
        if self.interrupt:
            raise self.interrupt

    def _comes(self, key: str, timeout: float) -> bool:
        """Waits of torch's stores warn of each one that has come to nothing."""
        store, end, pause = cast("Any", self.store), time.monotonic() + timeout, 0.0002
        while not store.check([key]):
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        return True

    def ask(self, name: str, *arguments: Any) -> Any:
        """Calls the binding with both functions at the end."""
        try:
            return _ask(name, *arguments, self.set, self.get)
        except errors.CommsError as error:
            if self.interrupt:
                raise self.interrupt from None
            raise error from self.raised


def _ask(name: str, *arguments: Any) -> Any:
    """Calls the binding, which returns [status, result, …]. Returns the results, or raises the error."""
    answer = _native.call(name, *arguments)
    if int(answer[0]) != 0:
        raise errors.from_json(int(answer[0]), str(answer[1]))
    return answer[1] if len(answer) == 2 else tuple(answer)[1:]


def _number(value: Any, kind: str, what: str) -> np.ndarray[Any, Any]:
    """A number of a kernel, which keeps its value: 3.5 is no i32, and 300 no i8."""
    import numpy as np

    whole = kind.startswith("i")
    try:
        near = float(value)
        exact: int | float = near
        if whole:
            exact = int(near) if near.is_integer() and not hasattr(value, "__index__") else operator.index(value)
    except (TypeError, ValueError, OverflowError):
        wanted = "whole number" if whole else "number"
        raise errors.UsageError(f"{what} is {value!r}, where a {wanted} ({kind}) is wanted") from None
    try:
        with np.errstate(over="ignore"):
            made = np.array(exact, numpy_type(kind))
        if np.isfinite(made) or not math.isfinite(near):
            return made
    except OverflowError:
        pass
    raise errors.UsageError(f"{what} is {value!r}, which does not fit {kind}")


class GroupKernel(Signature):
    """A kernel that a group has compiled. Called with its arguments, in order or by name."""

    def __init__(self, group: Group, handle: int, described: str, source: Any = None) -> None:
        super().__init__(described)
        #: The checker's verdict at compile time, its scope and assumptions, and the digest of the kernel.
        self.certificate = _native.Proof.read(json.loads(described)["proof"])
        self._group, self._handle, self._source = group, handle, source

    def _seen(self, argument: dict[str, Any], value: Any) -> View | None:
        """A value as the library takes it; None where the group has its own."""
        what, kind = f"argument '{argument['name']}' of kernel {self.name}", argument["kind"]
        if kind in ("signal", "counter"):
            return None
        if kind == "scalar":
            return view(_number(value, self.number_type(argument), what), what)
        seen = self._group._view(value, what, written=True)
        self.check(argument, "i8" if seen.type == "i1" else seen.type, seen.shape)
        return seen

    def __call__(self, *values: Any, stream: int | None = None, **named: Any) -> None:
        seen = [self._seen(argument, value) for argument, value in self.match(values, named)]
        with _in_terms_of(self._source):
            self._group._launch(self._handle, [one and one.tensor for one in seen], stream)
        for argument, one in zip(self.arguments, seen, strict=True):
            if one and not one.is_as_it_was():
                raise errors.UsageError(
                    f"kernel {self.name} writes argument '{argument['name']}', but its array is read-only: "
                    "pass a copy of it"
                )


def _in_terms_of(source: Any) -> contextlib.AbstractContextManager[None]:
    """Errors about a kernel in Python are in its terms; MLIR keeps its own."""
    if not hasattr(source, "__commsir_function__"):
        return contextlib.nullcontext()
    from commsir.language import diagnostics

    return diagnostics.in_terms_of(source)


def _address(communicator: Any, ordinal: int) -> int:
    """Address of an ncclComm_t; 0: none."""
    if communicator is None:
        return 0
    address = communicator if isinstance(communicator, int) else getattr(communicator, "ptr", None)
    # The first pages of memory are nobody's: NCCL would end the process.
    if not isinstance(address, int) or not 65536 <= address < 2**63 or address % 8:
        raise errors.UsageError(
            f"{communicator!r} is no NCCL communicator that can be used: give nccl4py's, initialized, the address of "
            "an ncclComm_t (commsir.torch.nccl_communicator() has torch's), or None for one of the group's own"
        )
    if ordinal < 0:
        raise errors.UsageError("an NCCL communicator joins GPUs: give the group its GPU as well (device=0)")
    return address


def _ordinal(device: Any) -> int:
    """The number of a GPU; -1: the CPU."""
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
    for what, number in (("rank", rank), ("number of ranks", ranks)):
        if not hasattr(number, "__index__"):
            raise errors.UsageError(f"the {what} is {number!r}, which is not an integer: write int(…)")
    if not hasattr(timeout, "__float__") or not timeout > 0:
        raise errors.UsageError(f"the timeout is {timeout!r}, but has to be more than 0 seconds, as a number")
    if store is not None and not (hasattr(store, "set") and hasattr(store, "get")):
        raise errors.UsageError(f"a store has set(key, value) and get(key), which a {type(store).__name__} has not")


class Group:
    """This process as one rank of `ranks`. All ranks make it, with the same name, and call the same things in order.

    Ranks meet in `folder`, which all see, or through `store`. `device` is "cpu" or a GPU: its number, "cuda:0", or a
    device of torch. `timeout` is in seconds. `communicator` is an NCCL communicator over these ranks, in their order,
    which the group then uses and its owner keeps: nccl4py's, or the address of an ncclComm_t.

    Several threads may use one group. What all ranks call takes turns, in the order in which the threads came, which
    has to be the same on all ranks unless the calls are equal: else give each thread a group. Puts, gets, signals and
    waits of windows, `abort`, `poll` and `stats` run beside that.
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

    def _beside(self, what: str) -> Group:
        """A CPU group of the same ranks for exchanging Python data. Collective."""
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
        return "cpu" if self._ordinal < 0 else f"cuda:{self._ordinal}"

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.ranks} on {self.device}>"

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
            self._let_go(waits=False)

    def close(self) -> None:
        """Lets go of the group. Its memory stays for as long as an array of it does.

        On GPUs all ranks do so, and wait for each other for a few seconds. A group that is dropped instead waits for
        nobody, and gives its memory back when all ranks have dropped it.

        Other threads' calls fail from now on (AbortedError), as do those that wait for signals or for their turns;
        others have 5 s to end before the group is aborted. Join the threads first.
        """
        self._let_go(waits=True)

    def _let_go(self, waits: bool) -> None:
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
        """Allocates a zeroed array in symmetric memory. Collective. Every rank can access the other ranks' parts.

        On the CPU it is a NumPy array, on a GPU an object that has DLPack alone, or else what `to` makes of that:
        `torch.from_dlpack`. It may not be JAX's, whose arrays never change.
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
        """A zeroed array on each rank that the others put to and get from, with `signals` cells: all ranks call this.

        See GroupWindow. `to` as in `allocate`.
        """
        from commsir.window import GroupWindow

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
        except errors.CommsError:
            self.release(array)
            raise
        return GroupWindow(self, array, first, count, to)

    def release(self, array: Array) -> None:
        """Gives memory of `allocate` back: all ranks call this.

        On the CPU it goes with the last array of it; on a GPU at once, and arrays of it are nobody's to use.
        """
        base = self._extent(array)[0]
        if self._handle and (window := self._windows.get(base)):
            window._end()
        _ask("window_release", self._handle, base)

    def share(self, array: Array) -> None:
        """Makes an array of this rank's GPU, whoever allocated it, a window: kernels then use it in place.

        All ranks call this, with arrays of one size. The memory may be cudaMalloc's, ncclMemAlloc's, or of a pool over
        them; it must stay until `forget` on all ranks, or the group's end. An array on the CPU cannot be shared once it
        is there: `allocate` it.
        """
        if is_immutable(array):
            raise errors.UsageError(
                "JAX's arrays never change, so that there is nothing to use again: share one of torch"
            )
        _ask("window_share", self._handle, *self._extent(array))

    def forget(self, array: Array) -> None:
        """Ends what `share` began, on this rank."""
        _native.call("window_forget", self._handle, self._extent(array)[0])

    def is_symmetric(self, array: Array) -> bool:
        """Whether the array lies in a window of this group, so that collectives need not copy it."""
        return bool(_native.call("window_contains", self._handle, *self._extent(array)))

    def _extent(self, array: Array) -> tuple[int, int]:
        """Address and bytes."""
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

    def _done_with(self, seen: View | None, stream: int) -> None:
        """After a call that reads an array of JAX: that may go at any time, and its memory is then used again."""
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
        """A collective by the name of its op, with its parts one after the other. The functions below are this.

        It goes into `stream`, a cudaStream_t: by default torch's current stream, or, without torch, CUDA's default one.
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
            raise errors.UsageError(f'{op}: the reduction is {reduction!r}, but has to be a text: "sum", "max", …')
        used = self._stream(stream)
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
                self._done_with(source, used)  # Some pieces may be on their way.
            raise errors.from_json(int(answer[0]), str(answer[1]))
        self._done_with(source, used)

    def _new(self, op: str, input: Array, shape: tuple[int, ...], **options: Any) -> Array:  # noqa: A002
        """A collective into a new array of the input's library."""
        self._view(input, "the input")  # What is wrong with it comes first.
        made = empty(input, shape)
        self.collective(op, input, made, **options)
        return handed(made, input)

    def all_reduce(self, input: Array, output: Array | None = None, *, op: str = "sum", **options: Any) -> Array:  # noqa: A002
        """Into `output`, or in place; of an array of JAX into a new one. Returns where the result is."""
        if output is None:
            if is_immutable(input):
                return self._new("all_reduce", input, _shape(input), reduction=op, **options)
            output = input
        self.collective("all_reduce", input, output, reduction=op, **options)
        return output

    def all_gather(self, input: Array, output: Array | None = None, **options: Any) -> Array:  # noqa: A002
        """`output` has every rank's `input`, in rank order: without one a new array, of all rows."""
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
        """`output` is this rank's part of the reduced `input`: without one a new array, of its part of the rows."""
        if output is None:
            rows, *rest = _shape(input) or (1,)
            if rows % self.ranks:
                raise errors.UsageError(f"reduce_scatter: {rows} rows are no equal parts for {self.ranks} ranks")
            return self._new("reduce_scatter", input, (rows // self.ranks, *rest), reduction=op, **options)
        self.collective("reduce_scatter", input, output, reduction=op, **options)
        return output

    def all_to_all(self, input: Array, output: Array | None = None, **options: Any) -> Array:  # noqa: A002
        """Part p of `input` goes to rank p. Without an output into a new array like the input."""
        if output is None:
            return self._new("all_to_all", input, _shape(input), **options)
        self.collective("all_to_all", input, output, **options)
        return output

    def broadcast(self, array: Array, *, root: int = 0, **options: Any) -> Array:
        """The root's array, in place; of arrays of JAX in a new one. Returns where it is."""
        if is_immutable(array):
            return self._new("broadcast", array, _shape(array), root=root, **options)
        self.collective("broadcast", array, array, root=root, **options)
        return array

    # --- kernels ---

    def kernel(
        self, source: str | os.PathLike[str] | Kernel, name: str = "", *, concurrent: bool = False, **options: Any
    ) -> GroupKernel:
        """Compiles a kernel for this group. Collective. The source is a `@commsir.kernel`, whose open dimensions are
        given by name, MLIR text, or a file of it. Options: algorithm, protocol, blocks, threads, cluster, check. On
        GPUs, launches of a `concurrent` kernel need not follow the group's other launches; the kernel must fit the GPU
        at the same time."""
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
        """Launches, kernels compiled and from the cache, bytes, arrays used in place and staged."""
        return cast("dict[str, int]", json.loads(str(_ask("group_stats", self._handle))))

    def poll(self) -> None:
        """Raises the first failure that a launch on a GPU has reported since. Does not wait."""
        _ask("group_poll", self._handle)

    def finish(self, stream: int | None = None) -> None:
        """Waits until all work in the stream has ended, and raises the first failure reported since the last call.

        On the CPU calls have ended when they return.
        """
        _ask("group_finish", self._handle, self._stream(stream))

    def abort(self, reason: str = "aborted") -> None:
        """Ends all waits of this rank, in flight and to come. From any thread."""
        _ask("group_abort", self._handle, reason)

    def shrink(self, survivors: Sequence[int], store: Store) -> Group:
        """A new group of the ranks that are left; those call this, and this group is aborted."""
        ranks = [_int64(rank, "a survivor") for rank in survivors]
        if self.rank not in ranks:
            raise errors.UsageError(f"rank {self.rank} is not among the survivors {ranks}")
        handle = StoreCallbacks(store).ask("group_shrink", self._handle, ranks)
        made = Group.__new__(Group)
        made._adopt(int(handle), ranks.index(self.rank), len(ranks), self._ordinal)
        made._meets("-".join([self._name, *map(str, ranks)]), None, store)
        return made


def _type_for(op: str, reduction: str, seen: View) -> str:
    """The type that a collective calculates with: integers have a sign there, and there are no booleans."""
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
        raise errors.UsageError(f"the shape is {shape!r}, but has to be a whole number or several") from None
    return tuple(_int64(size, f"a size of the shape {sizes}") for size in sizes)


def _shape(array: Array) -> tuple[int, ...]:
    return tuple(int(size) for size in getattr(array, "shape", ()))
