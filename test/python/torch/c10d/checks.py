"""The ranks' part of the backend's tests; each function runs on all ranks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import commsir.torch
import torch
import torch.distributed

dist: Any = torch.distributed
R = dist.ReduceOp
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


def odd_one(size: int) -> int:
    """The rank that is late, fails or differs, where tests have one: never rank 0."""
    return min(2, size - 1)


def halves_of(size: int) -> list[list[int]]:
    """The ranks in two parts, which differ by one rank where their number is odd."""
    return [list(range(size // 2)), list(range(size // 2, size))]


def data(rank: int, shape: int | tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """What a rank gives: the same wherever it is asked for."""
    generator = torch.Generator().manual_seed(1000 + rank)
    shape = (shape,) if isinstance(shape, int) else shape
    place = torch.get_default_device()
    with torch.device("cpu"):
        if dtype == torch.bool:
            return (torch.rand(shape, generator=generator) < 0.4).to(place)
        if dtype.is_complex:
            return torch.view_as_complex(torch.randn((*shape, 2), generator=generator)).to(place, dtype)
        if dtype.is_floating_point:
            return torch.randn(shape, generator=generator).to(place, dtype)
        low = 0 if dtype == torch.uint8 else -20
        return torch.randint(low, 250 if dtype == torch.uint8 else 20, shape, generator=generator).to(place, dtype)


def reduced(op: Any, parts: list[torch.Tensor]) -> torch.Tensor:
    """What ranks should get, computed in double or in integers."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stacked = torch.stack(parts)
        if op == R.BXOR:
            return stacked.sum(0) % 2 == 1
        return stacked.all(0) if op in (R.PRODUCT, R.MIN, R.BAND) else stacked.any(0)
    if dtype.is_complex:
        return torch.stack(parts).sum(0) / (len(parts) if op == R.AVG else 1)
    wide = torch.stack([part.to(torch.float64 if dtype.is_floating_point else torch.int64) for part in parts])
    if op == R.SUM:
        result = wide.sum(0)
    elif op == R.AVG:
        total = wide.sum(0)
        rounding = None if dtype.is_floating_point else "trunc"
        total = total if dtype.is_floating_point else total.to(dtype).to(torch.int64)
        result = torch.div(total, len(parts), rounding_mode=rounding)
    elif op == R.PRODUCT:
        result = wide.prod(0)
    elif op in (R.MIN, R.MAX):
        result = wide.amin(0) if op == R.MIN else wide.amax(0)
    else:
        result = wide[0]
        for part in wide[1:]:
            result = result & part if op == R.BAND else result | part if op == R.BOR else result ^ part
    return result.to(dtype)


def close(got: torch.Tensor, wanted: torch.Tensor, what: str = "") -> None:
    exact = not (got.dtype.is_floating_point or got.dtype.is_complex)
    bound = {torch.float16: 1e-2, torch.bfloat16: 5e-2}.get(got.dtype, 1e-4)
    torch.testing.assert_close(
        got, wanted, rtol=0 if exact else bound, atol=0 if exact else bound, msg=lambda text: f"{what}: {text}"
    )


def paths() -> dict[tuple[str, str], str]:
    """(op, path): reason, of the calls since `clear_stats`."""
    return {(c["op"], c["path"]): c["reason"] for c in commsir.torch.stats()["calls"]}


def assert_own(*ops: str) -> None:
    """These ops, and all others but sends and receives on GPUs, have run on CommsIR."""
    seen = paths()
    for op in ops:
        assert (op, "commsir") in seen, f"{op} has not run on CommsIR: {seen}"
    others = {
        key: why for key, why in seen.items() if key[1] != "commsir" and key not in {("send", "nccl"), ("recv", "nccl")}
    }
    assert not others, f"delegated: {others}"


# Collectives against what they should give.


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


# Order, asynchrony, sends.


def in_order(rank: int, size: int) -> None:
    """Calls on one tensor see what the calls before them wrote, also when nobody waited in between."""
    tensor = torch.ones(64)
    works = [dist.all_reduce(tensor, async_op=True) for _ in range(5)]
    for work in works:
        work.wait()
    close(tensor, torch.full((64,), float(size**5)))
    future = dist.all_reduce(tensor.fill_(1), async_op=True).get_future()
    assert torch.equal(future.wait()[0], torch.full((64,), float(size)))
    done = dist.all_reduce(tensor.fill_(2), async_op=True)
    doubled = done.get_future().then(lambda f: f.value()[0] * 2)
    close(doubled.wait(), torch.full((64,), 4.0 * size))
    assert done.is_completed() and done.is_success()
    # Who asks for the future of a call that is over gets one that is done.
    for _ in range(200):
        work = dist.all_reduce(tensor.fill_(1), async_op=True)
        work.wait()
        assert torch.equal(work.get_future().value()[0], torch.full((64,), float(size)))


def callbacks(rank: int, size: int) -> None:
    """What a callback of a future asks for runs at once, also where it waits, before what was called meanwhile."""

    def twice(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        (total,) = future.value()
        dist.all_reduce(total)
        # As torch's PowerSGD hook has it.
        (ones,) = dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
        both: torch.Tensor = total + ones
        return both

    tensor = torch.ones(3000)
    sizes = [4, 5, 6]
    totals = [dist.all_reduce(torch.ones(n), async_op=True).get_future().then(twice) for n in sizes]
    for n, total in zip(sizes, totals, strict=True):
        close(total.wait(), torch.full((n,), float(size**2 + size)))
    for _ in range(50):
        work = dist.all_reduce(tensor.fill_(1), async_op=True)
        future = work.get_future()
        # On a GPU callbacks run once the call is queued, as NCCL has it.
        ended = future.then(lambda _, work=work: work.wait() and (work.is_completed() or tensor.is_cuda))
        work.wait()
        close(future.value()[0], torch.full((3000,), float(size)))
        assert ended.wait()


def sends(rank: int, size: int) -> None:
    commsir.torch.clear_stats()
    _sends(rank, size)
    dist.barrier()
    right, left = (rank + 1) % size, (rank - 1) % size
    # What lies apart is there, too, for who asks and does not wait.
    apart = torch.zeros(9, 2)
    sent, received = dist.isend(data(rank, 9, torch.float32), right), dist.irecv(apart[:, 1], left)
    deadline = time.monotonic() + 30
    while not (sent.is_completed() and received.is_completed()):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    close(apart[:, 1], data(left, 9, torch.float32))
    assert not apart[:, 0].any()
    # Nobody holds the work (Gloo would lose the message), or waits before the other side has it.
    large = torch.empty(3000000)
    dist.isend(torch.full((3000000,), float(rank)), (rank + 1) % size, tag=3)
    dist.recv(large, (rank - 1) % size, tag=3)
    close(large, torch.full((3000000,), float((rank - 1) % size)))
    assert_own("send", "recv")
    assert rank or ("recvAnySource", "commsir") in paths()


def sends_between_hosts(rank: int, size: int) -> None:
    """Gloo takes them where ranks do not share memory."""
    group = dist.group.WORLD
    store = dist.PrefixStore("cpu/", dist.distributed_c10d._world.pg_map[group][1])
    name = group.group_name
    # Each rank says that it is elsewhere.
    key, said = f"commsir/{name}/sends/here/{rank}", store.get(f"commsir/{name}/sends/here/{rank}").decode()
    elsewhere = f"0 1 0 host{rank}"
    store.set(key, elsewhere if " " in said else elsewhere.encode().hex())
    dist.barrier()
    commsir.torch.clear_stats()
    _sends(rank, size)
    assert paths()["send", "gloo"] == "ranks do not share memory", paths()
    assert ("send", "commsir") not in paths()


def _sends(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.empty(9)
    requests = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, data(rank, 9, torch.float32), right), dist.P2POp(dist.irecv, got, left)]
    )
    for request in requests:
        request.wait()
    close(got, data(left, 9, torch.float32))
    # Tags are matched, and a send does not hold up what follows it.
    one = dist.isend(data(rank, 4, torch.float32), right, tag=1)
    two = dist.isend(data(rank, 5, torch.float32), right, tag=2)
    total = torch.ones(1)
    dist.all_reduce(total)
    second, first = torch.empty(5), torch.empty(4)
    dist.recv(second, left, tag=2)
    dist.recv(first, left, tag=1)
    one.wait()
    two.wait()
    two.wait()
    close(first, data(left, 4, torch.float32))
    close(second, data(left, 5, torch.float32))
    if rank == 0:
        senders = set()
        for _ in range(size - 1):
            senders.add(dist.recv(got))
            assert got[0] in range(1, size)
        assert senders == set(range(1, size))
    else:
        dist.send(torch.full((9,), float(rank)), 0)
    strided = torch.zeros(6, 2)
    if rank == 0:
        dist.send(data(0, (2, 6), torch.float32).t(), 1)
    elif rank == 1:
        dist.recv(strided[:, :], 0)
        close(strided, data(0, (2, 6), torch.float32).t())


def objects(rank: int, size: int) -> None:
    gathered: list[Any] = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": r, "text": "x" * r} for r in range(size)]
    told = [rank, "from 1"] if rank == 1 else [None, None]
    dist.broadcast_object_list(told, src=1)
    assert told == [1, "from 1"]
    own: list[Any] = [None]
    dist.scatter_object_list(own, [{"to": r} for r in range(size)] if rank == 0 else None, src=0)
    assert own == [{"to": rank}]


# Groups.


def groups(rank: int, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    halves = [dist.new_group(members) for members in halves_of(size)]
    mine = rank >= size // 2
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor, group=halves[mine])
    close(tensor, torch.full((3,), float(sum(halves_of(size)[mine]))))
    gloo = dist.new_group(backend="gloo")
    dist.all_reduce(tensor.fill_(1), group=gloo)
    close(tensor, torch.full((3,), float(size)))
    # Two rows; of a number of ranks that is odd, one column.
    inner = size // 2 if size % 2 == 0 else 1
    mesh = init_device_mesh(torch.get_default_device().type, (size // inner, inner), mesh_dim_names=("outer", "inner"))
    dist.all_reduce(tensor.fill_(rank), group=mesh.get_group("outer"))
    close(tensor, torch.full((3,), float(sum(range(rank % inner, size, inner)))))


def functional(rank: int, size: int) -> None:
    import torch.distributed._functional_collectives as fc

    group = dist.group.WORLD
    tensor, all_data = data(rank, 3 * size, torch.float32), [data(r, 3 * size, torch.float32) for r in range(size)]
    close(fc.all_reduce(tensor, "sum", group) + 0, reduced(R.SUM, all_data))
    close(fc.all_gather_tensor(tensor, 0, group) + 0, torch.cat(all_data))
    shard = fc.reduce_scatter_tensor(tensor, "sum", 0, group) + 0
    close(shard, reduced(R.SUM, all_data)[3 * rank : 3 * rank + 3])


def one_rank(rank: int, size: int) -> None:
    alone = [dist.new_group([r]) for r in range(size)][rank]
    tensor = data(rank, 7, torch.float32)
    dist.all_reduce(tensor, group=alone)
    dist.all_reduce(tensor, op=R.AVG, group=alone)
    close(tensor, data(rank, 7, torch.float32))
    parts = [torch.empty(7)]
    dist.all_gather(parts, tensor, group=alone)
    close(parts[0], tensor)
    # Not contiguous: by way of copies.
    turned, got = data(rank, (3, 4), torch.float32).t(), torch.zeros(3, 4).t()
    dist.all_to_all([got], [turned], group=alone)
    close(got, turned)
    dist.barrier(group=alone)


# Failures.


def error_of(call: Any) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


def told(call: Any) -> str:
    """What a call that fails says: by itself on the CPU; on a GPU, where it has returned by then, by the next one."""
    text = error_of(call)
    if not text and torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()
        text = error_of(call)
    return text


def mismatched(rank: int, size: int) -> str:
    return told(lambda: dist.all_reduce(torch.ones(8 if rank != 1 else 9)))


def mismatched_calls(rank: int, size: int) -> str:
    if rank == 1:
        return told(lambda: dist.broadcast(torch.ones(8), 0))
    return told(lambda: dist.all_reduce(torch.ones(8)))


def mismatched_types(rank: int, size: int) -> list[tuple[str, str]]:
    """Types of one width, in what only moves bytes: what each call says. On the CPU the group goes on each time."""
    odd = rank == odd_one(size)
    whole = torch.int32 if odd else torch.float32
    said = []

    def lists(dtype: torch.dtype) -> list[torch.Tensor]:
        return [torch.ones(3, dtype=dtype) for _ in range(size)]

    calls: list[tuple[str, Callable[[], Any]]] = [
        (
            "i32",
            lambda: dist.all_gather_into_tensor(torch.empty(4 * size, dtype=whole), torch.ones(4, dtype=whole)),
        ),
        ("i32", lambda: dist.all_to_all_single(torch.empty(size, dtype=whole), torch.ones(size, dtype=whole))),
        ("i32", lambda: dist.all_gather(lists(whole), torch.ones(3, dtype=whole))),
        ("ui8", lambda: dist.all_reduce(torch.ones(5, dtype=torch.uint8 if odd else torch.int8), op=R.MAX)),
        ("i64", lambda: dist.all_reduce(torch.ones(5, dtype=torch.int64 if odd else torch.float64))),
        (
            "i1",
            lambda: dist.all_gather_into_tensor(
                torch.empty(2 * size, dtype=torch.bool if odd else torch.int8),
                torch.ones(2, dtype=torch.bool if odd else torch.int8),
            ),
        ),
    ]
    for name, call in calls:
        said.append((name, error_of(call)))
        tensor = torch.ones(6)
        dist.all_reduce(tensor)
        close(tensor, torch.full((6,), float(size)))
    return said


def mismatched_broadcast(rank: int, size: int) -> str:
    """A rank that only reads may be done before the other comes: then it is told in its next call."""
    tensor = torch.full((4,), rank, dtype=torch.int32 if rank == odd_one(size) else torch.float32)
    text = told(lambda: dist.broadcast(tensor, 0))
    if text:
        return text
    close(tensor, torch.zeros(4))
    return error_of(lambda: dist.barrier())


def queued_behind_a_mismatch(rank: int, size: int) -> str:
    """Calls that were issued before the failure is known are carried out, on all ranks."""
    tensors = [torch.full((elements,), 1.0) for elements in (7, 8 if rank != 1 else 9, 5, 6)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    works[0].wait()
    text = error_of(works[1].wait)
    for i in (2, 3):
        works[i].wait()
        close(tensors[i], torch.full_like(tensors[i], float(size)))
    return text


def late_peer(rank: int, size: int, store: Any) -> list[str]:
    """What the call says in which a rank does not come, and later ones."""
    dist.init_process_group("commsir", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=120))
    dist.all_reduce(torch.ones(2))
    if rank == odd_one(size):
        for other in range(size):
            if other != rank:
                store.wait([f"over {other}"])
        return []
    dist.distributed_c10d._get_default_group().set_timeout(timedelta(seconds=1))
    said = [error_of(lambda: dist.all_reduce(torch.ones(2)))]
    said += [error_of(call) for call in (lambda: dist.all_reduce(torch.ones(3)), dist.barrier)]
    store.set(f"over {rank}", "yes")
    return said


def bad_arguments(rank: int, size: int) -> list[str]:
    ones = torch.ones(4)
    return [
        error_of(lambda: dist.all_gather([torch.empty(4, dtype=torch.int32)] * size, ones)),
        error_of(lambda: dist.all_gather_into_tensor(torch.empty(5), ones)),
        error_of(lambda: dist.all_reduce(ones, op=R.BAND)),
        error_of(lambda: dist.all_gather([ones], ones)),
    ]


def send_to_oneself(rank: int, size: int) -> str:
    ones = torch.ones(4)
    pair = [dist.P2POp(dist.isend, ones, rank), dist.P2POp(dist.irecv, torch.empty(4), rank)]
    said = error_of(lambda: [work.wait() for work in dist.batch_isend_irecv(pair)])
    dist.all_reduce(ones)
    close(ones, torch.full((4,), float(size)))
    return said


def still_usable(rank: int, size: int) -> None:
    """A call that was refused leaves the group as it was."""
    bad_arguments(rank, size)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    close(tensor, torch.full((2,), float(size)))


def absent_peer(rank: int, size: int, store: Any) -> str:
    dist.init_process_group("commsir", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=120))
    dist.all_reduce(torch.ones(2))
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        text = error_of(lambda: work.wait(timedelta(seconds=1)))
        store.set("over", "yes")
        return text
    store.wait(["over"])
    return ""


def destroyed(rank: int, size: int, store: Any) -> str:
    dist.init_process_group("commsir", store=store, rank=rank, world_size=size)
    group = dist.distributed_c10d._get_default_group()
    dist.all_reduce(torch.ones(2))
    dist.destroy_process_group()
    return error_of(lambda: group.allreduce([torch.ones(2)]).wait())


def forked(rank: int, size: int) -> str:
    dist.all_reduce(torch.ones(2))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = error_of(lambda: dist.all_reduce(torch.ones(2)))
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    text = os.read(reader, 10000).decode()
    os.close(reader)
    dist.all_reduce(torch.ones(2))
    return text


def aborted(rank: int, size: int, store: Any) -> str:
    # Whoever waits on a GPU does not hear of an abort: his time has to be over.
    limit = timedelta(seconds=60 if torch.get_default_device().type == "cpu" else 4)
    dist.init_process_group("commsir", store=store, rank=rank, world_size=size, timeout=limit)
    dist.all_reduce(torch.ones(2))
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        time.sleep(0.3)
        commsir.torch.abort(reason="the test says so")
        first = error_of(lambda: work.wait())
        store.set("aborted", "yes")
        return first + " / " + error_of(lambda: dist.all_reduce(torch.ones(2)))
    store.wait(["aborted"])
    # Rank 0's part of the first may have come before it gave up.
    return told(lambda: dist.all_reduce(torch.ones(2))) or told(lambda: dist.all_reduce(torch.ones(2)))


def barrier_of_gpus(rank: int, size: int) -> None:
    """Where there is no GPU, it is one of the CPU."""
    dist.barrier(device_ids=[torch.cuda.current_device() if torch.cuda.is_available() else 0])


def monitored(rank: int, size: int) -> str:
    store = dist.distributed_c10d._get_default_store()
    commsir.torch.clear_stats()
    dist.monitored_barrier()
    assert set(paths()) == {("monitored_barrier", "store")}, paths()
    if rank == odd_one(size):
        store.wait([f"given up/{other}" for other in range(size) if other != rank])
        return ""
    text = error_of(lambda: dist.monitored_barrier(timeout=timedelta(seconds=3)))
    store.set(f"given up/{rank}", "yes")
    return text


def recorded(rank: int, size: int) -> Any:
    dist.all_reduce(torch.ones(3))
    dist.broadcast(torch.ones(4), 1)
    group = dist.distributed_c10d._get_default_group()
    number = group._get_backend(torch.get_default_device())._get_sequence_number_for_group()
    return commsir.torch.recent_calls()[-2:], number, commsir.torch.stats()


# Backends of the user's own, memory of others.


def fp8(rank: int, size: int, store: Any) -> None:
    import examples

    examples.register()
    dist.init_process_group("fp8", store=store, rank=rank, world_size=size)
    commsir.torch.clear_stats()
    tensor = data(rank, 64, torch.float32)
    dist.all_reduce(tensor)
    wanted = reduced(R.SUM, [data(r, 64, torch.float32) for r in range(size)])
    torch.testing.assert_close(tensor, wanted, rtol=0.1, atol=0.5)
    assert not torch.equal(tensor, wanted), "numbers have not been through fp8"
    dist.broadcast(tensor, 1)
    assert_own("fp8_all_reduce", "broadcast")


class _Doubling(commsir.torch.ProcessGroup):
    """Its plain calls give twice what they should; one of them waits for ours before it returns."""

    def _twice(self, name: str, target: torch.Tensor, _: torch.distributed.Work) -> torch.distributed.Work:
        def run() -> None:
            target.mul_(2)

        return self.submit(name, [target], [target], run)

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> torch.distributed.Work:
        return self._twice("my_all_reduce", tensors[0], super().allreduce(tensors, opts))

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> torch.distributed.Work:
        super()._allgather_base(output, input, opts).wait()
        output.mul_(2)
        return self.submit("my_all_gather", [output], [output], lambda: None)

    def _reduce_scatter_base(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> torch.distributed.Work:
        return self._twice("my_reduce_scatter", output, super()._reduce_scatter_base(output, input, opts))


def overridden(rank: int, size: int, store: Any) -> None:
    """Coalesced calls are made of what a subclass has overridden."""
    commsir.torch.register_backend("doubling", _Doubling)
    dist.init_process_group("doubling", store=store, rank=rank, world_size=size)
    commsir.torch.clear_stats()
    counts = (3, 17)
    tensors = [data(rank, n, torch.float32) for n in counts]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    more = [data(rank, n, torch.float32) for n in counts]
    dist.all_reduce_coalesced(more)
    gathered = [torch.empty(n * size) for n in counts]
    with dist._coalescing_manager():
        for target, n in zip(gathered, counts, strict=True):
            dist.all_gather_into_tensor(target, data(rank, n, torch.float32))
    shards = [torch.empty(n) for n in counts]
    with dist._coalescing_manager():
        for shard, n in zip(shards, counts, strict=True):
            dist.reduce_scatter_tensor(shard, data(rank, n * size, torch.float32))
    for i, n in enumerate(counts):
        total = 2 * reduced(R.SUM, [data(r, n, torch.float32) for r in range(size)])
        close(tensors[i], total)
        close(more[i], total)
        close(gathered[i], 2 * torch.cat([data(r, n, torch.float32) for r in range(size)]))
        whole = 2 * reduced(R.SUM, [data(r, n * size, torch.float32) for r in range(size)])
        close(shards[i], whole[n * rank : n * rank + n])
    assert_own("my_all_reduce", "my_all_gather", "my_reduce_scatter")
    _failing_override()
    _newer_name(rank, size, store)
    _shrunk_class(rank, size)


class _Negated(commsir.torch.ProcessGroup):
    """Overrides by torch 2.13's name, and calls ours in its turn, with the group's own arguments in other forms."""

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> torch.distributed.Work:
        def run() -> None:
            super(_Negated, self).all_gather_single(output, input).wait()
            output.neg_()

        return self.submit("my_gather", [input], [output], run, opts)


def _newer_name(rank: int, size: int, store: Any) -> None:
    commsir.torch.register_backend("negated", _Negated)
    group = dist.new_group(backend="negated")
    output, x = torch.empty(3 * size), data(rank, 3, torch.float32)
    dist.all_gather_into_tensor(output, x, group=group)
    close(output, -torch.cat([data(r, 3, torch.float32) for r in range(size)]))
    group.allreduce(x, op=R.MAX).wait()
    close(x, reduced(R.MAX, [data(r, 3, torch.float32) for r in range(size)]))
    assert group.name() == "commsir" and group.size() == size and group.get_group_store() is not None
    assert commsir.torch.recent_calls(group)[-1][1].startswith("all_reduce"), commsir.torch.recent_calls(group)
    fake = torch.empty(3, device="meta")
    assert group.submit("none", [fake], [fake], run=lambda: error_of(lambda: None)).is_completed()
    dist.destroy_process_group(group)


def _shrunk_class(rank: int, size: int) -> None:
    """What is left of a group is of its class."""
    if not hasattr(dist, "shrink_group"):
        return
    odd = odd_one(size)
    if rank == odd:
        return
    left = dist.shrink_group([odd])
    assert isinstance(left, _Doubling)
    tensor = data(rank, 5, torch.float32)
    dist.all_reduce(tensor, group=left)
    close(tensor, 2 * reduced(R.SUM, [data(r, 5, torch.float32) for r in range(size) if r != odd]))


def _failing_override() -> None:
    """What an override raises comes out of the coalesced call."""
    group = dist.distributed_c10d._get_default_group()

    def fail() -> None:
        raise ValueError("the test says so")

    group._twice = lambda name, target, _: group.submit(name, [target], [target], fail)
    for _ in range(2):
        work = group.allreduce_coalesced([torch.ones(2)])
        for _ in range(2):
            try:
                work.wait()
            except ValueError as error:
                assert "the test says so" in str(error)
            else:
                raise AssertionError("the override's exception is lost")
    del group._twice


def reference(rank: int, size: int, store: Any) -> None:
    from commsir.torch import reference as file

    file.register("mine")  # As of a copy.
    dist.init_process_group("mine", store=store, rank=rank, world_size=size)
    for op in (R.SUM, R.AVG, R.MAX):
        tensor = data(rank, (3, 5), torch.float32)
        dist.all_reduce(tensor, op=op)
        close(tensor, reduced(op, [data(r, (3, 5), torch.float32) for r in range(size)]))
    parts = [torch.empty(7) for _ in range(size)]
    dist.all_gather(parts, data(rank, 7, torch.float32))
    for r in range(size):
        close(parts[r], data(r, 7, torch.float32))
    shard = torch.empty(3)
    dist.reduce_scatter_tensor(shard, data(rank, 3 * size, torch.float32))
    close(shard, reduced(R.SUM, [data(r, 3 * size, torch.float32) for r in range(size)])[3 * rank : 3 * rank + 3])
    tensor = data(rank, 9, torch.bfloat16)
    dist.broadcast(tensor, odd_one(size))
    close(tensor, data(odd_one(size), 9, torch.bfloat16))
    objects(rank, size)
    dist.barrier()
    _reference_lists(rank, size)
    _reference_coalesced(rank, size)
    dist.monitored_barrier()
    group = dist.distributed_c10d._get_default_group()
    squares = file.sum_of_squares(group.group, data(rank, 32, torch.float32))
    close(squares, torch.stack([data(r, 32, torch.float32) ** 2 for r in range(size)]).sum(0))


def _reference_lists(rank: int, size: int) -> None:
    wanted = reduced(R.SUM, [data(r, 3, torch.float32) for r in range(size)])
    shard = torch.empty(3)
    dist.reduce_scatter(shard, [data(rank, 3, torch.float32) for _ in range(size)])
    close(shard, wanted)
    # The tensor for rank r has 1 + r rows.
    parts = [torch.empty(1 + rank, 2) for _ in range(size)]
    dist.all_to_all(parts, [torch.full((1 + r, 2), 10.0 * rank + r) for r in range(size)])
    for r in range(size):
        assert (parts[r] == 10 * r + rank).all(), parts


def _reference_coalesced(rank: int, size: int) -> None:
    tensors = [data(rank, n, torch.float32) for n in (3, 17)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor, op=R.MAX)
    gathered = [torch.empty(n * size) for n in (3, 17)]
    with dist._coalescing_manager():
        for target, n in zip(gathered, (3, 17), strict=True):
            dist.all_gather_into_tensor(target, data(rank, n, torch.float32))
    shards = [torch.empty(n) for n in (3, 17)]
    with dist._coalescing_manager():
        for shard, n in zip(shards, (3, 17), strict=True):
            dist.reduce_scatter_tensor(shard, data(rank, n * size, torch.float32))
    for i, n in enumerate((3, 17)):
        close(tensors[i], reduced(R.MAX, [data(r, n, torch.float32) for r in range(size)]))
        close(gathered[i], torch.cat([data(r, n, torch.float32) for r in range(size)]))
        whole = reduced(R.SUM, [data(r, n * size, torch.float32) for r in range(size)])
        close(shards[i], whole[n * rank : n * rank + n])


def windows(rank: int, size: int) -> None:
    """Windows as tensors, also of a peer; and a group over a process group that is Gloo's."""
    from commsir.torch import interop

    dist.barrier()  # NCCL has its communicator from then on.
    group = interop.wrap_process_group()
    own = interop.window_tensor(group, (4, 8))
    assert float(own.abs().sum()) == 0
    dist.barrier()
    right = (rank + 1) % size

    def peers() -> torch.Tensor:
        return interop.window_tensor(group, (4, 8), base=own.data_ptr(), rank=right)

    if own.is_cuda:
        assert "commsir.torch.window(…).peer(rank)" in error_of(peers)
    else:
        peers().fill_(rank + 1)
        dist.barrier()
        assert torch.equal(own, torch.full((4, 8), float((rank - 1) % size + 1)))
    assert group.contains(own.data_ptr(), own.nbytes)
    assert not group.contains(own.data_ptr(), 1 << 40)
    dist.barrier()
    group.destroy()


def torchcomms(rank: int, size: int, store: Any) -> None:
    """Through a stand-in for torchcomms: its Python registration, as its sources have it."""
    import sys
    import types

    stand_in = types.ModuleType("torchcomms")
    registered: dict[str, Any] = {}
    stand_in.TorchCommBackend = type("TorchCommBackend", (), {})  # type: ignore[attr-defined]
    stand_in.register_backend = registered.__setitem__  # type: ignore[attr-defined]
    sys.modules["torchcomms"] = stand_in
    sys.modules.pop("commsir.torch.torchcomms", None)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), COMMSIR_TORCHCOMMS="python")
    try:
        import importlib

        importlib.import_module("commsir.torch.torchcomms")
    finally:
        del sys.modules["torchcomms"]

    def op(name: str) -> Any:
        """As torchcomms' ReduceOp, whose type is an enumeration's."""
        return types.SimpleNamespace(type=types.SimpleNamespace(name=name))

    comm = registered["commsir"]()
    comm.init(torch.device("cpu"), "main", types.SimpleNamespace(store=store, timeout=timedelta(seconds=60)))
    assert (comm.get_rank(), comm.get_size(), comm.get_backend_name()) == (rank, size, "commsir")
    tensor = data(rank, 10, torch.float32)
    assert comm.all_reduce(tensor, op("SUM"), False) is None
    close(tensor, reduced(R.SUM, [data(r, 10, torch.float32) for r in range(size)]))
    assert "set_force_sum_reduction_for_comms" in error_of(lambda: comm.all_reduce(tensor, op("PREMUL_SUM"), False))
    work = comm.broadcast(tensor.fill_(rank), 1, True)
    work.wait()
    assert work.is_completed()
    close(tensor, torch.ones(10))
    # Called by torch, whose C++ would wait forever for a work in Python.
    globals_of_torch = {"__name__": "torch.distributed.distributed_c10d", "call": lambda: comm.barrier(True)}
    assert eval("call()", globals_of_torch) is not None, "a lambda of this file is no call by torch"
    globals_of_torch["comm"] = comm
    assert eval("comm.barrier(True)", globals_of_torch) is None
    got = torch.empty(4)
    to_peer = types.SimpleNamespace
    comm.batch_op_issue(
        [
            to_peer(type="SEND", tensor=torch.full((4,), float(rank)), peer=(rank + 1) % size),
            to_peer(type="RECV", tensor=got, peer=(rank - 1) % size),
        ]
    )
    close(got, torch.full((4,), float((rank - 1) % size)))
    comm.set_timeout(timedelta(seconds=50))
    for ranks in ([rank, rank], [(rank + 1) % size], [rank, size]):
        assert "cannot be in a part" in error_of(lambda ranks=ranks: comm.split(ranks, "wrong"))
    part = comm.split([0, 1] if rank < 2 else [], "pair")
    assert (part is None) == (rank > 1)
    if part:
        part.all_reduce(got.fill_(rank), op("MAX"), False)
        close(got, torch.ones(4))
        part.finalize()
    comm.barrier(False)
    comm.finalize()
