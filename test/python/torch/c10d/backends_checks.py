"""Backends and windows of the user's own; each function runs on all ranks."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import commsir.torch
import torch
import torch.distributed
from expected import R, assert_own, close, data, error_of, odd_one, reduced
from order_checks import objects

dist: Any = torch.distributed


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
