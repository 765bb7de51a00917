"""Matmuls next to collectives: blocks of rows of the one are computed while others are on their way.

The matmuls are the vendor's. A rank first multiplies what needs no other rank: its own rows before gathered ones, and
what others wait for before what it keeps. Copy engines move the rows, so that all SMs multiply. A rank's stream waits
for a signal of the rank that sends. All ranks meet at the begin of a call, by two kernels of a few microseconds.

One process group's calls follow each other in one stream, as its other collectives do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from commsir.torch import capi, ops
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.matmul.factor import Factor
from commsir.torch.matmul.sums import Sums

__all__ = [
    "MOST_BLOCKS",
    "Workspace",
    "all_gather_matmul",
    "all_to_all_matmul",
    "matmul_all_reduce",
    "matmul_all_to_all",
    "matmul_reduce_scatter",
    "workspace",
]

_CUDA: Any = torch.cuda
_C10D: Any = dist.distributed_c10d

#: Blocks into which the rows that a rank adds up may be cut.
MOST_BLOCKS = 8


class Workspace:
    """What the overlapped matmuls of one process group use on a GPU: symmetric memory, signals and streams.

    Between a kernel and a copy by a copy engine in one stream lie some 8 µs, so copies follow each other in streams of
    their own; the signals behind them are copies, too.
    """

    def __init__(self, name: str, device: torch.device) -> None:
        self.device = device
        self.group: capi.Group = ops.group_of(name, int(device.index))
        self.rank, self.ranks = self.group.rank, self.group.size
        self.sums = Sums(name, device)
        #: For copies to other ranks, and from them.
        self.sends, self.fetches = (_CUDA.Stream(device, priority=-1) for _ in range(2))
        # One for each block and rank that sends, as many for the second half of an all_reduce, and those of meetings.
        self._signals = self.group.reserve_signals((2 * MOST_BLOCKS + 1) * self.ranks)
        self._size = 0
        # Graphs use what they were captured with for as long as the group is there.
        self._kept = list[torch.Tensor]()

    def reserve(self, size: int) -> bool:
        """Symmetric memory of at least `size` bytes; False: none can be made while a stream is captured. Collective."""
        if size <= self._size:
            return True
        if _CUDA.is_current_stream_capturing():
            return False
        self._size = 1 << (size - 1).bit_length()
        self._kept.append(capi.memory(self.group.allocate(self._size), self._size, self.device))
        return True

    def own(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """The beginning of this rank's symmetric memory as a tensor."""
        return self._kept[-1][: math.prod(shape) * dtype.itemsize].view(dtype).view(*shape)

    def steps(self) -> list[tuple[int, int]]:
        """For each step, whom this rank sends to, and who sends to it. No two ranks send to the same at once."""
        return [((self.rank + step) % self.ranks, (self.rank - step) % self.ranks) for step in range(1, self.ranks)]

    def signals(self, block: int, half: int = 0) -> int:
        """The first signal of a block, of `ranks`. `half` 1: of the second half of an all_reduce; 2: of meetings."""
        return self._signals + (half * MOST_BLOCKS + block) * self.ranks


class _Call:
    """The copies and signals of one call, in parallel with the matmuls of the current stream."""

    def __init__(self, space: Workspace) -> None:
        self.space = space
        self._main = _CUDA.current_stream(space.device)
        # All ranks begin the call. So what the one before has left in symmetric memory has been read, and its signals
        # are free. They begin together: ranks that are apart by a block's matmul send to one rank at once.
        space.group.signal_others(space.signals(0, 2), self._main.cuda_stream)
        space.group.take_from_others(space.signals(0, 2), self._main.cuda_stream)

    def put(self, rank: int, place: torch.Tensor, value: torch.Tensor, block: int) -> None:
        """Once `value` is made, copies it to a rank's copy of `place`, which lies in symmetric memory, and signals."""
        space = self.space
        space.sends.wait_event(self._main.record_event())
        space.group.put(rank, place.data_ptr(), value.data_ptr(), value.nbytes, space.sends.cuda_stream)
        space.group.signal(rank, space.signals(block) + space.rank, space.sends.cuda_stream)

    def tell(self, block: int) -> None:
        """Signals all others that this rank has made what they are to fetch. By a kernel: a copy would queue behind
        those that are on their way."""
        self.space.group.signal_others(self.space.signals(block, 1), self._main.cuda_stream)

    def wait(self, rank: int, block: int) -> None:
        """For a `put` of a rank."""
        self.space.group.take_signal(self.space.signals(block) + rank, 1, rank, self._main.cuda_stream)

    def wait_for_all(self, block: int, half: int = 0) -> None:
        """For a `put` of every other rank, or with `half` for its `tell`."""
        self.space.group.take_from_others(self.space.signals(block, half), self._main.cuda_stream)

    def fetch(self, rank: int, place: torch.Tensor, out: torch.Tensor) -> None:
        """Fills `out` from a rank's copy of `place`, which lies in symmetric memory, behind what was waited for."""
        space = self.space
        space.fetches.wait_event(self._main.record_event())
        space.group.get(rank, place.data_ptr(), out.data_ptr(), out.nbytes, space.fetches.cuda_stream)

    def end(self, fetches: bool = False) -> None:
        """Behind it in the current stream, memory that was sent or fetched belongs to others again."""
        space = self.space
        for stream in (space.sends, space.fetches) if fetches else (space.sends,):
            self._main.wait_stream(stream)


_made: dict[tuple[str, int], tuple[Any, Workspace]] = {}
_making = threading.Lock()


def workspace(name: str, device: torch.device) -> Workspace | None:
    """That of a process group on a GPU; None: it is new, and a stream is captured. Collective when it is new."""
    process_group = _C10D._resolve_process_group(name)
    with _making:
        key = (name, int(device.index))
        if key not in _made or _made[key][0] is not process_group:
            if _CUDA.is_current_stream_capturing():
                return None
            _made[key] = (process_group, Workspace(name, device))
        return _made[key][1]


def _forget(name: str | None) -> None:
    for key in [key for key in _made if name in (None, key[0])]:
        del _made[key]


when_gone(_forget)


# ---------------------------------------------------------------------------------------------------------------------
# Rows that arrive
# ---------------------------------------------------------------------------------------------------------------------


def _multiply_arrivals(
    space: Workspace, parts: torch.Tensor, factors: Sequence[Factor], gathered: torch.Tensor | None
) -> list[torch.Tensor]:
    """What each rank sends to this one, times each factor. `parts` is [ranks, rows, k]: what this one sends to each."""
    ranks, rank, (_, rows, k) = space.ranks, space.rank, parts.shape
    arrived = space.own((ranks, rows, k), parts.dtype)
    outs = [parts.new_empty(ranks, rows, one.columns, dtype=one.result_type(parts)) for one in factors]
    work = list(zip(factors, outs, strict=True))
    call = _Call(space)
    for to, _ in space.steps():
        call.put(to, arrived[rank], parts[to], 0)
    for factor, out in work:
        factor.multiply(parts[rank], rank * rows, out[rank])
    for _, source in space.steps():
        call.wait(source, 0)
        for factor, out in work:
            factor.multiply(arrived[source], source * rows, out[source])
    call.end()
    if gathered is not None:
        arrived[rank].copy_(parts[rank])
        gathered.view(-1).copy_(arrived.view(-1))
    return [out.view(ranks * rows, -1) for out in outs]


def all_gather_matmul(
    space: Workspace, shard: torch.Tensor, factors: Sequence[Factor], gathered: torch.Tensor | None
) -> list[torch.Tensor]:
    """All ranks' rows times each factor, in the order of the ranks; `gathered`, if it is given, gets the rows.

    `shard` is [rows, k] and contiguous; the results are [ranks x rows, n].
    """
    return _multiply_arrivals(space, shard.expand(space.ranks, *shard.shape), factors, gathered)


def all_to_all_matmul(
    space: Workspace, parts: torch.Tensor, factors: Sequence[Factor], gathered: torch.Tensor | None
) -> list[torch.Tensor]:
    """The same of an all_to_all: `parts` is [ranks x rows, k], the rows for each rank one after the other."""
    return _multiply_arrivals(space, parts.view(space.ranks, -1, parts.shape[1]), factors, gathered)


# ---------------------------------------------------------------------------------------------------------------------
# Products that are sent
# ---------------------------------------------------------------------------------------------------------------------


def matmul_all_to_all(space: Workspace, a: torch.Tensor, factor: Factor) -> torch.Tensor:
    """The products of all ranks' rows for this one. `a` is [ranks x rows, k], the rows for each rank one after the
    other; so is the result, [ranks x rows, n], by the ranks that they come from."""
    ranks, rank, n = space.ranks, space.rank, factor.columns
    parts = a.view(ranks, -1, a.shape[1])
    rows = parts.shape[1]
    dtype = factor.result_type(a)
    arrived = space.own((ranks, rows, n), dtype)
    made, out = (a.new_empty(ranks, rows, n, dtype=dtype) for _ in range(2))
    call = _Call(space)
    for to, _ in space.steps():
        factor.multiply(parts[to], to * rows, made[to])
        call.put(to, arrived[rank], made[to], 0)
    factor.multiply(parts[rank], rank * rows, out[rank])
    for _, source in space.steps():
        call.wait(source, 0)
        out[source].copy_(arrived[source])
    call.end()
    return out.view(ranks * rows, n)


# ---------------------------------------------------------------------------------------------------------------------
# Products of which each rank has a part
# ---------------------------------------------------------------------------------------------------------------------


class _Partials:
    """What ranks send of blocks of rows: each block to the rank that adds it up."""

    def __init__(self, call: _Call, factor: Factor, arrive: torch.Tensor) -> None:
        """`arrive` is [blocks, ranks - 1, rows, n], in symmetric memory."""
        self._call, self._factor, self._arrive = call, factor, arrive
        self._made = arrive.new_empty(arrive.shape)

    def send(self, block: int, parts: torch.Tensor, starts: Sequence[int]) -> None:
        """`parts` is [ranks, rows, k], and `starts` the places of their first rows: the products of all but this
        rank's."""
        for step, (to, _) in enumerate(self._call.space.steps()):
            self._factor.multiply(parts[to], starts[to], self._made[block, step])
            self._call.put(to, self._arrive[block, step], self._made[block, step], block)

    def total(self, block: int, rows: torch.Tensor, start: int, out: torch.Tensor) -> None:
        """Fills `out` with the sum of all ranks' parts, of which this rank's is `rows`, from `start` on, by the
        factor."""
        self._call.wait_for_all(block)
        self._call.space.sums.total(self._factor, self._arrive[block], rows, start, out)


def matmul_reduce_scatter(space: Workspace, a: torch.Tensor, factor: Factor, blocks: int) -> torch.Tensor:
    """This rank's rows of the sum of all ranks' products. `a` is [rows, k]; `blocks` divides the rows of a rank."""
    ranks, n = space.ranks, factor.columns
    rows = a.shape[0] // (ranks * blocks)
    parts = a.view(ranks, blocks, rows, -1)
    dtype = factor.result_type(a)
    out = a.new_empty(blocks, rows, n, dtype=dtype)
    arrive = space.own((blocks, ranks - 1, rows, n), dtype)
    call = _Call(space)
    partials = _Partials(call, factor, arrive)
    starts = [[(rank * blocks + block) * rows for rank in range(ranks)] for block in range(blocks)]
    for block in range(blocks):
        partials.send(block, parts[:, block], starts[block])
    for block in range(blocks):
        partials.total(block, parts[space.rank, block], starts[block][space.rank], out[block])
    call.end()
    return out.view(blocks * rows, n)


def matmul_all_reduce(space: Workspace, a: torch.Tensor, factor: Factor, blocks: int) -> torch.Tensor:
    """The sum of all ranks' products. `a` is [rows, k]; `blocks` x ranks divides the rows.

    Each rank adds up one part of each block, and the others get it from there.
    """
    ranks, rank, n = space.ranks, space.rank, factor.columns
    rows = a.shape[0] // (ranks * blocks)
    parts = a.view(blocks, ranks, rows, -1)
    dtype = factor.result_type(a)
    out = a.new_empty(blocks, ranks, rows, n, dtype=dtype)
    memory = space.own((blocks * ranks, rows, n), dtype)
    totals = memory[:blocks]
    call = _Call(space)
    partials = _Partials(call, factor, memory[blocks:].view(blocks, ranks - 1, rows, n))
    starts = [[(block * ranks + one) * rows for one in range(ranks)] for block in range(blocks)]
    # The products of a block, the copies of the sums of the one before the last, and the sum of the last.
    for block in range(blocks + 2):
        if block < blocks:
            partials.send(block, parts[block], starts[block])
        if block > 1:
            call.wait_for_all(block - 2, half=1)
            for _, source in space.steps():
                call.fetch(source, totals[block - 2], out[block - 2, source])
            out[block - 2, rank].copy_(totals[block - 2])
        if 0 < block <= blocks:
            partials.total(block - 1, parts[block - 1, rank], starts[block - 1][rank], totals[block - 1])
            call.tell(block - 1)
    call.end(fetches=True)
    return out.view(a.shape[0], n)
