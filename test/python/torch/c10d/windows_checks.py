"""Windows as tensors over process groups, on all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import commsir
import commsir.torch
import commsir.torch.windows
import torch
import torch.distributed
from expected import error_of, odd_one

dist: Any = torch.distributed

TYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8]


def tensors(rank: int, size: int) -> None:
    """Each rank puts a row to the next, which the signal orders, and gets one from the rank before."""
    after, before = (rank + 1) % size, (rank - 1) % size
    for dtype in TYPES:
        window = commsir.torch.window((4, 33), dtype)
        assert_type(window.tensor, torch.Tensor)
        assert_type(window.get(rank), torch.Tensor)
        assert window.tensor.dtype == dtype and window.tensor.shape == (4, 33)
        window.tensor[0] = rank
        window.put_signal(torch.full((2, 33), 10 + rank, device=window.tensor.device).to(dtype), after, at=2)
        window.wait(source=before, timeout=60)
        assert (window.tensor[2:] == 10 + before).all() and (window.tensor[:2].sum() == 33 * rank)
        row = window.get(before, at=0)
        assert row.dtype == dtype and row.shape == (33,) and (row == before).all()
        one = window.get(before, at=(0, 32))
        assert one.shape == () and one == before
        # The peer's own memory.
        there = window.peer(before)
        assert there.dtype == dtype and (there[0] == before).all()
        dist.barrier()
        there[1, 5] = 7
        dist.barrier()
        assert window.tensor[1, 5] == 7
        window.release()


def groups(rank: int, size: int) -> None:
    """Sub-groups have windows of their own, next to those of the world."""
    world = commsir.torch.window(8)
    first = rank // 2 * 2
    members = [first, first + 1] if first + 1 < size else [first]  # The last of an odd number is alone.
    part: Any = dist.new_group(members, use_local_synchronization=True)
    window = commsir.torch.window(8, torch.int32, group=part, signals=2)
    assert window.group.ranks == len(members) and world.group.ranks == size
    peer = len(members) - 1 - window.group.rank
    window.put_signal(torch.full((8,), rank, dtype=torch.int32, device=window.tensor.device), peer, 5, cell=1)
    window.wait(5, cell=1, compare="eq")
    assert (window.tensor == members[peer]).all() and not world.tensor.any()
    dist.barrier()


def refused(rank: int, size: int) -> None:
    window = commsir.torch.window((2, 4), torch.bfloat16, signals=2)
    row = torch.zeros(4, dtype=torch.bfloat16)
    calls: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (commsir.UsageError, "group is a str, not a process group", lambda: commsir.torch.window(1, group="world")),
        (commsir.UsageError, "there is no element type 'f4'", lambda: commsir.torch.window(1, "f4")),
        (commsir.UsageError, "the array is f32, but the window has bf16", lambda: window.put(torch.zeros(4), 0)),
        (
            commsir.BoundsError,
            "an array of 4 elements, (4,), does not fit a window of (2, 4) from index (1, 1) on, which has 3 there",
            lambda: window.put(row, 0, at=(1, 1)),
        ),
        (
            commsir.BoundsError,
            "an array of 9 elements, (9,), does not fit a window of (2, 4), which has 8",
            lambda: window.put(torch.zeros(9, dtype=torch.bfloat16), 0),
        ),
        (
            commsir.UsageError,
            "no array has the shape (3, -1): sizes are 0 or more",
            lambda: commsir.torch.window((3, -1)),
        ),
        (
            commsir.UsageError,
            "cannot be shared through DLPack: Cannot pack tensors on meta",
            lambda: window.put(row.to("meta"), 0),
        ),
        (commsir.BoundsError, "index 2 is out of bounds", lambda: window.get(0, at=2)),
        (commsir.UsageError, "rank 9 is not in a group", lambda: window.put(row, 9)),
        (commsir.UsageError, "cells 0 to 1, but not 2", lambda: window.signal(0, cell=2)),
        (commsir.UsageError, "not contiguous", lambda: window.put(torch.zeros(8, dtype=torch.bfloat16)[::2], 0)),
        (commsir.DeadlockError, "got no signal from rank 0", lambda: window.wait(source=0, timeout=0.01)),
    ]
    for error, parts, call in calls:
        try:
            call()
        except error as raised:
            assert parts in str(raised), f"'{raised}' does not say '{parts}'"
            assert "Exception raised from" not in str(raised), "torch's stack is told"
        else:
            raise AssertionError(f"nothing says '{parts}'")
    if commsir.torch.windows._groups[dist.group.WORLD][1].device == "cpu":
        try:
            commsir.torch.window(1, device="cuda")
        except ValueError as raised:
            assert "are on cpu" in str(raised)
        else:
            raise AssertionError("a second device is not refused")
    dist.barrier()


def disagreeing(rank: int, size: int) -> None:
    """Windows of other sizes, or with other cells, are none on any rank, and those before are as they were."""
    after, before = (rank + 1) % size, (rank - 1) % size
    window = commsir.torch.window(4)
    odd = odd_one(size)
    calls: list[tuple[Callable[[], Any], list[str]]] = [
        (lambda: commsir.torch.window(5 if rank == 1 else 4), ["rank 1: allocate 20 bytes", "rank 0: allocate 16"]),
        (
            lambda: commsir.torch.window(4, torch.float16 if rank == odd else torch.float32),
            [f"rank {odd}: allocate 8 bytes"],
        ),
        (
            lambda: commsir.torch.window((2, 2) if rank == odd else 4, torch.int32 if rank == odd else torch.float32),
            [f"rank {odd}: allocate 16 bytes for int32 (2, 2)", "allocate 16 bytes for float32 (4)"],
        ),
        (lambda: commsir.torch.window(4, signals=2 + rank), ["rank 1: allocate 192 bytes"]),
    ]
    for call, parts in calls:
        try:
            call()
        except commsir.DisagreementError as error:
            assert all(part in str(error) for part in [*parts, "the group can still be used"]), error
        else:
            raise AssertionError(f"rank {rank} has got such a window")
        window.put_signal(torch.full((4,), float(rank), device=window.tensor.device), after, 1)
        window.wait(1, source=before, timeout=60)
        assert (window.tensor == before).all()
        dist.barrier()
        window.reset_signal()
        dist.barrier()
    assert commsir.torch.window(4).tensor.shape == (4,)


def destroyed(rank: int, size: int, store: Any, kind: str) -> None:
    """Windows end with their process group, and no others: what had come to a rank that goes on is still there."""
    dist.init_process_group(kind, store=store, rank=rank, world_size=size)
    after, before = (rank + 1) % size, (rank - 1) % size
    window = commsir.torch.window(4)
    part: Any = dist.new_group(list(range(size)), backend=kind)
    other = commsir.torch.window(4, group=part)
    other.put_signal(torch.full((4,), float(rank), device=other.tensor.device), after)
    other.wait(source=before, timeout=60)
    dist.destroy_process_group(part)
    _is_over(other, after)
    if rank in (0, size - 1):
        window.put_signal(torch.full((4,), float(rank), device=window.tensor.device), after)
    if rank == 0:
        window.wait(source=before, timeout=60)
        dist.destroy_process_group()
        store.set("destroyed", "yes")
        return _is_over(window, after)
    store.wait(["destroyed"])
    if rank != size - 1:
        window.put_signal(torch.full((4,), float(rank), device=window.tensor.device), after)
    window.wait(source=before, timeout=60)
    assert (window.tensor == before).all() and (other.tensor == before).all()
    dist.destroy_process_group()
    return _is_over(window, after)


def _is_over(window: commsir.torch.windows.TensorWindow, peer: int) -> None:
    data = torch.zeros(4, device=window.tensor.device)
    for call in (
        lambda: window.put(data, peer),
        lambda: window.get(peer, out=data),
        lambda: window.signal(peer),
        lambda: window.put_signal(data, peer),
        lambda: window.wait(timeout=1),
        window.read_signal,
        lambda: window.peer(peer),
        window.release,
    ):
        said = error_of(call)
        assert "process group of the window f32 (4,) was destroyed: call init_process_group" in said, said


def push_weights(rank: int, size: int) -> None:
    from commsir.examples.torch import push_weights as example

    example.run()
