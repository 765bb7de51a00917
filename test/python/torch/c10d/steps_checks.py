"""Errors of ranks in calls of several steps, some of which do not exchange the program's elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed
from expected import error_of

dist: Any = torch.distributed


def _uneven(rank: int, size: int, dtype: torch.dtype) -> str:
    """Each rank sends rank + 1 elements to each other."""
    sent = [torch.ones(rank + 1, dtype=dtype) for _ in range(size)]
    got = [torch.zeros(peer + 1, dtype=dtype) for peer in range(size)]
    said: str = error_of(lambda: dist.all_to_all(got, sent))
    return said


def _lists(rank: int, size: int) -> str:
    parts = [torch.empty(peer + 1) for peer in range(size)]
    said: str = error_of(lambda: dist.all_gather(parts, torch.ones(rank + 1)))
    return said


def sizes(rank: int, size: int) -> list[str]:
    """The last rank makes another call, of as many elements as the others have sizes: what both are told."""
    other = rank == size - 1

    def gathers(elements: int) -> str:
        whole = torch.empty(elements * size, dtype=torch.int64)
        said: str = error_of(lambda: dist.all_gather_into_tensor(whole, torch.ones(elements, dtype=torch.int64)))
        return said

    told = [
        gathers(2 * size) if other else _uneven(rank, size, torch.float32),
        gathers(size) if other else _lists(rank, size),
    ]
    assert _uneven(rank, size, torch.float32) == ""
    return told


def second_step(rank: int, size: int) -> str:
    """An exchange whose sizes fit, of another type on the last rank: it is found in the second step of call 2."""
    dist.barrier()
    said = _uneven(rank, size, torch.int32 if rank == size - 1 else torch.float32)
    assert _uneven(rank, size, torch.float32) == ""
    return said


def tensors_in_one_array(rank: int, size: int) -> list[str]:
    """Tensors of other sizes on the last rank, which together are as large: what all are told."""
    other = rank == size - 1
    own = [torch.ones(2 + other), torch.ones(3 - other)]

    def gather() -> None:
        with dist._coalescing_manager():
            # Padded to words of 8 bytes, one element is as large as two.
            dist.all_gather_into_tensor(torch.zeros(size * (1 + other)), torch.ones(1 + other))

    def scatter() -> None:
        with dist._coalescing_manager():
            for tensor in own:
                dist.reduce_scatter_tensor(torch.zeros(tensor.numel()), torch.ones(size * tensor.numel()))

    told: list[str] = [error_of(call) for call in (gather, scatter, lambda: dist.all_reduce_coalesced(own))]
    alike = [torch.ones(2), torch.ones(3)]
    dist.all_reduce_coalesced(alike)
    assert all(bool((tensor == size).all()) for tensor in alike)
    return told


def nothing_on_one_rank(rank: int, size: int) -> list[str]:
    """The last rank has tensors of no elements: what all are told of each operation. Then none has elements."""
    calls: list[Callable[[int], Any]] = [
        lambda n: dist.all_reduce(torch.ones(n)),
        lambda n: dist.broadcast(torch.ones(n), 0),
        lambda n: dist.reduce(torch.ones(n), 0),
        lambda n: dist.all_gather_into_tensor(torch.ones(n * size), torch.ones(n)),
        lambda n: dist.reduce_scatter_tensor(torch.ones(n), torch.ones(n * size)),
        lambda n: dist.all_to_all_single(torch.ones(n * size), torch.ones(n * size)),
        lambda n: dist.scatter(torch.ones(n), [torch.ones(n)] * size if rank == 0 else None, 0),
        lambda n: dist.gather(torch.ones(n), [torch.ones(n) for _ in range(size)] if rank == 0 else None, 0),
    ]
    told = [error_of(partial(call, 0 if rank == size - 1 else 4)) for call in calls]
    for call in calls:
        call(0)
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == size
    return told
