"""Calls that fail, differ between ranks or are given up; each function runs on all ranks."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import commsir.torch
import torch
import torch.distributed
from expected import R, close, error_of, odd_one, paths, told

dist: Any = torch.distributed


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


def forked_anew(rank: int, size: int, store: Any) -> str:
    """A child of fork() ends its parent's group, whose thread it does not have, and makes a group of its own."""

    def start(where: Any) -> None:
        dist.init_process_group("commsir", store=where, rank=rank, world_size=size)

    folder = tempfile.mkdtemp() if rank == 0 else ""
    if rank == 0:
        store.set("folder", folder)
    meeting = Path(store.get("folder").decode()) / "store"
    start(store)
    dist.all_reduce(torch.ones(2), async_op=True).wait()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        dist.destroy_process_group()
        start(dist.FileStore(str(meeting), size))
        tensor = torch.full((2,), float(rank))
        dist.all_reduce(tensor)
        os.write(writer, str(tensor.tolist()).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    text = os.read(reader, 10000).decode()
    os.close(reader)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    return text


def ended_beside_calls(rank: int, size: int, store: Any) -> int:
    """On rank 0, another thread calls a group of one rank while it ends. Returns how many calls were made in all."""
    made = 0
    for _ in range(40 if rank == 0 else 0):
        dist.init_process_group("commsir", store=dist.HashStore(), rank=0, world_size=1)
        group = dist.distributed_c10d._get_default_group()
        works: list[Any] = []

        def call(group: Any = group, works: list[Any] = works) -> None:
            while not error_of(lambda: works.append(group.allreduce([torch.ones(2)]))):
                pass

        dist.all_reduce(torch.ones(2))
        caller = threading.Thread(target=call)
        caller.start()
        group._get_backend(torch.device("cpu")).shutdown()
        caller.join()
        for work in works:
            work.wait()
        made += len(works)
        dist.destroy_process_group()
    return made


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


def still_usable(rank: int, size: int) -> None:
    """A call that was refused leaves the group as it was."""
    bad_arguments(rank, size)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    close(tensor, torch.full((2,), float(size)))
