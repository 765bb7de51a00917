"""Kernels and foreign memory with a process group, on all ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import commsir
import torch
import torch.distributed
from commsir.examples.one_shot import one_shot
from commsir.torch import interop
from commsir.torch.capi import CommsIRError

dist: Any = torch.distributed

#: Puts a number of the caller's where a mask of his own says nothing.
PUT = """
comms.kernel @put(%x: memref<8xf32>, %mask: memref<8xi8>, %at: index, %n: f32) {
  %one = comms.splat %n : f32 -> tensor<1xf32>
  comms.tile_store %one, %x[%at] : tensor<1xf32>, memref<8xf32>
  comms.return
}
"""
#: Adds a number of the caller's on each rank.
ADD = """
comms.kernel @add(%x: memref<8xf32>, %n: f32) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
  %many = comms.splat %n : f32 -> tensor<8xf32>
  %sum = arith.addf %tile, %many : tensor<8xf32>
  comms.tile_store %sum, %x[%c0] : tensor<8xf32>, memref<8xf32>
  comms.return
}
"""


def kernels(rank: int, size: int) -> None:
    """A kernel takes windows, arrays and numbers, in order or by name; its signals are the group's."""
    group = interop.wrap_process_group(name="kernels")
    kernel = group.kernel(one_shot, slots=2 * size, n=8)
    assert repr(kernel) == "<kernel one_shot(x, inbox, y)>"
    inbox, x, y = interop.window_tensor(group, (2 * size, 8)), torch.full((8,), float(rank)), torch.zeros(8)
    for turn in range(3):
        kernel(x, inbox, y) if turn else kernel(y=y, inbox=inbox, x=x)
        assert (y == size * (size - 1) / 2).all()
        x += 0
    mistakes: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((x, inbox, torch.empty(0), y), {}, "takes x, inbox, y, but 4 arguments were given"),
        ((x, inbox), {}, "there is no y"),
        ((x, inbox, y), {"come": torch.empty(0)}, "'come' is a signal, which the group keeps: leave it out"),
        ((x, inbox, y.double()), {}, "argument 'y' of kernel one_shot is f32 (8,), but the array is f64 (8,)"),
        ((x, inbox, y.view(1, 8)), {}, "but the array is f32 (1, 8)"),
        ((torch.zeros(16)[::2], inbox, y), {}, "argument 'x' of kernel one_shot is not contiguous: call .contiguous()"),
        ((x, inbox, [0.0] * 8), {}, "argument 'y' of kernel one_shot is a list, not a tensor"),
        ((x, inbox, torch.empty(8, device="meta")), {}, "is on meta, but the group is on cpu: move it there"),
    ]
    for values, named, text in mistakes:
        try:
            kernel(*values, **named)
        except commsir.UsageError as error:
            assert text in str(error), f"'{error}' does not say '{text}'"
        else:
            raise AssertionError(f"nothing says '{text}'")
    numbers(group, y)
    group.kernel(ADD)(y, 0.5)
    assert (y == size * (size - 1) / 2 + 0.5).all()
    # Numbers are on the host, whatever torch's default device.
    with torch.device("meta"):
        group.kernel(ADD)(y, -0.5)
    mask = y.bool()
    group.kernel(PUT)(y, mask, 3, torch.tensor(7))
    assert (y == torch.where(torch.arange(8) == 3, 7, size * (size - 1) / 2)).all()
    dist.barrier()
    group.destroy()
    calls: list[Callable[[], Any]] = [lambda: kernel(x, inbox, y), lambda: group.kernel(ADD), lambda: group.allocate(8)]
    for call in calls:
        try:
            call()
        except CommsIRError as error:
            assert "the group was destroyed; make a new one" in str(error), error
        else:
            raise AssertionError("a group that was destroyed goes on")


def numbers(group: Any, y: torch.Tensor) -> None:
    """A number keeps its value in the kernel's type, or is refused; so are views that are not what memory holds."""
    add, put, mask = group.kernel(ADD), group.kernel(PUT), torch.zeros(8, dtype=torch.int8)
    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: add(y, 1e39), "argument 'n' of kernel add is 1e+39, which does not fit f32"),
        (lambda: add(y, "1"), "argument 'n' of kernel add is '1', but must be a number (f32)"),
        (lambda: put(y, mask, 2.5, 1.0), "argument 'at' of kernel put is 2.5, but must be a whole number (i64)"),
        (lambda: put(y, mask, 2**63, 1.0), "is 9223372036854775808, which does not fit i64"),
        (lambda: add(torch._neg_view(y), 1.0), "argument 'x' of kernel add negates what is in its memory"),
        (lambda: copy.copy(add), "can be neither copied nor pickled"),
        (lambda: copy.deepcopy(group), "can be neither copied nor pickled"),
    ]
    for call, text in mistakes:
        try:
            call()
        except commsir.UsageError as error:
            assert text in str(error), f"'{error}' does not say '{text}'"
        else:
            raise AssertionError(f"nothing says '{text}'")


class Shared:
    """A group that notes what is shared."""

    def __init__(self) -> None:
        self.ranges: dict[int, int] = {}

    def share(self, address: int, size: int) -> None:
        self.ranges[address] = size

    def forget(self, address: int) -> None:
        del self.ranges[address]


class Pool:
    """What a torch.cuda.MemPool tells of its segments, which lie at addresses of each rank's own."""

    def __init__(self, *segments: tuple[int, int]) -> None:
        self.segments = dict(segments)

    def snapshot(self, *, include_traces: bool) -> list[dict[str, int]]:
        assert not include_traces
        mine = [{"device": 0, "address": address, "total_size": size} for address, size in self.segments.items()]
        return [{"device": 1, "address": 64, "total_size": 64}, *mine]


def pools(rank: int, size: int) -> None:
    """Ranks share pools that have as many segments of the same sizes; else all hear which ranks differ."""
    group, known = Shared(), dict[int, int]()
    cuda: Any = torch.cuda
    ours: Any = interop
    found = cuda.current_device, ours._sharing
    cuda.current_device, ours._sharing = lambda: 0, lambda _: ([group], known)

    def refused(memory: Any, *texts: str) -> None:
        before = dict(group.ranges)
        try:
            interop.share(memory)
        except (RuntimeError, TypeError) as error:
            assert all(text in str(error) for text in texts), str(error)
        else:
            raise AssertionError(f"nothing says {texts}")
        assert group.ranges == before == known

    try:
        pool: Any = Pool((4096 * (rank + 2), 512), (512, 2048))
        interop.share(pool)
        assert group.ranges == pool.segments == known
        pool.segments[1 << 20] = 4096 if rank else 8192
        others = ", ".join(str(other) for other in range(1, size))
        old = "3 pieces of 2048 (shared before), 512 (shared before)"
        refused(pool, f"rank 0: {old}, 8192 bytes", f"rank{'s' * (size > 2)} {others}: {old}, 4096 bytes")
        del pool.segments[1 << 20]
        refused(
            Pool((64, 64)) if rank == 1 else Pool(), "rank 1: 1 piece of 64 bytes", ": nothing", "in the same order"
        )
        own, text = [1, 2], "a list cannot be shared: pass a tensor or a torch.cuda.MemPool"
        refused(own if rank == 0 else pool, text if rank == 0 else f"rank 0: cannot share: commsir: {text}")
        pool.segments[512] = 6144  # It has grown where it is.
        interop.share(pool)
        assert group.ranges == pool.segments == known
        interop.unshare(pool)
        assert not group.ranges and not known
    finally:
        cuda.current_device, ours._sharing = found
