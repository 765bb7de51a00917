"""Checks of the backend that torchcomms' own tests lack; under torchrun, with torchcomms and CommsIR installed.

TEST_DEVICE is cpu or cuda. Rank 0 prints the name of each check when it begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import commsir
import torch
import torch.distributed as dist
import torchcomms  # type: ignore[import-not-found, unused-ignore]

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device(os.environ.get("TEST_DEVICE", "cpu"), RANK if os.environ.get("TEST_DEVICE") == "cuda" else 0)
IN_CPP = os.environ.get("COMMSIR_TORCHCOMMS") != "python"
OP = torchcomms.ReduceOp

CHECKS: list[Callable[[Any], None]] = []


def check(function: Callable[[Any], None]) -> Callable[[Any], None]:
    CHECKS.append(function)
    return function


def new(name: str, **options: Any) -> Any:
    return torchcomms.new_comm("commsir", DEVICE, name=name, **options)


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    raise AssertionError("nothing was raised")


def ranks(of: Callable[[int], float], count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """This rank's input, where `of` says what each has."""
    return torch.full((count,), of(RANK), dtype=dtype, device=DEVICE)


def same(tensor: torch.Tensor, value: float) -> None:
    torch.testing.assert_close(tensor.cpu(), torch.full_like(tensor, value).cpu())


def in_turn(send: Callable[[], Any], receive: Callable[[], Any]) -> list[Any]:
    """What both return. On GPUs a send that is not in a batch may wait for its receive, as with NCCL: every other rank
    receives first there."""
    receives_first = DEVICE.type == "cuda" and RANK % 2 == 1
    return [call() for call in ((receive, send) if receives_first else (send, receive))]


def waited(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    if (work := call(*arguments, **options)) is not None:
        work.wait()


@check
def reductions(comm: Any) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
        for count in (1, 1000, 1 << 18):
            x = ranks(lambda r: r + 1, count, dtype)
            comm.all_reduce(x, OP.SUM, False)
            same(x, SIZE * (SIZE + 1) / 2)
    x = ranks(lambda r: r + 1, 64)
    comm.all_reduce(x, OP.AVG, False)
    same(x, (SIZE + 1) / 2)


@check
def factors(comm: Any) -> None:
    if not IN_CPP:
        return
    for factor in (0.25, torch.tensor([0.25], device=DEVICE)):
        x = ranks(lambda r: r + 1, 64)
        comm.all_reduce(x, OP.PREMUL_SUM(factor), False)
        same(x, SIZE * (SIZE + 1) / 8)
    said = error_of(lambda: comm.all_reduce(torch.ones(4, dtype=torch.int32, device=DEVICE), OP.PREMUL_SUM(0.5), False))
    assert "would cut off the factor" in said, said


@check
def calls_end_by_themselves(comm: Any) -> None:
    if not IN_CPP:
        return
    x = ranks(lambda r: 1, 1 << 18)
    works = [comm.all_reduce(x, OP.SUM, True) for _ in range(4)]
    poll(works, lambda work: work.is_completed())
    same(x, SIZE**4)
    for work in works:
        work.wait()


@check
def calls_nobody_waits_for_end(comm: Any) -> None:
    tensors = [ranks(lambda r: 1, 1 << 12) for _ in range(50)]
    for x in tensors:
        comm.all_reduce(x, OP.SUM, True)
    comm.barrier(False)
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    for x in tensors:
        same(x, SIZE)


@check
def rings_of_sends_and_receives(comm: Any) -> None:
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for count in (1, 1 << 20):
        mine, got = ranks(lambda r: r, count), torch.empty(count, device=DEVICE)
        for work in in_turn(partial(comm.send, mine, after, True), partial(comm.recv, got, before, True)):
            work.wait()
        same(got, before)


@check
def batches(comm: Any) -> None:
    if not IN_CPP:
        return
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for async_op in (False, True):
        for count in (1, 1 << 20):
            mine = ranks(lambda r: r, count)
            to_after, to_before = (torch.empty(count, device=DEVICE) for _ in range(2))
            batch = comm.batch_op_create()
            batch.send(mine, after)
            batch.recv(to_after, before)
            batch.send(mine * 2, before)
            batch.recv(to_before, after)
            work = batch.issue(async_op)
            if work:
                work.wait()
            same(to_after, before)
            same(to_before, 2 * after)
    comm.batch_op_create().issue(True).wait()
    if DEVICE.type == "cuda":
        return  # NCCL takes those to itself.
    batch = comm.batch_op_create()
    batch.send(torch.ones(1, device=DEVICE), RANK)
    said = error_of(lambda: batch.issue(False))
    assert "copy the tensor" in said, said


@check
def parts(comm: Any) -> None:
    part = comm.split(list(reversed(range(SIZE))), "reversed")
    assert (part.get_rank(), part.get_size()) == (SIZE - 1 - RANK, SIZE)
    x = ranks(lambda r: r, 8)
    part.broadcast(x, 0, False)
    same(x, SIZE - 1)
    own = part.split([part.get_rank()], "own")
    own.all_reduce(x, OP.SUM, False)
    own.finalize()
    if IN_CPP:
        assert "finalized already" in error_of(own.finalize)
    part.finalize()
    assert comm.split([], "none") is None
    assert "cannot be in a part" in error_of(lambda: comm.split([RANK, RANK], "twice"))


@check
def parts_of_one_name(comm: Any) -> None:
    """Of other ranks, as the rows of a mesh are, and of the same ranks once more."""
    width = max(SIZE // 2, 1)
    row = [rank for rank in range(SIZE) if rank // width == RANK // width]
    for _ in range(3):
        one, two = comm.split(row, "row"), comm.split(row, "row")
        # Used crosswise: they have nothing to do with each other. On a GPU ranks meet at the first call.
        crosswise = IN_CPP and DEVICE.type == "cpu" and row[0] != RANK
        sums = []
        for part in (two, one) if crosswise else (one, two):
            x = ranks(lambda r: r + 1, 8)
            sums.append((x, part.all_reduce(x, OP.SUM, IN_CPP)))
        for x, work in sums:
            if work is not None:
                work.wait()
            same(x, sum(rank + 1 for rank in row))
        one.finalize()
        two.finalize()
        comm.barrier(False)


def poll(works: list[Any], until: Callable[[Any], bool]) -> None:
    deadline = time.monotonic() + 30
    while not all(until(work) for work in works):
        assert time.monotonic() < deadline
        time.sleep(0.001)


@check
def what_lies_apart_is_there_when_it_is_over(comm: Any) -> None:
    if not IN_CPP:
        return
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    mine, apart = ranks(lambda r: r, 1000), torch.zeros(1000, 2, device=DEVICE)
    poll(
        in_turn(partial(comm.send, mine, after, True), partial(comm.recv, apart[:, 1], before, True)),
        lambda work: work.is_completed(),
    )
    same(apart[:, 1], before)
    same(apart[:, 0], 0)


@check
def what_failed_is_not_completed(comm: Any) -> None:
    if not IN_CPP or DEVICE.type == "cuda" or SIZE < 2:
        return  # NCCL takes sizes that differ.
    other = new("failing", timeout=timedelta(seconds=20))
    other.barrier(False)
    if RANK < 2:
        x = torch.ones(4 - 2 * RANK)
        work = other.recv(x, 0, True) if RANK else other.send(x, 1, True)
        time.sleep(2)
        assert not work.is_completed()
        assert "size" in error_of(work.wait) and not work.is_completed()
    comm.barrier(False)
    # Nobody comes.
    late = new("nobody", timeout=timedelta(seconds=1))
    late.barrier(False)
    if RANK == 0:
        work = late.recv(torch.empty(4), 1, True)
        time.sleep(3)
        assert not work.is_completed() and "imed out" in error_of(work.wait)
    comm.barrier(False)


@check
def bad_input(comm: Any) -> None:
    """After which the communicator is used."""
    if torch.cuda.is_available():
        elsewhere = "cpu" if DEVICE.type == "cuda" else "cuda"
        error_of(
            lambda: comm.all_gather_single(torch.ones(SIZE, device=DEVICE), torch.ones(1, device=elsewhere), False)
        )
    assert "range" in error_of(lambda: comm.broadcast(torch.ones(1, device=DEVICE), SIZE, False))
    sizes = torch.ones(RANK + 1, device=DEVICE)
    said = error_of(lambda: (comm.all_reduce(sizes, OP.SUM, False), sizes.cpu())) if DEVICE.type == "cpu" else "rank 1"
    assert "rank 1" in said, said


@check
def graphs(comm: Any) -> None:
    if DEVICE.type != "cuda":
        return
    x, y = ranks(lambda r: 1, 4096), ranks(lambda r: 2, 4096)
    comm.all_reduce(x, OP.SUM, False)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        comm.all_reduce(x.fill_(1), OP.SUM, False)
        comm.all_reduce(y.fill_(2), OP.SUM, True).wait()
    for _ in range(3):
        x.zero_()
        graph.replay()
        torch.cuda.synchronize()
        same(x, SIZE)
        same(y, 2 * SIZE)


@check
def below_torch_distributed(comm: Any) -> None:
    """DDP's buckets are futures that torch's C++ waits for."""
    dist.config.use_torchcomms = True
    dist.init_process_group("commsir", device_id=DEVICE if DEVICE.type == "cuda" else None)
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8))).to(DEVICE)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    for _ in range(5):
        wrapped(torch.full((2, 64), float(RANK + 1), device=DEVICE)).sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        mean = parameter.grad.clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        torch.testing.assert_close(parameter.grad, mean)
    x = ranks(lambda r: 1, 1 << 16)
    work = dist.all_reduce(x, async_op=True)
    if DEVICE.type == "cuda":
        same(work.get_future().wait()[0], SIZE)
    work.wait()
    same(x, SIZE)
    sent, got = ranks(lambda r: r, 1 << 16), torch.empty(1 << 16, device=DEVICE)
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for one in in_turn(partial(dist.isend, sent, after), partial(dist.irecv, got, before)):
        one.wait()
    same(got, (RANK - 1) % SIZE)
    if IN_CPP:
        ops = [dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, got, before)]
        for one in dist.batch_isend_irecv(ops):
            one.wait()
    dist.destroy_process_group()


@check
def what_ran_was_ours(comm: Any) -> None:
    calls = [call for call in commsir.torch.stats()["calls"] if "all_reduce" in str(call)]
    assert calls and all("commsir" in str(call) for call in calls), calls


@check
def who_waits_long_enough_is_told(comm: Any) -> None:
    other = new("late", timeout=timedelta(seconds=1))
    other.barrier(False)
    if DEVICE.type != "cpu" or RANK:
        return
    for async_op in (False, True) if IN_CPP else ():
        got = torch.empty(4)
        began = time.monotonic()
        limit = timedelta(milliseconds=300)
        assert "imed out" in error_of(partial(waited, other.recv, got, 1, async_op, timeout=limit))
        assert time.monotonic() - began < 20
    assert error_of(lambda: other.barrier(False))


@check
def an_abort_ends_what_waits(comm: Any) -> None:
    if not IN_CPP or DEVICE.type == "cuda":
        return  # There a receive meets its sender, to connect to it, before it returns.
    other = new("aborted")
    assert other.is_abort_supported() and not other.is_aborted()
    other.barrier(False)
    told: list[int] = []
    hook = other.register_abort_hook(lambda: told.append(1))
    if RANK == 0:
        work = other.recv(torch.empty(4, device=DEVICE), 1, True)
        began = time.monotonic()
        other.abort()
        error_of(work.wait)
        assert time.monotonic() - began < 20
        assert other.is_aborted() and told == [1] and not work.is_completed()
        assert "abort" in error_of(lambda: other.all_reduce(torch.ones(1, device=DEVICE), OP.SUM, False))
    comm.barrier(False)
    hook.remove()


def main() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    comm = new("main")
    assert (comm.get_rank(), comm.get_size(), comm.get_backend()) == (RANK, SIZE, "commsir")
    for one in CHECKS:
        if RANK == 0:
            print(f"{one.__name__} …", flush=True)
        one(comm)
    comm.barrier(False)
    comm.finalize()
    if RANK == 0:
        print(f"all {len(CHECKS)} checks passed", flush=True)


if __name__ == "__main__":
    main()
