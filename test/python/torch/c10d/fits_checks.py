"""Calls whose tensors do not match, on one rank or between ranks: each raises, if possible on all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed
from expected import assert_own, close, error_of, odd_one

dist: Any = torch.distributed


def _still_usable(size: int) -> None:
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    close(tensor, torch.full((3,), float(size)))


def splits(rank: int, size: int) -> list[str]:
    """Rank 0 sends 3 elements to rank 1, which expects 2; and the same of a list, of integers."""
    sends, expects = [2] * size, [2] * size
    if rank == 0:
        sends[:2], expects[0] = [1, 3], 1
    out = torch.full((sum(expects),), -1.0)
    single = error_of(lambda: dist.all_to_all_single(out, torch.arange(float(sum(sends))), expects, sends))
    assert (out == -1).all(), out
    got = [torch.full((count,), -1) for count in expects]
    listed = error_of(lambda: dist.all_to_all(got, [torch.ones(count, dtype=torch.int64) for count in sends]))
    assert all((one == -1).all() for one in got), got
    _still_usable(size)
    # The same sizes with nothing wrong, and with ranks that have nothing to send or to receive.
    sends = [rank + 1 if peer != rank else 0 for peer in range(size)] if rank else [0] * size
    expects = [peer + 1 if peer != rank and peer else 0 for peer in range(size)]
    whole = torch.empty(sum(expects), 2)
    dist.all_to_all_single(whole, torch.full((sum(sends), 2), float(rank)), expects, sends)
    close(whole, torch.cat([torch.full((count, 2), float(peer)) for peer, count in enumerate(expects)]))
    return [single, listed]


def lists(rank: int, size: int) -> list[str]:
    """Lists whose tensors differ in size have to be alike on all ranks, not in their greatest alone."""
    counts = [3, 2] + [1] * (size - 2)
    wrong = list(counts)
    if rank == 0:
        wrong[odd_one(size)] = 3 - wrong[odd_one(size)]
    gathered = [torch.full((count,), -1.0) for count in wrong]
    first = error_of(lambda: dist.all_gather(gathered, torch.ones(wrong[rank])))
    assert all((one == -1).all() for one in gathered), gathered
    own = torch.full((wrong[rank],), -1.0)
    second = error_of(lambda: dist.reduce_scatter(own, [torch.ones(count) for count in wrong]))
    assert (own == -1).all(), own
    _still_usable(size)
    gathered = [torch.empty(count) for count in counts]
    dist.all_gather(gathered, torch.full((counts[rank],), float(rank)))
    for peer, one in enumerate(gathered):
        close(one, torch.full((counts[peer],), float(peer)))
    assert_own("all_gather", "reduce_scatter")
    return [first, second]


def arguments(rank: int, size: int) -> None:
    """What one rank can see by itself, in every form of the calls: other types, other sizes, other devices."""
    group = dist.distributed_c10d._get_default_group()
    x, ints, meta = torch.ones(4), torch.ones(4, dtype=torch.int32), torch.ones(4, device="meta")
    whole = torch.ones(4 * size)
    gather, scatter = dist.distributed_c10d.AllgatherOptions(), dist.ReduceScatterOptions()
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("types", lambda: dist.all_gather([ints] * size, x)),
        ("types", lambda: dist.all_gather_into_tensor(torch.ones(4 * size, dtype=torch.int32), x)),
        ("types", lambda: dist.reduce_scatter(x, [ints] * size)),
        ("types", lambda: dist.reduce_scatter_tensor(ints, whole)),
        ("types", lambda: dist.all_to_all([ints] * size, [x] * size)),
        ("types", lambda: dist.all_to_all_single(whole.int(), whole)),
        ("types", lambda: group.allgather_coalesced([[ints]] * size, [x], gather).wait()),
        ("types", lambda: group.allgather_into_tensor_coalesced([whole.int()], [x], gather).wait()),
        ("types", lambda: group.reduce_scatter_tensor_coalesced([ints], [whole], scatter).wait()),
        ("types", lambda: group.allreduce_coalesced([x, ints], dist.AllreduceCoalescedOptions()).wait()),
        ("", lambda: group.allgather_coalesced([[whole]] * size, [x], gather).wait()),
        ("", lambda: group.allgather_into_tensor_coalesced([whole[:-1]], [x], gather).wait()),
        ("", lambda: group.reduce_scatter_tensor_coalesced([x[:-1]], [whole], scatter).wait()),
        ("elements", lambda: dist.all_gather([x[:3].clone() for _ in range(size)], x)),
        ("size", lambda: dist.all_gather_into_tensor(whole[:-1], x)),
        ("elements", lambda: dist.reduce_scatter(x[:3], [x] * size)),
        ("size", lambda: dist.reduce_scatter_tensor(x, whole[:-1])),
        ("elements", lambda: dist.all_to_all_single(whole.repeat(2), whole)),
        ("", lambda: dist.all_gather([meta] * size, x)),
        ("", lambda: dist.reduce_scatter(x, [meta] * size)),
    ]
    said = [error_of(call) for _, call in calls]
    for i, ((text, _), error) in enumerate(zip(calls, said, strict=True)):
        assert error and text in error, f"call {i}: '{text}' is not in '{error}'"
    _still_usable(size)


def transfers(rank: int, size: int, wrong: str) -> str:
    """Rank 0 sends 4 x float32 to rank 1, which receives something else; what both of them are told."""
    # What fits goes by, in order, also where it is waited for in another.
    got = [torch.zeros(4), torch.zeros(4), torch.zeros(2, dtype=torch.int64)]
    dist.barrier()
    if rank % 2:
        works = [dist.irecv(tensor, rank - 1) for tensor in got]
        for work in reversed(works):
            work.wait()
        assert [float(tensor[0]) for tensor in got] == [1, 2, 3], got
    elif rank + 1 < size:
        for i, tensor in enumerate(got):
            dist.send(torch.full_like(tensor, i + 1), rank + 1)
    if rank > 1:
        return ""
    tensor = torch.ones(4) if rank == 0 else {"size": torch.zeros(2), "type": torch.zeros(4, dtype=torch.int32)}[wrong]
    text: str = error_of(lambda: dist.send(tensor, 1, tag=3) if rank == 0 else dist.recv(tensor, 0, tag=3))
    assert rank == 0 or not tensor.any(), tensor
    assert "no longer be used" in error_of(lambda: dist.all_reduce(torch.ones(1)))
    return text
