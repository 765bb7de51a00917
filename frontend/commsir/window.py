"""Symmetric memory that other ranks read and write without a call on the owner's side."""

from __future__ import annotations

import math
import operator
import threading
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from commsir import _native, errors
from commsir._arguments import OfThisProcess, memory_of, whole
from commsir._arguments import int64 as _int64
from commsir._arrays import Array, View, dlpack_name, empty

if TYPE_CHECKING:
    import tvm_ffi

__all__ = ["Place", "GroupWindow"]

Place = int | tuple[int, ...]
"""A place in a window, as NumPy's: `array[at]`, of whole numbers from 0 on."""

_SIGNALS = {"set": 0, "add": 1}
_COMPARISONS = {"eq": 0, "ge": 1}


def _choose(choices: dict[str, int], name: str, what: str) -> int:
    if name not in choices:
        raise errors.UsageError(f"there is no {what} '{name}': it is one of {', '.join(choices)}")
    return choices[name]


def _signal_number(value: Any) -> int:
    """Validates a value for a signal cell."""
    number = whole(value, "the number of a signal")
    if not 0 <= number < 2**63:
        raise errors.UsageError(f"cells of signals hold numbers from 0 to 2^63 - 1, not {number}")
    return number


class WindowGroup(Protocol):
    """What a window uses of its group: `commsir.Group`, whose module imports this one."""

    rank: int
    ranks: int
    _handle: int
    _ordinal: int
    _windows: weakref.WeakValueDictionary[int, GroupWindow]

    def _view(self, array: Array, what: str = "the array") -> View: ...
    def _stream(self, stream: int | None) -> int: ...
    def _wait_for_reads(self, seen: View | None, stream: int) -> None: ...


class GroupWindow(OfThisProcess):
    """An array on each rank, with signal cells. `Group.window` makes it, collectively.

    Data that a rank puts before a signal is visible to a peer after the peer's wait for that signal. Accesses that no
    signal orders are data races, as between threads.
    """

    def __init__(self, group: WindowGroup, array: Array, first: int, signals: int, to: Any = None) -> None:
        seen = group._view(array)
        self.group, self.signals = group, signals
        self.type, self.shape = seen.type, seen.shape
        self._first, self._to = first, to
        #: None: released. Then nothing here keeps the memory, whose address may soon be another window's.
        self._kept: tuple[Array, tvm_ffi.Tensor] | None = (array, seen.tensor)
        self._ending = threading.Lock()
        self._base = int(seen.tensor.data_ptr())
        self._itemsize = (int(seen.tensor.dtype.bits) + 7) // 8
        library = _native.library()
        self._put, self._get = library.get_function("window_put"), library.get_function("window_get")
        self._put_signal = library.get_function("window_put_signal")
        self._signal, self._wait = library.get_function("signal_send"), library.get_function("signal_wait")
        self._read = library.get_function("signal_read")
        group._windows[self._base] = self

    @property
    def array(self) -> Array:
        """This rank's part."""
        return self._memory[0]

    @property
    def tensor(self) -> Array:
        """`array`, if it is a torch tensor."""
        return self.array

    def __repr__(self) -> str:
        cells = f"cells {self._first} to {self._first + self.signals - 1} of the group"
        if self._kept is None:
            cells = "released"
        return f"<window {self.type} {self.shape} of rank {self.group.rank} of {self.group.ranks}, {cells}>"

    def release(self) -> None:
        """Frees the memory and the signal cells. Collective; the window cannot be used afterwards.

        On the CPU the memory lives until its last array is gone. On a GPU it is freed at once, and its arrays must not
        be used any more. A wait of another thread for a cell of this window raises UsageError.
        """
        with self._ending:  # Of several threads one does.
            handle = self._handle
            if handle:  # Of a group that was closed arrays keep their memory.
                self._end()
        _check(_native.call("signals_release", handle, self._first))
        _check(_native.call("window_release", handle, self._base))

    def _end(self) -> None:
        self._kept = None

    @property
    def _memory(self) -> tuple[Array, tvm_ffi.Tensor]:
        kept = self._kept
        if kept is None:
            raise errors.UsageError(
                f"the window {self.type} {self.shape} of rank {self.group.rank} was released: make a new one"
            )
        return kept

    @property
    def _handle(self) -> int:
        """Returns the group's handle for a call that uses the window."""
        _ = self._memory
        return self.group._handle

    # --- data ---

    def peer(self, rank: int) -> Array:
        """Returns another rank's array in place. That rank sees what is written to it."""
        made = _check(
            _native.call(
                "window_peer",
                self._handle,
                self.group._ordinal,
                self._base,
                _int64(rank, "the peer"),
                list(self.shape),
                # Of integers with or without their sign, as `array`.
                str(self._memory[1].dtype) if self.type[0] == "i" else dlpack_name(self.type),
            )
        )
        if self._to is not None:
            return self._to(made)
        if self.group._ordinal >= 0:
            return made
        return memory_of(made, self.shape, self.type).view(self.array.dtype)

    def put(self, array: Array, peer: int, *, at: Place = (), stream: int | None = None) -> None:
        """Copies `array` to the peer's `array[at]`, or to several rows from there on.

        On a GPU the copy runs in the stream, by default torch's current one.
        """
        seen, own, size, _kept = self._copy_operands(array, at, "put", written=False)
        number, used = _int64(peer, "the peer"), self._stream(stream)
        _check(self._put(self._handle, number, own, int(seen.tensor.data_ptr()), size, used))
        self.group._wait_for_reads(seen, used)

    def get(self, peer: int, *, at: Place = (), out: Array | None = None, stream: int | None = None) -> Array:
        """Copies the peer's `array[at]` to a new array, or, with `out`, as many elements as `out` has. Streams are as
        for `put`.
        """
        target = self._empty(at) if out is None else out
        seen, own, size, _kept = self._copy_operands(target, at, "get", written=True)
        number, used = _int64(peer, "the peer"), self._stream(stream)
        _check(self._get(self._handle, number, own, int(seen.tensor.data_ptr()), size, used))
        return target

    # --- signals ---

    def signal(self, peer: int, value: int = 1, *, cell: int = 0, op: str = "set", stream: int | None = None) -> None:
        """Sets the peer's cell, or adds to it ("add"). The signal follows all earlier puts."""
        kind = _choose(_SIGNALS, op, "op of a signal")
        to, number, used = _int64(peer, "the peer"), _signal_number(value), self._stream(stream)
        _check(self._signal(self._handle, to, self._cell(cell), kind, number, used))

    def put_signal(
        self,
        array: Array,
        peer: int,
        value: int = 1,
        *,
        at: Place = (),
        cell: int = 0,
        op: str = "set",
        stream: int | None = None,
    ) -> None:
        """A put, then a signal. A rank that waits for the signal is then guaranteed to see the data."""
        kind = _choose(_SIGNALS, op, "op of a signal")
        seen, own, size, _kept = self._copy_operands(array, at, "put_signal", written=False)
        to, number, used = _int64(peer, "the peer"), _signal_number(value), self._stream(stream)
        source = int(seen.tensor.data_ptr())
        _check(self._put_signal(self._handle, to, own, source, size, self._cell(cell), kind, number, used))
        self.group._wait_for_reads(seen, used)

    def wait(
        self,
        value: int = 1,
        *,
        cell: int = 0,
        compare: str = "ge",
        source: int | None = None,
        timeout: float | None = None,
        stream: int | None = None,
    ) -> None:
        """Waits until a cell of this rank is at least `value` ("ge"), or equal to it ("eq").

        `source` is the rank that is expected to signal. If it has gone, or after `timeout` seconds (by default the
        group's timeout), this raises DeadlockError; the group remains usable. On a GPU the stream waits without a
        limit; with a timeout, the calling thread waits instead.
        """
        kind = _choose(_COMPARISONS, compare, "comparison")
        if timeout is not None and not (hasattr(timeout, "__float__") and timeout > 0):
            raise errors.UsageError(f"the timeout is {timeout!r} seconds, but must be a number of more than 0")
        number, used = _signal_number(value), self._stream(stream)
        rank = -1 if source is None else _int64(source, "the source")
        _check(self._wait(self._handle, self._cell(cell), kind, number, rank, float(timeout or 0), used))

    def read_signal(self, cell: int = 0) -> int:
        """Returns the current value of a cell of this rank."""
        return int(_check(self._read(self._handle, self._cell(cell))))

    def reset_signal(self, cell: int = 0, *, stream: int | None = None) -> None:
        """Sets a cell of this rank to 0."""
        _check(_native.call("signal_reset", self._handle, self._cell(cell), self._stream(stream)))

    # --- arguments ---

    def _stream(self, stream: int | None) -> int:
        return self.group._stream(stream)

    def _cell(self, cell: int) -> int:
        number = whole(cell, "the cell")
        if not 0 <= number < self.signals:
            raise errors.UsageError(
                f"the window has cells 0 to {self.signals - 1}, but not {number}: make it with more `signals`"
            )
        return self._first + number

    def _offset(self, at: Place) -> int:
        """Returns the number of elements before index `at`."""
        index = _index(at)
        if len(index) > len(self.shape) or not all(0 <= i < n for i, n in zip(index, self.shape, strict=False)):
            raise errors.BoundsError(f"index {at} is out of bounds for a window of shape {self.shape}")
        return sum(i * math.prod(self.shape[axis + 1 :]) for axis, i in enumerate(index))

    def _extent_at(self, at: Place) -> tuple[int, int]:
        """Returns the number of elements of `array[at]`, and of it plus what follows along the same dimension."""
        index = _index(at)
        part = math.prod(self.shape[len(index) :])
        return part, part * (self.shape[len(index) - 1] - index[-1]) if index else part

    def _copy_operands(self, array: Array, at: Place, what: str, *, written: bool) -> tuple[View, int, int, Any]:
        """Returns `array`, the position of the copy in the window, its size in bytes, and an object that keeps the
        window valid.

        Another thread may release the window. The call then fails, unless another window may have taken its address.
        """
        kept = self._memory
        seen = self.group._view(array, f"the array of {what}")
        if seen.type != self.type:
            raise errors.UsageError(f"{what}: the array is {seen.type}, but the window has {self.type}")
        if written and not seen.is_writable():
            raise errors.UsageError(f"{what}: the array is read-only: pass one that can be written")
        offset, count = self._offset(at), math.prod(seen.shape)
        part, left = self._extent_at(at)
        if count > left:
            where = f" from index {at} on" if offset else ""
            raise errors.BoundsError(
                f"{what}: an array of {count} elements, {seen.shape}, does not fit a window of {self.shape}{where}, "
                f"which has {left} there"
            )
        if count > part and count % part:
            raise errors.BoundsError(
                f"{what}: an array of {count} elements, {seen.shape}, would end within another part of the window of "
                f"{self.shape} than that at index {at}, which has {part}: give no more, or whole ones"
            )
        return seen, self._base + offset * self._itemsize, count * self._itemsize, kept

    def _empty(self, at: Place) -> Array:
        self._offset(at)
        return empty(self.array, self.shape[len(_index(at)) :])


def _index(at: Place) -> tuple[int, ...]:
    try:
        return tuple(operator.index(i) for i in ((at,) if hasattr(at, "__index__") else at))
    except TypeError:
        raise errors.UsageError(f"the place is {at!r}, but must be an index or a tuple of indices") from None


def _check(answer: Any) -> Any:
    """Checks the binding's [status, result] and returns the result."""
    if int(answer[0]) != 0:
        raise errors.from_json(int(answer[0]), str(answer[1]))
    return answer[1]
