"""The caller's cost of a synchronous call on CUDA tensors, in countable units: allocations.

A part of gpu_checks.py, which also counts the driver's calls. Nothing here depends on time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed
import torch.testing._internal.distributed.fake_pg  # noqa: F401  (registers the backend)

dist: Any = torch.distributed


def allocations_of(call: Callable[[], Any]) -> int:
    """How often C++ takes memory in a call that was made before; of FakeMemory.cpp."""
    count = ctypes.CDLL(None).fakeAllocations
    count.restype = ctypes.c_ulong
    for _ in range(3):
        call()
    taken: list[int] = []
    for _ in range(5):
        before = count()
        call()
        taken.append(int(count()) - before)
    return min(taken)  # A container of torch's may grow in one of them.


def a_synchronous_call_takes_no_memory(size: int) -> None:
    """What torch takes on the way to any backend, and nothing more: its backend `fake` makes a Work, in one piece."""
    x = torch.empty(64, device="cuda")
    fake, ours = dist.new_group(backend="fake"), dist.group.WORLD
    options = dist.AllreduceOptions()
    options.asyncOp = False

    def directly(group: Any) -> int:
        backend = group._get_backend(x.device)
        return allocations_of(lambda: backend.allreduce([x], options))

    assert allocations_of(lambda: torch.empty(64)) > 0
    assert directly(ours) < directly(fake), (directly(ours), directly(fake))
    taken, by_fake = (allocations_of(partial(dist.all_reduce, x, group=group)) for group in (ours, fake))
    assert taken < by_fake, (taken, by_fake)


def an_op_takes_no_memory(size: int) -> None:
    """No more than one that only makes its result: texts and handles of tensors are torch's."""
    import commsir.torch.ops  # noqa: F401

    x, y = torch.empty(64, device="cuda"), torch.empty(64, device="cuda")
    name = dist.group.WORLD.group_name
    nothing: Any = torch.ops.commsir._nothing
    out: Any = torch.ops.commsir.all_reduce.out
    least = allocations_of(lambda: nothing(x, "sum", name))
    taken = allocations_of(lambda: out(x, "sum", name, out=y))
    assert taken < least, (taken, least)


CHECKS = [a_synchronous_call_takes_no_memory, an_op_takes_no_memory]
