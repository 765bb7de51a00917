"""Uses of groups beyond dist's functions: hooks of training, and methods called in every form that torch allows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from expected import R, close, data, error_of, halves_of, reduced

dist: Any = torch.distributed
MINUTE = timedelta(minutes=1)


def builtin_hooks(rank: int, size: int) -> None:
    """DDP's hooks in C++, on all ranks and on some: gradients are averages; the second sends them in 16 bits."""
    half = [dist.new_group(ranks) for ranks in halves_of(size)][rank >= size // 2]
    for hook, bound in ((dist.BuiltinCommHookType.ALLREDUCE, 1e-6), (dist.BuiltinCommHookType.FP16_COMPRESS, 1e-3)):
        for group in (None, half):
            model = torch.nn.Linear(3, 2, bias=False)
            parallel: Any = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
            parallel._register_builtin_comm_hook(hook)
            ranks = dist.get_process_group_ranks(group)
            for step in range(2):
                inputs = [data(10 * step + r, (4, 3), torch.float32) for r in ranks]
                model.weight.grad = None
                parallel(inputs[ranks.index(rank)]).sum().backward()
                wanted = torch.stack([x.sum(0) for x in inputs]).mean(0).expand(2, 3)
                torch.testing.assert_close(model.weight.grad, wanted, rtol=bound, atol=bound)
            assert parallel._get_ddp_logging_data()["comm_hook"] == str(hook)


def forms(rank: int, size: int) -> None:
    """Methods of a group with what options hold in place of options, and by torch's names for arguments."""
    group: Any = dist.distributed_c10d._get_default_group()
    all_data = [data(r, 4, torch.float32) for r in range(size)]
    total, most = reduced(R.SUM, all_data), reduced(R.MAX, all_data)

    def run(wanted: torch.Tensor | None, call: Callable[[torch.Tensor], Any]) -> None:
        x = all_data[rank].clone()
        call(x).wait()
        if wanted is not None:
            close(x, wanted)

    run(total, lambda x: group.allreduce(x))
    run(most, lambda x: group.allreduce([x], R.MAX))
    run(most, lambda x: group.allreduce([x], R.MAX, None))
    run(most, lambda x: group.allreduce(x, op=R.MAX, timeout=MINUTE))
    run(most, lambda x: group.allreduce(tensors=[x], op=R.MAX))
    run(all_data[1], lambda x: group.broadcast(x, 1))
    run(all_data[1], lambda x: group.broadcast(tensor=x, root=1, timeout=MINUTE))
    run(most if rank == 1 else None, lambda x: group.reduce(x, 1, op=R.MAX))
    _forms_of_lists(group, rank, size, all_data)
    group.barrier(MINUTE).wait()
    group.barrier(timeout=MINUTE).wait()
    whole = torch.zeros(size)
    group.alltoall_base(whole, torch.full((size,), float(rank)), [], [], timeout=MINUTE).wait()
    close(whole, torch.arange(float(size)))
    if rank == 0:
        group.send(tensors=[all_data[0]], dstRank=1, tag=0).wait()
    if rank == 1:
        run(all_data[0], lambda x: group.recv(tensors=[x], srcRank=0, tag=0))
    for call in (lambda: group.allreduce(total, 1, 2, 3), lambda: group.broadcast(total, tag=2)):
        assert error_of(call)


def _forms_of_lists(group: Any, rank: int, size: int, all_data: list[torch.Tensor]) -> None:
    parts = [torch.zeros(4) for _ in range(size)]
    group.allgather(output_tensors=parts, input_tensor=all_data[rank], timeout=MINUTE).wait()
    close(torch.stack(parts), torch.stack(all_data))
    parts = [torch.zeros(4) for _ in range(size)] if rank == 1 else []
    group.gather(parts, all_data[rank], 1).wait()
    assert rank != 1 or torch.equal(torch.stack(parts), torch.stack(all_data))
    one = torch.zeros(4)
    group.scatter(one, list(all_data) if rank == 1 else [], root=1).wait()
    close(one, all_data[rank])
    sources = [data(10 * rank + r, 4, torch.float32) for r in range(size)]
    group.reduce_scatter(one, sources, op=R.MAX, timeout=MINUTE).wait()
    close(one, reduced(R.MAX, [data(10 * r + rank, 4, torch.float32) for r in range(size)]))


def without_memory(rank: int, size: int) -> None:
    """Tensors without memory, on which programs are tried before they run: nothing moves, and nobody is waited for."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    if rank == 0:
        meta = torch.ones(3, device="meta")
        dist.all_reduce(meta)
        dist.all_gather_into_tensor(torch.empty(3 * size, device="meta"), meta)
        with FakeTensorMode():
            fake = torch.ones(3)
            dist.all_reduce(fake)
            work = dist.broadcast(fake, 0, async_op=True)
            work.wait()
            dist.reduce_scatter_tensor(torch.empty(1), torch.ones(size))
    x = torch.ones(3)
    dist.all_reduce(x)
    close(x, torch.full((3,), float(size)))


def asked(rank: int, size: int) -> None:
    """What a group tells of itself, and what its work does for a stream."""
    group: Any = dist.distributed_c10d._get_default_group()
    assert group.get_group_store() is not None
    options = group._get_backend(torch.get_default_device()).options
    assert options.backend == "commsir"
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, async_op=True)
    if hasattr(work, "block_current_stream"):
        work.block_current_stream()
    else:
        work.wait()
    close(tensor, torch.full((4,), float(size)))


def refusals(rank: int, size: int) -> list[str]:
    """The types of what wrong arguments raise, which programs go by: those of Gloo."""
    x = torch.ones(2)
    calls: list[Callable[[], Any]] = [
        lambda: dist.all_gather([x] * (size + 1), x),
        lambda: dist.scatter(x, [x] * (size + 1) if rank == 0 else None, 0) if rank == 0 else _refuse(),
        lambda: dist.reduce_scatter(x, [x] * (size + 1)),
        lambda: dist.distributed_c10d._get_default_group().set_timeout(timedelta(0)),
    ]
    types = []
    for call in calls:
        try:
            call()
        except Exception as error:
            types.append(type(error).__name__)
        else:
            types.append("none")
    return types


def _refuse() -> None:
    raise RuntimeError("the root alone has a list")
