"""The ranks' part of tests of groups that survive trouble: leftovers, failures, Ctrl-C; and torch's queries."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import commsir.torch
import harness
import torch
import torch.distributed
from commsir.torch import backend
from expected import R, close, data, error_of, halves_of, odd_one, reduced

dist: Any = torch.distributed
PATIENCE = timedelta(seconds=harness.PATIENCE)


def _begin(rank: int, size: int, store: Any, timeout: timedelta = PATIENCE) -> None:
    dist.init_process_group("commsir", store=store, rank=rank, world_size=size, timeout=timeout)


def _passed_on(tensor: torch.Tensor, rank: int, size: int, group: Any = None) -> torch.Tensor:
    """What the rank before sends. Of two ranks over NCCL one has to receive first: in both, sends would wait."""
    got = torch.empty_like(tensor)
    calls = [lambda: dist.isend(tensor, (rank + 1) % size, group), lambda: dist.irecv(got, (rank - 1) % size, group)]
    for work in [call() for call in (reversed(calls) if rank % 2 else calls)]:
        work.wait()
    return got


@contextlib.contextmanager
def _without_backend() -> Iterator[str]:
    """As where none is prebuilt for this torch, and there is no compiler; yields the warning."""

    def refuse() -> Any:
        raise RuntimeError("there is no compiler")

    names = ("_loaded", "_searched", "_load_prebuilt", "_build_module", "_describe_mismatch")
    before = {name: getattr(backend, name) for name in names}
    del os.environ["COMMSIR_TORCH_BACKEND"]
    try:
        backend._loaded, backend._searched = None, False
        backend._load_prebuilt, backend._build_module = (lambda: None), refuse
        backend._describe_mismatch = lambda: "the test leaves it out"
        with warnings.catch_warnings(record=True) as told_of:
            warnings.simplefilter("always")
            assert backend.load_module() is None
        yield str(told_of[-1].message)
    finally:
        os.environ["COMMSIR_TORCH_BACKEND"] = "cpp"
        for name, one in before.items():
            setattr(backend, name, one)
        backend._missing = ""


def one_without_backend(rank: int, size: int, store: Any) -> str:
    """What one rank is warned of, and the others' first call raises."""
    if rank != odd_one(size):
        _begin(rank, size, store, timedelta(seconds=2))
        said: str = error_of(lambda: dist.all_reduce(torch.ones(2)))
        store.add("heard", 1)
        return said
    with _without_backend() as warning:
        _begin(rank, size, store)
        while store.add("heard", 0) < size - 1:
            time.sleep(0.05)
        return warning


def all_without_backend(rank: int, size: int, store: Any) -> None:
    """Collectives, sends and objects; a group of a class of one's own is refused."""
    with _without_backend():
        assert "A subclass of commsir.torch.ProcessGroup needs it" in error_of(
            lambda: commsir.torch.ProcessGroup(backend.Settings(store, rank, size, PATIENCE, "mine"))
        )
        _begin(rank, size, store)
        tensor = data(rank, 33, torch.float32)
        dist.all_reduce(tensor)
        close(tensor, reduced(R.SUM, [data(r, 33, torch.float32) for r in range(size)]))
        got = _passed_on(torch.full((5,), float(rank)), rank, size)
        close(got, torch.full((5,), float((rank - 1) % size)))
        objects: list[Any] = [None] * size
        dist.all_gather_object(objects, rank)
        assert objects == list(range(size))
        pair = dist.new_group([0, 1])
        if rank < 2:
            dist.broadcast(tensor.fill_(rank), 1, group=pair)
            close(tensor, torch.ones(33))
        dist.barrier()
        commsir.torch.stats(), commsir.torch.recent_calls(), commsir.torch.flight_recorder()
        dist.destroy_process_group()


def _works(rank: int, size: int) -> None:
    tensor = data(rank, 33, torch.float32)
    dist.all_reduce(tensor)
    close(tensor, reduced(R.SUM, [data(r, 33, torch.float32) for r in range(size)]))
    # They, and NCCL, have keys of their own in the store.
    close(_passed_on(torch.full((5,), float(rank)), rank, size), torch.full((5,), float((rank - 1) % size)))
    dist.monitored_barrier()


def used_store(rank: int, size: int, store: Any) -> list[str]:
    """Groups over one store, one after the other, also after attempts to which not all came."""
    said = []
    _begin(rank, size, store)
    _works(rank, size)
    dist.destroy_process_group()
    for lone in (0, odd_one(size)):
        if rank == lone:
            _begin(rank, size, store, timedelta(seconds=1))
            said.append(error_of(lambda: dist.all_reduce(torch.ones(2))))
            said.append(error_of(lambda: dist.all_reduce(torch.ones(2))))
            dist.destroy_process_group()
            store.set(f"over {lone}", "yes")
        store.wait([f"over {lone}"])
    _begin(rank, size, store)
    _works(rank, size)
    return said


def other_timeout(rank: int, size: int, store: Any) -> list[str]:
    """A timeout that is set later holds for later calls, whether somebody waits in them or for them."""
    _begin(rank, size, store, timedelta(seconds=600))
    groups = [dist.new_group() for _ in range(2)]
    _works(rank, size)
    for group in groups:
        dist.all_reduce(torch.ones(2), group=group)
    said = []
    if rank == 0:
        said.append(error_of(lambda: groups[0].set_timeout(timedelta(0))))
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1), groups[0])
        said.append(error_of(lambda: dist.all_reduce(torch.ones(2), group=groups[0])))
        groups[1].set_timeout(timedelta(seconds=1))
        said.append(error_of(lambda: dist.all_reduce(torch.ones(2), group=groups[1], async_op=True).wait()))
        store.set("over", "yes")
    store.wait(["over"])
    _works(rank, size)
    return said


def shrunk(rank: int, size: int, store: Any) -> Any:
    """One rank fails; the others go on with what torch offers, and later all begin anew in the same processes."""
    _begin(rank, size, store)
    _works(rank, size)
    said, names = "", ""
    odd = odd_one(size)
    if rank == odd:
        commsir.torch.abort(reason=f"rank {odd} has had enough")
    else:
        said = error_of(lambda: dist.all_reduce(torch.ones(2))) or error_of(lambda: dist.all_reduce(torch.ones(2)))
        group = dist.shrink_group([odd], shrink_flags=1)
        assert (group.size(), group.rank()) == (size - 1, rank - (rank > odd)), (group.size(), group.rank())
        assert dist.get_world_size() == size - 1
        ranks = [r for r in range(size) if r != odd]
        tensor = data(rank, 33, torch.float32)
        dist.all_reduce(tensor)
        close(tensor, reduced(R.SUM, [data(r, 33, torch.float32) for r in ranks]))
        dist.all_reduce(tensor.fill_(1), group=group)
        close(tensor, torch.full((33,), float(size - 1)))
        names = group.group_desc
        dist.barrier()
        # And once more, of a group that is well.
        if group.rank() != 0:
            group = dist.shrink_group([0])
            dist.all_reduce(tensor.fill_(1), group=group)
            close(tensor, torch.full((33,), float(size - 2)))
            store.set(f"left {rank}", "yes")
        for other in ranks[1:]:
            store.wait([f"left {other}"])
        store.set(f"shrunk {rank}", "yes")
    dist.destroy_process_group()
    store.wait([f"shrunk {r}" for r in range(size) if r != odd])
    _begin(rank, size, store)
    _works(rank, size)
    return said, names


def _interrupted(call: Callable[[], Any]) -> float:
    """Seconds from Ctrl-C to the exception."""
    sent = [0.0]

    def send() -> None:
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    finally:
        timer.join()
    raise AssertionError("the call has come to an end")


def interrupted(rank: int, size: int, store: Any) -> Any:
    """Ctrl-C on rank 0, which waits for others in vain."""
    _begin(rank, size, store)
    names = ["sync", "async", "receive", "batch", "meeting", "barrier", "monitored"]
    groups = {name: dist.new_group() for name in names}
    for name, group in groups.items():
        if name != "meeting":
            dist.all_reduce(torch.ones(2), group=group)
        if name in ("receive", "batch"):
            _passed_on(torch.ones(2), rank, size, group)
    seconds: dict[str, float] = {}
    later = []
    if rank == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ones = torch.ones(2)

        def batch() -> None:
            (work,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, ones, 1, groups["batch"])])
            work.wait()

        calls = {
            "sync": lambda: dist.all_reduce(ones, group=groups["sync"]),
            "async": lambda: dist.all_reduce(ones, group=groups["async"], async_op=True).wait(),
            "receive": lambda: dist.recv(ones, 1, group=groups["receive"]),
            "batch": batch,
            "meeting": lambda: dist.all_reduce(ones, group=groups["meeting"]),
            "barrier": lambda: dist.barrier(group=groups["barrier"]),
            "monitored": lambda: dist.monitored_barrier(groups["monitored"]),
        }
        for name, call in calls.items():
            seconds[name] = _interrupted(call)
            if name not in ("monitored",):
                later.append(error_of(lambda name=name: dist.all_reduce(ones, group=groups[name])))
        store.set("interrupted", "yes")
    store.wait(["interrupted"])
    _works(rank, size)
    return seconds, later


def recorded_mismatch(rank: int, size: int, store: Any, folder: str) -> Any:
    """Rank 1 calls all_reduce on another size; each rank writes what its groups have called."""
    _begin(rank, size, store, timedelta(seconds=30))
    pair = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(4))
    if rank < 2:
        dist.broadcast(torch.ones(3), 0, group=pair)
        if rank == 0:
            dist.send(torch.ones(6), 1, group=pair)
        else:
            dist.recv(torch.ones(6), 0, group=pair)
    dist.barrier()
    commsir.torch.dump_flight_recorder(f"{folder}/well/rank_")
    dist.barrier()
    said = error_of(lambda: dist.all_reduce(torch.ones(8 if rank != 1 else 9)))
    path = commsir.torch.dump_flight_recorder(f"{folder}/ill/rank_")
    return said, str(path)


def asked_by_torch(rank: int, size: int, store: Any) -> Any:
    """The functions of groups and backends that programs use in addition to the collectives."""
    _begin(rank, size, store)
    group = dist.distributed_c10d._get_default_group()
    backend = group._get_backend(torch.get_default_device())
    assert backend.supports_coalescing and backend.supports_shrinking
    # torch 2.15 has another name for it.
    assert not any(getattr(backend, f"{private}supports_time_estimate", False) for private in ("", "_"))
    said: dict[str, str] = {}
    with_estimate = getattr(dist.distributed_c10d, "_time_estimator")  # noqa: B009 (mypy)

    def estimate() -> None:
        with with_estimate(group=group, device=torch.get_default_device()):
            pass

    said["estimate"] = error_of(estimate)
    said["allocator"] = error_of(lambda: backend.mem_allocator)

    def split() -> None:
        half = dist.split_group(split_ranks=halves_of(size))
        tensor = torch.full((3,), float(rank))
        dist.all_reduce(tensor, group=half)
        close(tensor, torch.full((3,), float(sum(halves_of(size)[rank >= size // 2]))))

    said["split"] = error_of(split)
    backend.eager_connect_single_device(torch.get_default_device())
    dist.distributed_c10d._get_default_group()._enable_collectives_timing()
    # DistributedDataParallel compares the shapes of parameters by this.
    parameters = [torch.nn.Parameter(torch.ones(3, 4))]
    dist._verify_params_across_processes(group, parameters, None)
    different = [torch.nn.Parameter(torch.ones(3, 4 + (rank == 1)))]
    said["parameters"] = error_of(lambda: dist._verify_params_across_processes(group, different, None))
    errors: list[str] = [str(backend.get_error())] if hasattr(backend, "get_error") else []
    _works(rank, size)
    return said, errors


def one_has_left(rank: int, size: int, store: Any) -> None:
    """A rank destroys the group, and lives on: the others, which call once more, do not wait for it."""
    _begin(rank, size, store)
    dist.all_reduce(torch.ones(10))
    if rank == size - 1:
        dist.destroy_process_group()
        store.set("left", "so")
        store.wait([f"told {other}" for other in range(size - 1)])
        return
    store.wait(["left"])
    began = time.monotonic()
    said = error_of(lambda: dist.all_reduce(torch.ones(10)))
    assert f"rank {size - 1} has left the group" in said, said
    assert time.monotonic() - began < 10
    store.set(f"told {rank}", "so")


def a_pair_alone(rank: int, size: int, store: Any) -> None:
    """One rank sends to another before anything else, while the others, if any, are in no call of the group."""
    _begin(rank, size, store)
    sender, receiver = (1 if size > 2 else 0), size - 1
    if rank == sender:
        dist.send(torch.full((4,), 7.0), receiver)
    elif rank == receiver:
        got = torch.empty(4)
        dist.recv(got, sender)
        close(got, torch.full((4,), 7.0))
        store.set("a pair alone", "done")
    else:
        store.wait(["a pair alone"])
    _works(rank, size)


def wrapped(rank: int, size: int, store: Any) -> str:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL puts a wrapper around the backend."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        _begin(rank, size, store)
        _works(rank, size)
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=100))
        said = error_of(lambda: dist.all_reduce(torch.ones(8 if rank != 1 else 9)))
        calls = [what for _, what, _ in commsir.torch.recent_calls()]
        assert any(what.startswith("all_reduce(sum) of 33 x") for what in calls), calls
        if rank != odd_one(size):
            dist.shrink_group([odd_one(size)], shrink_flags=1)
            tensor = torch.ones(5)
            dist.all_reduce(tensor)
            close(tensor, torch.full((5,), float(size - 1)))
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)
    return str(said)


def hooked(rank: int, size: int, store: Any) -> Any:
    """A hook on completion hears of each call; what it raises is a warning, and ends neither call nor program."""
    _begin(rank, size, store)
    group = dist.distributed_c10d._get_default_group()
    heard: list[Any] = []

    def hear(info: Any) -> None:
        heard.append(info)
        raise RuntimeError("of the hook")

    refused = error_of(lambda: group._register_on_completion_hook(hear))
    if refused:
        return refused
    assert group._has_hooks()
    dist.all_reduce(torch.ones(3))
    work = dist.broadcast(torch.ones(3), 0, async_op=True)
    work.wait()
    group._wait_for_pending_works()
    return [(str(info.op_type), info.seq) for info in heard if info.active_duration.total_seconds() >= 0]


def split_and_merged(rank: int, size: int, store: Any) -> None:
    """split_group and merge_remote_group of a process group."""
    _begin(rank, size, store)
    group = dist.distributed_c10d._get_default_group()
    mine = halves_of(size)[rank >= size // 2]
    half = group.split_group(mine, timedelta(seconds=60), None, f"half {mine}", "a half")
    tensor = torch.full((3,), float(rank))
    half.allreduce([tensor]).wait()
    close(tensor, torch.full((3,), float(sum(mine))))
    assert (half.size(), half.rank(), half.group_desc) == (len(mine), mine.index(rank), "a half")
    whole = half.merge_remote_group(
        dist.PrefixStore("merged", store), size, timedelta(seconds=60), "merged", "both halves"
    )
    whole.allreduce([tensor.fill_(1)]).wait()
    close(tensor, torch.full((3,), float(size)))
