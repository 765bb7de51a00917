"""Collectives give what they should; each function runs on all ranks."""

from __future__ import annotations

from typing import Any

import commsir.torch
import torch
import torch.distributed
from expected import R, assert_own, close, data, error_of, odd_one, paths, reduced

dist: Any = torch.distributed


def all_reduce(rank: int, size: int, dtypes: list[torch.dtype], ops: list[Any], own: bool = True) -> None:
    commsir.torch.clear_stats()
    for dtype in dtypes:
        for op in ops:
            for shape in (1, 37, (5, 16)):
                tensor = data(rank, shape, dtype)
                dist.all_reduce(tensor, op=op)
                close(tensor, reduced(op, [data(r, shape, dtype) for r in range(size)]), f"{dtype} {op} {shape}")
    if own:
        assert_own("all_reduce")


def premultiplied(rank: int, size: int) -> None:
    tensor = data(rank, 20, torch.float32)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
    close(tensor, 0.5 * reduced(R.SUM, [data(r, 20, torch.float32) for r in range(size)]))
    scalar = torch.tensor(3.0)
    dist.all_reduce(scalar, op=dist._make_nccl_premul_sum(torch.tensor([2.0])))
    assert scalar.item() == 6.0 * size
    said = error_of(lambda: dist.all_reduce(torch.ones(2), op=dist._make_nccl_premul_sum(torch.tensor([2j]))))
    assert "PREMUL_SUM takes a real factor" in said, said
    whole = torch.tensor([3, 4])
    dist.all_reduce(whole, op=dist._make_nccl_premul_sum(2.0))
    assert whole.tolist() == [6 * size, 8 * size]
    for half in (0.5, torch.tensor([0.5])):
        op = dist._make_nccl_premul_sum(half)
        said = error_of(lambda op=op: dist.all_reduce(torch.tensor([3, 4]), op=op))
        assert "would cut off the factor" in said, said
    # One element is contiguous whatever its stride.
    column = torch.arange(4.0).reshape(2, 2)[:1, 1]
    gathered = torch.zeros(size)
    with dist._coalescing_manager():
        dist.all_gather_into_tensor(gathered, column)
    assert bool((gathered == 1.0).all())
    assert_own("all_reduce")


def many_sizes(rank: int, size: int) -> None:
    for elements in (0, 1, 3, 64, 1000, 4099, 65536, 1 << 18):
        tensor = data(rank, elements, torch.float32)
        dist.all_reduce(tensor)
        close(tensor, reduced(R.SUM, [data(r, elements, torch.float32) for r in range(size)]), str(elements))


def not_contiguous(rank: int, size: int) -> None:
    tensor = data(rank, (6, 4), torch.float32).t()
    dist.all_reduce(tensor)
    close(tensor, reduced(R.SUM, [data(r, (6, 4), torch.float32) for r in range(size)]).t())
    strided = data(rank, (8, 3), torch.float32)
    dist.broadcast(strided[::2], 1)
    close(strided[::2], data(1, (8, 3), torch.float32)[::2])
    close(strided[1::2], data(rank, (8, 3), torch.float32)[1::2])
    parts = [torch.zeros(4, 3).t() for _ in range(size)]
    dist.all_gather(parts, data(rank, (4, 3), torch.float32).t())
    for r, part in enumerate(parts):
        close(part, data(r, (4, 3), torch.float32).t())
    # One element lies as a contiguous tensor does, and is the negative of what is in memory.
    ones = [torch.zeros(1) for _ in range(size)]
    dist.all_gather(ones, torch.tensor([complex(0, rank + 1)]).conj().imag)
    assert [int(one) for one in ones] == [-r - 1 for r in range(size)]


def moves(rank: int, size: int, dtypes: list[torch.dtype]) -> None:
    """Broadcast, gathers, scatters and exchanges, which move bytes of any type."""
    commsir.torch.clear_stats()
    for dtype in dtypes:
        root = size - 1
        tensor = data(rank, 33, dtype)
        dist.broadcast(tensor, root)
        close(tensor, data(root, 33, dtype))

        parts = [torch.empty(33, dtype=dtype) for _ in range(size)]
        dist.all_gather(parts, data(rank, 33, dtype))
        for r in range(size):
            close(parts[r], data(r, 33, dtype))

        whole = torch.empty(33 * size, dtype=dtype)
        dist.all_gather_into_tensor(whole, data(rank, 33, dtype))
        close(whole, torch.cat([data(r, 33, dtype) for r in range(size)]))

        gathered = [torch.empty(33, dtype=dtype) for _ in range(size)] if rank == 1 else None
        dist.gather(data(rank, 33, dtype), gathered, dst=1)
        if gathered:
            for r in range(size):
                close(gathered[r], data(r, 33, dtype))

        own, giver = torch.empty(33, dtype=dtype), odd_one(size)
        dist.scatter(own, [data(r + 7, 33, dtype) for r in range(size)] if rank == giver else None, src=giver)
        close(own, data(rank + 7, 33, dtype))

        swapped = torch.empty(size * 4, dtype=dtype)
        dist.all_to_all_single(swapped, data(rank, size * 4, dtype))
        close(swapped, torch.cat([data(r, size * 4, dtype)[4 * rank : 4 * rank + 4] for r in range(size)]))
    assert_own("broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "all_to_all_single")


def uneven(rank: int, size: int) -> None:
    commsir.torch.clear_stats()
    sent = [data(10 * rank + r, rank + 2 * r, torch.float32) for r in range(size)]
    got = [torch.empty(r + 2 * rank) for r in range(size)]
    dist.all_to_all(got, sent)
    for r in range(size):
        close(got[r], data(10 * r + rank, r + 2 * rank, torch.float32))

    flat = torch.empty(sum(r + 2 * rank for r in range(size)), 3)
    rows = data(rank, (sum(rank + 2 * r for r in range(size)), 3), torch.float32)
    dist.all_to_all_single(flat, rows, [r + 2 * rank for r in range(size)], [rank + 2 * r for r in range(size)])
    at = 0
    for r in range(size):
        theirs = data(r, (sum(r + 2 * q for q in range(size)), 3), torch.float32)
        begin = sum(r + 2 * q for q in range(rank))
        close(flat[at : at + r + 2 * rank], theirs[begin : begin + r + 2 * rank])
        at += r + 2 * rank

    parts = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(parts, data(rank, rank + 1, torch.float32))
    for r in range(size):
        close(parts[r], data(r, r + 1, torch.float32))
    mine = torch.empty(rank + 1)
    dist.reduce_scatter(mine, [data(rank, r + 1, torch.float32) for r in range(size)])
    close(mine, reduced(R.SUM, [data(r, rank + 1, torch.float32) for r in range(size)]))
    if torch.get_default_device().type == "cuda":  # The first two are NCCL's there.
        assert {("all_gather", "commsir"), ("reduce_scatter", "commsir")} <= {*paths()}
    else:
        assert_own("all_to_all", "all_to_all_single", "all_gather", "reduce_scatter")


def reductions(rank: int, size: int) -> None:
    """reduce, reduce_scatter and their forms."""
    commsir.torch.clear_stats()
    for op in (R.SUM, R.AVG, R.MAX):
        tensor = data(rank, 20, torch.float32)
        dist.reduce(tensor, dst=1, op=op)
        wanted = reduced(op, [data(r, 20, torch.float32) for r in range(size)])
        if rank == 1:
            close(tensor, wanted)

        whole = [data(10 * r, 6 * size, torch.float32) for r in range(size)]
        own = torch.empty(6)
        dist.reduce_scatter_tensor(own, whole[rank].clone(), op=op)
        close(own, reduced(op, whole)[6 * rank : 6 * rank + 6])
        dist.reduce_scatter(own, list(whole[rank].chunk(size)), op=op)
        close(own, reduced(op, whole)[6 * rank : 6 * rank + 6])
    assert_own("reduce", "reduce_scatter_tensor", "reduce_scatter")


def unsigned_averages(rank: int, size: int) -> None:
    """Of the types that torch does not divide."""
    for dtype, top in ((torch.uint8, 8), (torch.uint16, 16), (torch.uint32, 32), (torch.uint64, 64)):
        numbers = [[3, (1 << top) // size - 1, (1 << top) - 1 if r == 0 else 0, r + 5] for r in range(size)]
        wanted = [sum(column) % (1 << top) // size for column in zip(*numbers, strict=True)]
        tensor = torch.tensor(numbers[rank], dtype=dtype)
        dist.all_reduce(tensor, op=R.AVG)
        assert tensor.tolist() == wanted, (dtype, tensor, wanted)
    assert_own("all_reduce")


def singles(rank: int, size: int) -> bool:
    """By the names of torch 2.14 and newer. False: a backend in C++ is not reached by them before that."""
    group = dist.distributed_c10d._get_default_group()
    if not hasattr(group, "gather_single"):
        return False
    commsir.torch.clear_stats()
    x, whole = data(rank, (3, 5), torch.float32), data(rank, (3 * size, 5), torch.float32)
    all_x = [data(r, (3, 5), torch.float32) for r in range(size)]
    all_whole = [data(r, (3 * size, 5), torch.float32) for r in range(size)]
    mine = slice(3 * rank, 3 * rank + 3)
    every, part = torch.empty(3 * size, 5), torch.empty(3, 5)
    group.all_gather_single(every, x, dist.distributed_c10d.AllgatherOptions()).wait()
    close(every, torch.cat(all_x))
    group.reduce_scatter_single(part, whole, dist.ReduceScatterOptions()).wait()
    close(part, reduced(R.SUM, all_whole)[mine])
    group.all_to_all_single(every, whole, [], [], dist.AllToAllOptions()).wait()
    close(every, torch.cat([one[mine] for one in all_whole]))
    opts = dist.GatherOptions()
    opts.rootRank = 1
    stacked = torch.empty(size, 5, 3) if rank == 1 else torch.empty(0)
    group.gather_single(stacked, x.t(), opts).wait()
    if rank == 1:
        close(stacked, torch.stack([one.t() for one in all_x]))
    opts.rootRank = rank
    said = error_of(lambda: group.gather_single(torch.empty(7), x, opts))
    assert f"15 elements from each of {size} ranks into a tensor of 7" in said, said
    group.all_gather_single_coalesced([every], [x], dist.distributed_c10d.AllgatherOptions()).wait()
    close(every, torch.cat(all_x))
    group.reduce_scatter_single_coalesced([part], [whole], dist.ReduceScatterOptions()).wait()
    close(part, reduced(R.SUM, all_whole)[mine])
    assert_own("all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "gather_into_tensor")
    return True


def coalesced(rank: int, size: int) -> None:
    commsir.torch.clear_stats()
    tensors = [data(rank, n, torch.float32) for n in (3, 17, 64)]
    dist.all_reduce_coalesced(tensors)
    for tensor, n in zip(tensors, (3, 17, 64), strict=True):
        close(tensor, reduced(R.SUM, [data(r, n, torch.float32) for r in range(size)]))
    with dist._coalescing_manager(async_ops=True) as manager:
        for n in (3, 17):
            tensors[0 if n == 3 else 1] = tensor = data(rank, n, torch.float32)
            dist.all_reduce(tensor)
    manager.wait()
    for i, n in enumerate((3, 17)):
        close(tensors[i], reduced(R.SUM, [data(r, n, torch.float32) for r in range(size)]))
    outputs = [torch.empty(n * size) for n in (5, 9)]
    with dist._coalescing_manager():
        for output, n in zip(outputs, (5, 9), strict=True):
            dist.all_gather_into_tensor(output, data(rank, n, torch.float32))
    for output, n in zip(outputs, (5, 9), strict=True):
        close(output, torch.cat([data(r, n, torch.float32) for r in range(size)]))
    shards = [torch.empty(n) for n in (5, 9)]
    with dist._coalescing_manager():
        for shard, n in zip(shards, (5, 9), strict=True):
            dist.reduce_scatter_tensor(shard, data(rank, n * size, torch.float32))
    for shard, n in zip(shards, (5, 9), strict=True):
        close(shard, reduced(R.SUM, [data(r, n * size, torch.float32) for r in range(size)])[n * rank : n * rank + n])
    assert_own("all_reduce_coalesced", "all_gather_into_tensor_coalesced")
