"""Ranks that compile different arithmetic after one collective, or do not compile at all. See test_differing.py."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.torch import crossed_calls, ops
from compile_checks import DEVICE, LITE

WIDTH = 16
#: Calls of each function: ranks agree on the first ones, or do not, and some change their mind later.
CALLS = 7
dist: Any = torch.distributed


#: Without types in torch.
waited: Any = funcol.wait_tensor


def _sum(x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


class _Sum(torch.autograd.Function):
    """A sum over the ranks whose gradient is there on each."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return waited(_sum(x))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad


def constant(rank: int, step: int, x: Any, w: Any) -> Any:
    """A rank's number is part of the arithmetic."""
    return _sum(x) * (rank + 1.0) + 2


def scattered_constant(rank: int, step: int, x: Any, w: Any) -> Any:
    return funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD) * (rank + 1.0)


def gathered_constant(rank: int, step: int, x: Any, w: Any) -> Any:
    return funcol.all_gather_tensor(x, 0, dist.group.WORLD) * (rank + 1.0)


def bias(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank has something to fuse, and the others nothing."""
    h = _sum(x)
    return (h + 1 if rank == 0 else h) @ w


def dtype(rank: int, step: int, x: Any, w: Any) -> Any:
    h = _sum(x) * 2
    return h.bfloat16() if rank == 1 else h


def outputs(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank keeps what the others do not."""
    h = _sum(x) + x
    normed = torch.nn.functional.rms_norm(h, (WIDTH,))
    return (normed, h) if rank == 0 else normed


def one_of_several(rank: int, step: int, x: Any, w: Any) -> Any:
    """Each rank differs behind another of several collectives that are alike."""
    for place in range(4):
        h = _sum(x) * 0.25
        h = h + 3 if place == rank else h
        x = (h @ w if place == rank + 1 else h) + x
    return x


def graph_break(rank: int, step: int, x: Any, w: Any) -> Any:
    """Ranks have different numbers of graphs."""
    h = _sum(x) * 0.5
    if rank == 0:
        torch._dynamo.graph_break()
    return _sum(h) * 0.5 + h


def compiled_again(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank has another graph now and then, after all have agreed."""
    h = _sum(x) * 2
    return (h, h.sum()) if rank == 0 and step % 3 == 2 else h


def left_again(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank has no kernel now and then, after all have agreed."""
    h = _sum(x)
    return h @ w if rank == 0 and step % 3 == 2 else h * 2


def in_turn(rank: int, step: int, x: Any, w: Any) -> Any:
    """Ranks have the same graphs, at different times."""
    h = _sum(x)
    return h * 2 + 1 if (step + rank) % 2 else h.relu() - 1


def beside_others(rank: int, step: int, x: Any, w: Any) -> Any:
    """Collectives that nobody fuses keep their places among those that may be."""
    largest = funcol.all_reduce(x * 2, "max", dist.group.WORLD)
    h = _sum(x) + (1 if rank else 2)
    column = funcol.all_reduce(x.sum(0, dtype=torch.float64), "sum", dist.group.WORLD)
    return h, largest @ w, column


def rows(rank: int, step: int, x: Any, w: Any) -> Any:
    """Rows and constants differ, and come and go."""
    x = x[: (0, 3, 2, 4)[step % 4]].contiguous()
    return _sum(x) * (rank + 1.0) if step > 3 else _sum(x) * 2


def saved(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank saves values for a gradient."""
    x = x.clone().requires_grad_(rank == 0)
    summed: Any = _Sum.apply  # type: ignore[no-untyped-call, unused-ignore]
    h = torch.nn.functional.silu(summed(x))
    return torch.nn.functional.rms_norm(h, (WIDTH,)) * 2


def joined(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank has one collective for several, and the other needs each result by itself."""
    a, b, c = _sum(x), _sum(x * 2), _sum(x @ w)
    total = a + b + c
    return (total * 2, b.relu()) if rank == 1 else total * 2


def joined_again(rank: int, step: int, x: Any, w: Any) -> Any:
    """The same now and then, after all have agreed."""
    a, b = _sum(x), _sum(x * 2)
    return (a + b + 1, b.relu()) if rank == 0 and step % 3 == 2 else a + b + 1


def sent_constant(rank: int, step: int, x: Any, w: Any) -> Any:
    """A rank's number is part of what is sent."""
    return _sum(x * (rank + 1.0)) + 2


def sent_and_kept(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank needs what it sends, so that it makes it outside of the kernel."""
    sent = torch.tanh(x)
    h = funcol.all_gather_tensor(sent, 0, dist.group.WORLD) * 2
    return (h, sent) if rank == 1 else h


def sent_again(rank: int, step: int, x: Any, w: Any) -> Any:
    """The same now and then, after all have agreed, with casts of what is sent."""
    sent = (x * 2).to(torch.bfloat16)
    h = funcol.all_gather_tensor(sent, 0, dist.group.WORLD).float() + 1
    return (h, sent) if rank == 0 and step % 3 == 2 else h


def gathered_once(rank: int, step: int, x: Any, w: Any) -> Any:
    """One rank gathers the same rows twice, and the other two tensors."""
    y = x if rank else x * 2
    a, b = (funcol.all_gather_tensor(one, 0, dist.group.WORLD) for one in (x, y))
    return a * 2, b + 1


def reductions(rank: int, step: int, x: Any, w: Any) -> Any:
    """Ranks reduce rows in different ways."""
    h = _sum(x)
    return h.mean(-1, keepdim=True) + h if rank == 0 else h.amax(-1, keepdim=True) - h


def gathered_layouts(rank: int, step: int, x: Any, w: Any) -> Any:
    """One collective, laid out along different dimensions; a maximum of rows needs parts of all ranks."""
    h = funcol.all_gather_tensor(x, 0 if rank == 0 else 1, dist.group.WORLD)
    return torch.relu(h) - h.amax(-1, keepdim=True)


def narrowed(rank: int, step: int, x: Any, w: Any) -> Any:
    """What one rank casts to a smaller type the other reads as it is, and from some step on casts as well."""
    h = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    return h.to(torch.bfloat16) if rank == 0 or step >= 4 else h * 2


def padded(rank: int, step: int, x: Any, w: Any) -> Any:
    """Fewer rows than ranks have room for: some keep a part of theirs, or none."""
    size = dist.get_world_size()
    h = funcol.reduce_scatter_tensor(torch.cat([x, x[:1]] * size), "sum", 0, dist.group.WORLD)
    kept = max(min(x.shape[0] + 1 - rank * 3, h.shape[0]), 0)
    return torch.relu(h[:kept] * 2).sum(-1)


DIFFERING: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        constant,
        scattered_constant,
        gathered_constant,
        bias,
        dtype,
        outputs,
        one_of_several,
        graph_break,
        compiled_again,
        left_again,
        in_turn,
        beside_others,
        rows,
        saved,
        joined,
        joined_again,
        gathered_once,
        sent_constant,
        sent_and_kept,
        sent_again,
        reductions,
        gathered_layouts,
        narrowed,
        padded,
    )
}


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    torch._inductor.config.force_disable_caches = True
    torch._inductor.config.cpp_cache_precompile_headers = False
    torch._dynamo.reset()
    fusing.clear_fusions()
    return torch.compile(function, options={**LITE, **fusing.compile_options(**options)})


def _given(rank: int, step: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, WIDTH, generator=generator, device="cpu").to(DEVICE), torch.eye(WIDTH) * 0.5


def _compare(want: Any, got: Any) -> None:
    for a, b in zip(*(one if isinstance(one, tuple) else (one,) for one in (want, got)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
        loose = 2e-5 if a.dtype == torch.float32 else 1e-2
        torch.testing.assert_close(a, b, rtol=loose, atol=loose)


def _kernels(group: Any) -> int:
    """How often this process has launched kernels of the group that the ops have."""
    return sum(int(counts["launches"]) for counts in ops.counts_of(group).values())


def differ(rank: int, size: int, names: list[str]) -> list[int]:
    """Compiled with the pass, functions give what they give without, at every call; returns how many kernels ran in
    each."""
    ran = []
    for name in names:
        function, before = DIFFERING[name], 0
        compiled = _compiled(function)
        for step in range(CALLS):
            x, w = _given(rank, step)
            before = _kernels(dist.group.WORLD)
            got = compiled(rank, step, x, w)
            ran.append(_kernels(dist.group.WORLD) - before)
            _compare(function(rank, step, x, w), got)
    return ran


def uneven_shards(rank: int, size: int) -> list[str]:
    """10 rows over 4 ranks: 3, 3, 3 and 1."""
    from torch.distributed.tensor import DTensor, Partial, Shard

    mesh = dist.init_device_mesh(DEVICE, (size,))

    def function(x: Any) -> Any:
        h: Any = DTensor.from_local(x, mesh, [Partial()], run_check=False).redistribute(placements=[Shard(0)])
        made: Any = torch.nn.functional.relu(h * 2 + 1)
        return made.to_local()

    compiled = _compiled(function)
    for step in range(4):
        x = torch.cat([_given(rank, step)[0], _given(rank, step)[0][:2]])
        _compare(function(x), compiled(x))
    return [str(one) for one in fusing.fusions()]


def not_compiled(rank: int, size: int) -> int:
    """One rank runs the function as it is; returns how many kernels ran in a call."""
    compiled: Any = _compiled(compiled_again)
    function: Any = compiled_again if rank == size - 1 else compiled
    for step in range(CALLS):
        x, w = _given(rank, step)
        _compare(compiled_again(-1, 0, x, w), function(-1, 0, x, w))
    return _kernels(dist.group.WORLD)


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Ranks say after half a second what they wait in."""
    before = crossed_calls._EVERY, crossed_calls._PATIENCE
    crossed_calls._EVERY, crossed_calls._PATIENCE = 0.1, 0.5
    try:
        yield
    finally:
        crossed_calls._EVERY, crossed_calls._PATIENCE = before


def left_compiled_code(rank: int, size: int, how: str) -> tuple[int, float, str]:
    """Rank 1 leaves compiled code after all have agreed. Returns in which call ranks fail, after how many seconds, and
    with what."""
    compiled = _compiled(compiled_again)
    dynamo: Any = torch._dynamo
    uncompiled = dynamo.disable(compiled_again)
    begun = 0.0
    with _impatient(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(CALLS):
            x, w = _given(rank, step)
            leaves = rank == 1 and step > 4
            begun = time.monotonic()
            try:
                if leaves and how == "waits in the program":
                    dist.all_reduce(x, async_op=True).wait()
                else:
                    (uncompiled if leaves else compiled)(-1, 0, x, w).sum()
            except Exception as error:
                return step, time.monotonic() - begun, str(error)
    return CALLS, time.monotonic() - begun, ""


def waited_for(rank: int, size: int) -> int:
    """Ranks are late in turn, before and after kernels and other collectives; returns how many kernels ran."""
    compiled = _compiled(compiled_again)
    with _impatient():
        for step in range(CALLS):
            x, w = _given(rank, step)
            for place in range(3):
                if rank == step % 2 and step > 2 and place == step % 3:
                    time.sleep(1.0)
                if place == 1:
                    dist.all_reduce(torch.ones(2))
                else:
                    _compare(compiled_again(-1, 0, x, w), compiled(-1, 0, x, w))
    return _kernels(dist.group.WORLD)


def agree(rank: int, size: int) -> list[int]:
    """Kernels that run in each call where all ranks want the same."""
    compiled = _compiled(compiled_again)
    ran = []
    for step in range(3):
        x, w = _given(rank, step)
        before = _kernels(dist.group.WORLD)
        got = compiled(-1, 0, x, w)
        ran.append(_kernels(dist.group.WORLD) - before)
        _compare(compiled_again(-1, 0, x, w), got)
    return ran


def cached_on_some(rank: int, size: int) -> list[int]:
    """Rank 0 finds in its cache what the others compile; returns how many kernels ran in the calls that followed."""
    folder = tempfile.mkdtemp()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    ran = []
    try:
        for _ in range(2):
            compiled = _compiled(constant)
            torch._inductor.config.force_disable_caches = False
            for step in range(3):
                x, w = _given(rank, step)
                before = _kernels(dist.group.WORLD)
                got = compiled(0, 0, x, w)
                ran.append(_kernels(dist.group.WORLD) - before)
                _compare(constant(0, 0, x, w), got)
            if rank:
                shutil.rmtree(folder)
                os.makedirs(folder)
        if rank == 0:
            assert not fusing.fusions(), "it was not in the cache"
    finally:
        torch._inductor.config.force_disable_caches = True
        del os.environ["TORCHINDUCTOR_CACHE_DIR"]
        shutil.rmtree(folder, ignore_errors=True)
    return ran
