"""The calls that `python -m commsir.bench` times under torchrun: each made ready on one process group, and checked.

`elements` are those of the larger array of a call, over all of its tensors; of an object or a send, those of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed

dist: Any = torch.distributed

__all__ = ["CALLS", "OBJECTS", "SIZELESS", "CheckedCall", "make", "pattern", "tensors"]

Tensors = list[torch.Tensor]


@dataclass
class CheckedCall:
    """A call and its check: `wrong` makes the call once and describes an error in this rank's result; empty:
    correct."""

    call: Callable[[], Any]
    wrong: Callable[[], str]


def pattern(rank: int, elements: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """A rank's input; sums of such numbers are exact in any type."""
    return torch.arange(elements, device=device) % 8 + rank


def tensors(
    call: Callable[[], Any], sources: Tensors, results: Tensors, want: Callable[[], torch.Tensor]
) -> CheckedCall:
    """`want` returns the expected results, joined, if the joined sources of each rank hold its pattern."""

    def wrong() -> str:
        given = pattern(dist.get_rank(), sum(one.numel() for one in sources), sources[0].device) if sources else None
        first = 0
        for one in sources:
            assert given is not None
            one.copy_(given[first : first + one.numel()].view_as(one))
            first += one.numel()
        call()
        found = torch.cat([one.reshape(-1) for one in results]).double() if results else None
        for one in sources:
            one.zero_()
        if found is None:
            return ""
        off = float((found - want().double()).abs().max())
        return f"is off by up to {off}" if off else ""

    return CheckedCall(call, wrong)


@dataclass
class _CallSettings:
    """Device and size of a call: at most `most` elements, `part` per rank."""

    group: Any
    most: int
    dtype: torch.dtype
    device: str

    def __post_init__(self) -> None:
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.part = self.most // self.ranks

    def zeros(self, elements: int) -> torch.Tensor:
        return torch.zeros(elements, device=self.device, dtype=self.dtype)

    def parts(self, count: int | None = None) -> Tensors:
        return [self.zeros(self.part) for _ in range(self.ranks if count is None else count)]

    def of(self, rank: int, elements: int) -> torch.Tensor:
        return pattern(rank, elements, self.device)

    def total(self) -> torch.Tensor:
        return sum((self.of(rank, self.most) for rank in range(self.ranks)), torch.zeros((), device=self.device))

    def gathered(self) -> torch.Tensor:
        return torch.cat([self.of(rank, self.part) for rank in range(self.ranks)])

    def scattered(self, whole: torch.Tensor) -> torch.Tensor:
        return whole[self.rank * self.part : (self.rank + 1) * self.part]


def _all_reduce(g: _CallSettings) -> CheckedCall:
    x = g.zeros(g.most)
    return tensors(lambda: dist.all_reduce(x, group=g.group), [x], [x], g.total)


def _all_gather(g: _CallSettings) -> CheckedCall:
    x, y = g.zeros(g.part), g.zeros(g.most)
    return tensors(lambda: dist.all_gather_into_tensor(y, x, group=g.group), [x], [y], g.gathered)


def _all_gather_list(g: _CallSettings) -> CheckedCall:
    x, y = g.zeros(g.part), g.parts()
    return tensors(lambda: dist.all_gather(y, x, group=g.group), [x], y, g.gathered)


def _reduce_scatter(g: _CallSettings) -> CheckedCall:
    x, y = g.zeros(g.most), g.zeros(g.part)
    call = lambda: dist.reduce_scatter_tensor(y, x, group=g.group)  # noqa: E731
    return tensors(call, [x], [y], lambda: g.scattered(g.total()))


def _reduce_scatter_list(g: _CallSettings) -> CheckedCall:
    x, y = g.parts(), g.zeros(g.part)
    return tensors(lambda: dist.reduce_scatter(y, x, group=g.group), x, [y], lambda: g.scattered(g.total()))


def _all_to_all(g: _CallSettings) -> CheckedCall:
    x, y = g.zeros(g.most), g.zeros(g.most)
    call = lambda: dist.all_to_all_single(y, x, group=g.group)  # noqa: E731
    return tensors(call, [x], [y], lambda: torch.cat([g.scattered(g.of(rank, g.most)) for rank in range(g.ranks)]))


def _all_to_all_uneven(g: _CallSettings) -> CheckedCall:
    """Two ranks send each other equally many elements, and all ranks send the same total."""
    step = g.part // (2 * g.ranks)

    def sizes(rank: int) -> list[int]:
        return [g.part + step * (2 * ((rank + peer) % g.ranks) - g.ranks + 1) for peer in range(g.ranks)]

    def want() -> torch.Tensor:
        return torch.cat([torch.split(g.of(rank, g.most), sizes(rank))[g.rank] for rank in range(g.ranks)])

    own, count = sizes(g.rank), sum(sizes(g.rank))
    x, y = g.zeros(count), g.zeros(count)
    return tensors(lambda: dist.all_to_all_single(y, x, own, own, group=g.group), [x], [y], want)


def _broadcast(g: _CallSettings) -> CheckedCall:
    x = g.zeros(g.most)
    return tensors(lambda: dist.broadcast(x, 0, group=g.group), [x], [x], lambda: g.of(0, g.most))


def _reduce(g: _CallSettings) -> CheckedCall:
    x = g.zeros(g.most)
    return tensors(lambda: dist.reduce(x, 0, group=g.group), [x], [x] if g.rank == 0 else [], g.total)


def _gather(g: _CallSettings) -> CheckedCall:
    x, y = g.zeros(g.part), g.parts() if g.rank == 0 else []
    return tensors(lambda: dist.gather(x, y or None, dst=0, group=g.group), [x], y, g.gathered)


def _scatter(g: _CallSettings) -> CheckedCall:
    x, y = g.parts() if g.rank == 0 else [], g.zeros(g.part)
    call = lambda: dist.scatter(y, x or None, src=0, group=g.group)  # noqa: E731
    return tensors(call, x, [y], lambda: g.scattered(g.of(0, g.most)))


def _barrier(g: _CallSettings) -> CheckedCall:
    return tensors(lambda: dist.barrier(group=g.group), [], [], lambda: torch.zeros(0))


def _send_recv(g: _CallSettings) -> CheckedCall:
    """There and back between two neighbors."""
    x, y = g.zeros(g.most), g.zeros(g.most)
    peer = g.rank ^ 1
    if peer >= g.ranks:
        return tensors(lambda: None, [], [], lambda: torch.zeros(0))

    def call() -> None:
        for sends in (g.rank < peer, g.rank > peer):
            if sends:
                dist.send(x, peer, group=g.group)
            else:
                dist.recv(y, peer, group=g.group)

    return tensors(call, [x], [y], lambda: g.of(peer, g.most))


def _batch_send_recv(g: _CallSettings) -> CheckedCall:
    """Each to the next in a ring."""
    x, y = g.zeros(g.most), g.zeros(g.most)
    after, before = (g.rank + 1) % g.ranks, (g.rank - 1) % g.ranks

    def call() -> None:
        ways = [(dist.isend, x, after), (dist.irecv, y, before)]
        for work in dist.batch_isend_irecv([dist.P2POp(op, t, peer, g.group) for op, t, peer in ways]):
            work.wait()

    return tensors(call, [x], [y], lambda: g.of(before, g.most))


def _objects(
    g: _CallSettings, call: Callable[[bytes, list[Any]], Any], want: Callable[[Callable[[int], bytes]], Any]
) -> CheckedCall:
    """`call` stores its results in the list; `want` computes them from all ranks' inputs."""

    def of(rank: int) -> bytes:
        return bytes([65 + rank]) * (g.most * g.dtype.itemsize)

    own = of(g.rank)

    def wrong() -> str:
        found: list[Any] = []
        call(own, found)
        return "" if found == want(of) else "is not what was put in"

    return CheckedCall(lambda: call(own, []), wrong)


def _all_gather_object(g: _CallSettings) -> CheckedCall:
    def call(own: bytes, found: list[Any]) -> None:
        found[:] = [None] * g.ranks
        dist.all_gather_object(found, own, group=g.group)

    return _objects(g, call, lambda of: [of(rank) for rank in range(g.ranks)])


def _gather_object(g: _CallSettings) -> CheckedCall:
    def call(own: bytes, found: list[Any]) -> None:
        found[:] = [None] * g.ranks if g.rank == 0 else []
        dist.gather_object(own, found if g.rank == 0 else None, dst=0, group=g.group)

    return _objects(g, call, lambda of: [of(rank) for rank in range(g.ranks)] if g.rank == 0 else [])


def _broadcast_object(g: _CallSettings) -> CheckedCall:
    def call(own: bytes, found: list[Any]) -> None:
        found[:] = [own]
        dist.broadcast_object_list(found, src=0, group=g.group)

    return _objects(g, call, lambda of: [of(0)])


def _scatter_object(g: _CallSettings) -> CheckedCall:
    def call(own: bytes, found: list[Any]) -> None:
        found[:] = [None]
        dist.scatter_object_list(found, [own] * g.ranks if g.rank == 0 else None, src=0, group=g.group)

    return _objects(g, call, lambda of: [of(0)])


CALLS: dict[str, Callable[[_CallSettings], CheckedCall]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "all_gather_list": _all_gather_list,
    "reduce_scatter_list": _reduce_scatter_list,
    "all_to_all_uneven": _all_to_all_uneven,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    "barrier": _barrier,
    "send_recv": _send_recv,
    "batch_send_recv": _batch_send_recv,
    "all_gather_object": _all_gather_object,
    "gather_object": _gather_object,
    "broadcast_object": _broadcast_object,
    "scatter_object": _scatter_object,
}
#: Calls on objects, which are pickled on the CPU; and those that have no size.
OBJECTS = tuple(name for name in CALLS if name.endswith("_object"))
SIZELESS = ("barrier",)


def make(op: str, group: Any, elements: int, dtype: torch.dtype, device: str) -> CheckedCall:
    """The call of that name on `group` (None: the default one); `elements` are a multiple of the ranks."""
    return CALLS[op](_CallSettings(group, elements, dtype, device))
