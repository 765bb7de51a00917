"""Compiles kernels ahead of time, so that no call of a serving loop waits for the compiler."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any

import torch

from commsir import _native

_CUDA: Any = torch.cuda
#: Calls after which a size has its own kernel (kUsesOfOwn in runtime/group/Collective.cpp, and the next).
_LISTED = 5


def _sizes(rows: int | Iterable[int]) -> list[int]:
    """Row counts that reach every kernel which counts of up to `rows` use, or just those that are listed."""
    if not isinstance(rows, Integral):
        if not isinstance(rows, Iterable):
            raise ValueError(f"warm_up: rows={rows!r}; give one whole number, or a list of them")
        counts = list(rows)
        wrong = [count for count in counts if not hasattr(count, "__index__") or count < 0]
        if wrong:
            raise ValueError(f"warm_up: rows has {wrong[0]!r}; give one whole number, or a list of them")
        return sorted({int(count) for count in counts}, reverse=True)
    rows = int(rows)
    if rows < 1:
        raise ValueError(f"warm_up: rows={rows}; give the largest row count that calls will have, at least 1")
    # Kernels are for the elements between two powers of two, so of the counts in (x / 2, x], for an x that depends on
    # the row's length. Each such interval has a power of two, whose kernel is the best for what it divides, and one of
    # these odd counts, if it has any odd one. The kernel of an odd count takes all that are left.
    powers = [1 << power for power in reversed(range(rows.bit_length()))]
    odd = {power + 1 for power in powers if power > 1} | {rows - 1 + rows % 2}
    return powers + sorted({count for count in odd | {rows} if 0 < count <= rows} - set(powers), reverse=True)


@contextlib.contextmanager
def compiling_at_once() -> Iterator[None]:
    """Collectives wait for their kernels, on all ranks alike, in place of going on without them."""
    _native.call("compile_at_once", 1)
    try:
        yield
    finally:
        _native.call("compile_at_once", 0)


def warm_up(call: Callable[[int], Any], rows: int | Iterable[int], *, progress: bool | None = None) -> float:
    """Compiles ahead what `call` needs for every row count up to `rows`.

    `call(count)` makes the inputs for `count` rows and the collective calls on them. warm_up calls it for row counts
    that between them use every kernel that counts of 1 to `rows` use (powers of two, odd counts between them, and
    `rows`), or for the listed counts if `rows` is a list. A later all_reduce, with arithmetic or without, with a row
    count that was never seen then compiles nothing, and can be captured in a CUDA graph at once. Of the other
    collectives this holds up to 1 MiB: list the counts of larger ones. A listed count is called five times: a large
    size goes in pieces in its first call, or by copy engines in its first four, before it gets its own kernel, and a
    graph keeps what it captured. Elsewhere calls go on that way while the kernel is compiled; here they wait for it.

    All ranks must call it with the same `rows`, as they must make the same collective calls. The compiled kernels are
    kept in the cache on disk, so that the next start of the program takes a fraction of the time. `progress` prints a
    line on rank 0's standard error as the counts pass; by default if that is a terminal. Returns the seconds it took.
    """
    if not callable(call):
        raise TypeError(f"warm_up calls call(count) for each row count, and {call!r} is not a function")
    start = time.perf_counter()
    shows = sys.stderr.isatty() if progress is None else progress
    if torch.distributed.is_initialized() and torch.distributed.get_rank() != 0:
        shows = False
    counts, times = _sizes(rows), 1 if isinstance(rows, Integral) else _LISTED
    with compiling_at_once():
        for number, count in enumerate(counts, 1):
            for _ in range(times):
                call(count)
            if shows:
                end = "\n" if number == len(counts) else "\r"
                print(f"commsir: warm-up, {number} of {len(counts)} row counts", end=end, file=sys.stderr, flush=True)
    if _CUDA.is_initialized():
        _CUDA.synchronize()
    return time.perf_counter() - start
