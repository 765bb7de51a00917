"""torch.compile on a group's calls: functional collectives stay in one graph; other calls break it, and work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch
import torch
import torch._dynamo
import torch._dynamo.testing
import torch.distributed
import torch.distributed._functional_collectives as fc
from expected import R, close, data, reduced

dist: Any = torch.distributed


def _compiled(function: Callable[..., Any], *given: Any, whole: bool = False) -> tuple[Any, int, set[str]]:
    """What a compiled function returns, how many graphs it has become, and the functions that Dynamo has looked at."""
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    made = torch.compile(function, backend=counter, fullgraph=whole)(*given)
    return made, int(counter.frame_count), _seen()


def _seen() -> set[str]:
    tracker: Any = torch._dynamo.convert_frame.input_codes
    return {f"{code.co_filename} {code.co_name}" for code in (known() for known in tracker.seen) if code is not None}


def one_graph(rank: int, size: int) -> None:
    """Functional collectives, those that Dynamo makes of others, and who is there are part of one graph."""
    group = dist.group.WORLD
    x, all_data = data(rank, 3 * size, torch.float32), [data(r, 3 * size, torch.float32) for r in range(size)]

    def functional(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total = fc.all_reduce(x * 1, "sum", group) + group.rank()
        both = fc.all_gather_tensor(x * 1, 0, group) + dist.get_world_size(group)
        return total, both, fc.reduce_scatter_tensor(x * 1, "sum", 0, group) + len(dist.get_process_group_ranks(group))

    (total, both, part), graphs, _ = _compiled(functional, x, whole=True)
    assert graphs == 1
    close(total, reduced(R.SUM, all_data) + rank)
    close(both, torch.cat(all_data) + size)
    close(part, reduced(R.SUM, all_data)[3 * rank : 3 * rank + 3] + size)

    def rewritten(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        most, both = x * 1, torch.zeros(3 * size * size)
        dist.all_reduce(most, R.MAX)
        dist.all_gather_into_tensor(both, x, group=group)
        return most + 1, both + 1

    (most, both), graphs, _ = _compiled(rewritten, x, whole=True)
    assert graphs == 1
    close(most, reduced(R.MAX, all_data) + 1)
    close(both, torch.cat(all_data) + 1)


def _in_batch(x: torch.Tensor, got: torch.Tensor, ahead: int, behind: int) -> None:
    group = dist.group.WORLD
    ops = [dist.P2POp(dist.isend, x, ahead, group=group), dist.P2POp(dist.irecv, got, behind, group=group)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def _one_by_one(x: torch.Tensor, got: torch.Tensor, ahead: int, behind: int) -> None:
    works = [dist.isend(x, ahead), dist.irecv(got, behind)]
    for work in works:
        work.wait()


def breaks(rank: int, size: int) -> set[str]:
    """Sends, asynchronous calls, a barrier and a call that is delegated in compiled functions; what Dynamo has seen."""
    ahead, behind = (rank + 1) % size, (rank - 1) % size
    seen: set[str] = set()

    def passed_on(exchange: Callable[..., None], x: torch.Tensor) -> torch.Tensor:
        got = torch.zeros_like(x)
        exchange(x, got, ahead, behind)
        return got + 1

    def asynchronous(x: torch.Tensor) -> torch.Tensor:
        total = x * 2
        work = dist.all_reduce(total, async_op=True)
        more = x + 1
        work.wait()
        assert work.is_completed() or x.is_cuda
        return total + more

    def met(x: torch.Tensor) -> torch.Tensor:
        more = x * 2
        dist.barrier()
        return more + 1

    def delegated(x: torch.Tensor) -> torch.Tensor:
        # The first call that is: what takes it is made meanwhile.
        dist.all_reduce(sparse, async_op=True).wait()
        return x + 1

    x, others = data(rank, 5, torch.float32), [data(r, 5, torch.float32) for r in range(size)]
    # Over NCCL, sends of all ranks that are not in one batch wait for each other.
    for exchange in [_in_batch, *([_one_by_one] if x.device.type == "cpu" else [])]:
        got, _, files = _compiled(lambda x, exchange=exchange: passed_on(exchange, x), x)
        close(got, others[behind] + 1)
        seen |= files
    got, _, files = _compiled(asynchronous, x)
    close(got, 2 * reduced(R.SUM, others) + x + 1)
    seen |= files
    functions = [(met, 2 * x + 1)]
    if x.device.type == "cpu":  # NCCL has no sparse ones. There the batch was delegated.
        sparse = torch.eye(size).to_sparse()
        functions += [(delegated, x + 1)]
    for function, wanted in functions:
        got, _, files = _compiled(function, x)
        close(got, wanted)
        seen |= files
    assert x.is_cuda or torch.equal(sparse.to_dense(), size * torch.eye(size))
    return seen


def parallel_training(rank: int, size: int) -> set[str]:
    """DistributedDataParallel, compiled, as it would be without; what Dynamo has seen."""

    def gradients(compiled: bool) -> list[torch.Tensor]:
        torch.manual_seed(rank)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
        parallel = torch.nn.parallel.DistributedDataParallel(model)

        def steps(call: Callable[..., torch.Tensor]) -> None:
            # Buckets are made anew in the second forward pass, and buffers sent in each.
            for step in range(3):
                loss: Any = call(data(10 * step + rank, (4, 6), torch.float32)).square().mean()
                loss.backward()

        steps(torch.compile(parallel, backend="aot_eager") if compiled else parallel)
        return [p.grad for p in model.parameters() if p.grad is not None]

    torch._dynamo.reset()
    wanted, got = gradients(False), gradients(True)
    assert len(got) == len(wanted) == 6
    for one, other in zip(got, wanted, strict=True):
        close(one, other)
    return _seen()


class _Zeros(commsir.torch.ProcessGroup):
    """A group of one's own."""

    def allreduce(self, tensors: Any, opts: Any = None) -> torch.distributed.Work:
        return self.submit("zeros", tensors, tensors, tensors[0].zero_)


def of_ones_own(rank: int, size: int, store: Any) -> set[str]:
    """The same of a group whose calls are the program's."""
    commsir.torch.register_backend("zeros", _Zeros)
    dist.init_process_group("zeros", store=store, rank=rank, world_size=size)

    def function(x: torch.Tensor) -> torch.Tensor:
        zeros = x * 2
        work = dist.all_reduce(zeros, async_op=True)
        work.wait()
        return zeros + 1

    x = data(rank, 5, torch.float32)
    got, _, seen = _compiled(function, x)
    close(got, torch.ones(5))
    # An override takes every form that the method takes.
    dist.distributed_c10d._get_default_group().allreduce(x, op=R.MAX).wait()
    close(x, torch.zeros(5))
    return seen
