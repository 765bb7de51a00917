"""Matmuls beside collectives: blocks of rows of the one are computed while others are on their way.

The matmuls are the vendor's. A rank first multiplies what needs no other rank: its own rows before gathered ones, and
what others wait for before what it keeps. Copy engines move the rows, so that all SMs multiply. Ranks meet on the
stream, by a kernel of a few microseconds, before they read what another has written.

One process group's calls follow each other in one stream, as its other collectives do.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from commsir.torch import capi, ops
from commsir.torch.endings import when_gone

__all__ = ["Meeting", "Workspace", "all_gather_matmul", "matmul_all_reduce", "matmul_reduce_scatter", "workspace"]

_CUDA: Any = torch.cuda
_OPS: Any = torch.ops
_C10D: Any = dist.distributed_c10d


class Workspace:
    """What the overlapped matmuls of one process group use on a GPU: symmetric memory, a stream and a meeting."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name, self.device = name, device
        self.group: capi.Group = ops.group_of(name, int(device.index))
        self.rank, self.ranks = self.group.rank, self.group.size
        #: For copies, beside the matmuls of the current stream.
        self.moves = _CUDA.Stream(device, priority=-1)
        self._met = torch.zeros(2, 16, dtype=torch.int32, device=device)
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

    def get(self, rank: int, place: torch.Tensor, out: torch.Tensor) -> None:
        """Fills `out` from a rank's copy of `place`, which lies in symmetric memory, in the stream `moves`."""
        self.group.get(rank, place.data_ptr(), out.data_ptr(), out.nbytes, self.moves.cuda_stream)

    def put(self, rank: int, place: torch.Tensor, value: torch.Tensor) -> None:
        """Copies `value` to a rank's copy of `place`, which lies in symmetric memory, in the stream `moves`."""
        self.group.put(rank, place.data_ptr(), value.data_ptr(), value.nbytes, self.moves.cuda_stream)

    def steps(self) -> list[tuple[int, int]]:
        """For each step, whom this rank sends to, and who sends to it. No two ranks send to the same at once."""
        return [((self.rank + step) % self.ranks, (self.rank - step) % self.ranks) for step in range(1, self.ranks)]

    def meet(self) -> None:
        """What is behind it in the current stream runs once all ranks have come to it in theirs."""
        _OPS.commsir.all_reduce.out(self._met[0], "max", self.name, out=self._met[1])


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


class Meeting:
    """The meetings of one call, and what is to be done behind the next of them."""

    def __init__(self, space: Workspace) -> None:
        self._space, self._stream = space, _CUDA.current_stream(space.device)
        self._behind = list[Callable[[], None]]()

    def then(self, copy: Callable[[], None]) -> None:
        """Behind the next meeting, puts copies into the stream `moves`."""
        self._behind.append(copy)

    def hold(self) -> None:
        self._space.meet()
        if self._behind:
            self._space.moves.wait_event(self._stream.record_event())
        for copy in self._behind:
            copy()
        self._behind.clear()


# ---------------------------------------------------------------------------------------------------------------------
# Gathered rows
# ---------------------------------------------------------------------------------------------------------------------


def _multiply(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor) -> None:
    if bias is None:
        torch.mm(rows, weight, out=out)
    else:
        torch.addmm(bias, rows, weight, out=out)


def all_gather_matmul(
    space: Workspace,
    shard: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor | None],
    gathered: torch.Tensor | None,
) -> list[torch.Tensor]:
    """All ranks' rows times each weight, in the order of the ranks; `gathered`, if it is given, gets the rows.

    `shard` is [rows, k] and contiguous, a weight [k, n], a bias [n]; the results are [ranks x rows, n].
    """
    ranks, (rows, k) = space.ranks, shard.shape
    main = _CUDA.current_stream(shard.device)
    arrived = space.own((ranks, rows, k), shard.dtype)
    outs = [shard.new_empty(ranks, rows, weight.shape[1]) for weight in weights]
    work = list(zip(weights, biases, outs, strict=True))
    # What was there before has been read by all.
    space.meet()
    space.moves.wait_stream(main)
    pushed = []
    for to, _ in space.steps():
        space.put(to, arrived[space.rank], shard)
        pushed.append(space.moves.record_event())
    for weight, bias, out in work:
        _multiply(shard, weight, bias, out[space.rank])
    for (_, source), event in zip(space.steps(), pushed, strict=True):
        main.wait_event(event)
        space.meet()
        for weight, bias, out in work:
            _multiply(arrived[source], weight, bias, out[source])
    if gathered is not None:
        arrived[space.rank].copy_(shard)
        gathered.view(-1).copy_(arrived.view(-1))
    return [out.view(ranks * rows, -1) for out in outs]


# ---------------------------------------------------------------------------------------------------------------------
# Products of which each rank has a part
# ---------------------------------------------------------------------------------------------------------------------


class _Partials:
    """What ranks send of blocks of rows: each block to the rank that adds it up.

    Two ranks get each other's block where it is added up. Several put theirs beside each other.
    """

    def __init__(
        self, meeting: Meeting, space: Workspace, blocks: int, like: torch.Tensor, shape: Sequence[int]
    ) -> None:
        self._meeting, self._space = meeting, space
        self._main = _CUDA.current_stream(space.device)
        self._gets = space.ranks == 2
        self._arrive = space.own(self.shape_of(space.ranks, blocks, shape), like.dtype)
        self._made = self._arrive if self._gets else like.new_empty(self._arrive.shape)
        self._moved: dict[int, Any] = {}

    @staticmethod
    def shape_of(ranks: int, blocks: int, shape: Sequence[int]) -> tuple[int, ...]:
        return (blocks, ranks if ranks > 2 else 1, *shape)

    def product(self, block: int, to: int) -> torch.Tensor:
        """Where this rank's part of a block of rank `to` is to be made."""
        return self._made[block, 0 if self._gets else to]

    def send(self, block: int, to: int) -> None:
        """Once it is made."""
        if not self._gets:
            self._space.moves.wait_event(self._main.record_event())
            self._space.put(to, self._arrive[block, self._space.rank], self._made[block, to])

    def sent(self, block: int, total: torch.Tensor) -> None:
        """Once all parts of a block are made; `total` is where `add_up` will leave the others' parts of this rank's."""
        if self._gets:
            self._meeting.then(lambda: self._fetch(block, total))
            self._meeting.hold()
        else:
            self._moved[block] = self._space.moves.record_event()

    def _fetch(self, block: int, total: torch.Tensor) -> None:
        self._space.get(1 - self._space.rank, self._arrive[block, 0], total)
        self._moved[block] = self._space.moves.record_event()

    def add_up(self, block: int, total: torch.Tensor) -> None:
        """Makes `total` the sum of the other ranks' parts of this rank's block."""
        self._main.wait_event(self._moved[block])
        if self._gets:
            return
        self._meeting.hold()
        parts, rank = self._arrive[block], self._space.rank
        # The place of this rank's own part is free: with a part moved there, the others' lie side by side.
        if 0 < rank < self._space.ranks - 1:
            parts[rank].copy_(parts[0])
        torch.sum(parts[1:] if rank < self._space.ranks - 1 else parts[:-1], 0, out=total)


def matmul_reduce_scatter(space: Workspace, a: torch.Tensor, b: torch.Tensor, blocks: int) -> torch.Tensor:
    """This rank's rows of the sum of all ranks' `a @ b`. `a` is [rows, k]; `blocks` divides the rows of a rank."""
    rows = a.shape[0] // (space.ranks * blocks)
    parts = a.view(space.ranks, blocks, rows, -1)
    out = a.new_empty(blocks, rows, b.shape[1])
    meeting = Meeting(space)
    partials = _Partials(meeting, space, blocks, out, out.shape[1:])
    meeting.hold()
    for block in range(blocks):
        for to, _ in space.steps():
            torch.mm(parts[to, block], b, out=partials.product(block, to))
            partials.send(block, to)
        partials.sent(block, out[block])
    for block in range(blocks):
        partials.add_up(block, out[block])
        torch.addmm(out[block], parts[space.rank, block], b, out=out[block])
    return out.view(blocks * rows, -1)


def matmul_all_reduce(space: Workspace, a: torch.Tensor, b: torch.Tensor, blocks: int) -> torch.Tensor:
    """The sum of all ranks' `a @ b`. `a` is [rows, k]; `blocks` x ranks divides the rows.

    Each rank adds up one part of each block, and the others get it from there.
    """
    ranks, rank = space.ranks, space.rank
    rows = a.shape[0] // (ranks * blocks)
    parts = a.view(blocks, ranks, rows, -1)
    out = a.new_empty(blocks, ranks, rows, b.shape[1])
    meeting = Meeting(space)
    shape = out.shape[2:]
    partials = _Partials(meeting, space, blocks, out, shape)
    sent = math.prod(_Partials.shape_of(ranks, blocks, shape)[:2])
    totals = space.own((sent + blocks, *shape), out.dtype)[sent:]

    def fetch(block: int) -> None:
        for _, source in space.steps():
            space.get(source, totals[block], out[block, source])

    meeting.hold()
    for block in range(blocks + 1):
        if block < blocks:
            for to, _ in space.steps():
                torch.mm(parts[block, to], b, out=partials.product(block, to))
                partials.send(block, to)
            partials.sent(block, totals[block])
        if block:
            total = totals[block - 1]
            partials.add_up(block - 1, total)
            torch.addmm(total, parts[block - 1, rank], b, out=total)
            out[block - 1, rank].copy_(total)
            meeting.then(functools.partial(fetch, block - 1))
    meeting.hold()
    _CUDA.current_stream(space.device).wait_stream(space.moves)
    return out.view(a.shape[0], -1)
