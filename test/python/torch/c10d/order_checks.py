"""The order of calls, sends, objects and groups; each function runs on all ranks."""

from __future__ import annotations

import time
from typing import Any

import commsir.torch
import torch
import torch.distributed
from expected import R, assert_own, close, data, halves_of, paths, reduced

dist: Any = torch.distributed


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


def barrier_of_gpus(rank: int, size: int) -> None:
    """Where there is no GPU, it is one of the CPU."""
    dist.barrier(device_ids=[torch.cuda.current_device() if torch.cuda.is_available() else 0])
