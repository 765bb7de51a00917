"""What each rank compiles, on the CPU (test_compile.py) or, as CHECK_DEVICE says, on GPUs (test/gpu/torch_run.py)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol

COLUMNS = 96
DEVICE = os.environ.get("CHECK_DEVICE", "cpu")
#: Much of it is without types.
dist: Any = torch.distributed


def _tensor(rank: int, *shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def _rms_norm(h: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    f = h.float()
    f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + eps)
    return f.to(h.dtype) * weight


def residual_rms_norm(x: Any, r: Any, w: Any) -> Any:
    """What follows a tensor-parallel layer."""
    h = funcol.all_reduce(x, "sum", dist.group.WORLD) + r
    return _rms_norm(h, w), h


def torch_rms_norm(x: Any, r: Any, w: Any) -> Any:
    """torch's own norm."""
    h = funcol.all_reduce(x, "sum", dist.group.WORLD) + r
    return torch.nn.functional.rms_norm(h, (h.shape[-1],), w, 1e-6), h


def layer_norm(x: Any, r: Any, w: Any) -> Any:
    """Two reductions of a row."""
    return torch.nn.functional.layer_norm(funcol.all_reduce(x, "sum", dist.group.WORLD) + r, (COLUMNS,), w, w)


def silu_only(x: Any, r: Any, w: Any) -> Any:
    """Nothing looks at rows."""
    return torch.nn.functional.silu(funcol.all_reduce(x, "avg", dist.group.WORLD)) * r


def soft_max(x: Any, r: Any, w: Any) -> Any:
    """A largest element, and a sum."""
    return torch.softmax(funcol.all_reduce(x, "sum", dist.group.WORLD).float(), -1).to(x.dtype)


def scattered(x: Any, r: Any, w: Any) -> Any:
    """Sequence parallel: each rank normalises its rows."""
    h = funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)
    return _rms_norm(h + r[: h.shape[0]], w)


def gathered(x: Any, r: Any, w: Any) -> Any:
    """Rows of all ranks, scaled."""
    return funcol.all_gather_tensor(x, 0, dist.group.WORLD) * w


def quantised(x: Any, r: Any, w: Any) -> Any:
    """A norm, and its rows as fp8 with a scale each."""
    h = _rms_norm(funcol.all_reduce(x, "sum", dist.group.WORLD) + r, w).float()
    scale = (h.abs().amax(-1, keepdim=True) / 448.0).clamp(min=1e-12)
    return (h / scale).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale


def followed_by_matmul(x: Any, r: Any, w: Any) -> Any:
    """The region ends where a matrix product begins."""
    h = funcol.all_reduce(x, "sum", dist.group.WORLD) + r
    return _rms_norm(h, w) @ r.reshape(-1, COLUMNS).t(), h


def late_argument(x: Any, r: Any, w: Any) -> Any:
    """Something that is made from the sum by a matrix product cannot be read by the kernel."""
    h = funcol.all_reduce(x, "sum", dist.group.WORLD)
    return torch.relu(h) + (h @ r.reshape(-1, COLUMNS).t()).sum()


FUSED: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        residual_rms_norm,
        torch_rms_norm,
        layer_norm,
        silu_only,
        soft_max,
        scattered,
        gathered,
        quantised,
        followed_by_matmul,
        late_argument,
    )
}


def fuses(rank: int, size: int, name: str, dtype: torch.dtype, dynamic: bool = False) -> list[str]:
    """Compiled with the pass, a function gives what it gives without; returns what the pass says."""
    function = FUSED[name]
    # What comes out of Inductor's cache has not met the pass in this process.
    torch._inductor.config.force_disable_caches = True
    torch._inductor.config.cpp_cache_precompile_headers = False
    torch._dynamo.reset()
    fusing.clear_fusions()
    # What is left to Inductor runs as it is: a C++ compiler would take longer than all else.
    left = {"fallback_by_default": True} if name == "late_argument" and DEVICE == "cpu" else {}
    compiled = torch.compile(function, fullgraph=True, options={**fusing.compile_options(), **left})
    for rows in (size, 3 * size) if dynamic else (size,):
        shape = (rows, COLUMNS) if name in ("scattered", "gathered") else (2, rows, COLUMNS)
        x = _tensor(rank, *shape, dtype=dtype)
        r = _tensor(0, *shape, dtype=dtype, seed=5)
        w = _tensor(0, COLUMNS, dtype=dtype, seed=6)
        if dynamic:
            torch._dynamo.mark_dynamic(x, 1)
            torch._dynamo.mark_dynamic(r, 1)
        want, got = function(x, r, w), compiled(x, r, w)
        for a, b in zip(*((one if isinstance(one, tuple) else (one,)) for one in (want, got)), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            loose = 0.13 if a.dtype == torch.float8_e4m3fn else {torch.float32: 2e-5}.get(dtype, 4e-2)
            torch.testing.assert_close(a.float(), b.float(), rtol=loose, atol=loose * a.float().abs().max().item())
    return [str(one) for one in fusing.fusions()]


def traced(rank: int, size: int) -> None:
    """The ops themselves go through torch.compile without a graph break, with derivatives."""
    import commsir.torch.ops as ops

    def function(x: torch.Tensor) -> torch.Tensor:
        return (ops.all_reduce(torch.sin(x)) * 2).sum()

    x = _tensor(rank, 8, 16, dtype=torch.float32).requires_grad_()
    torch._dynamo.reset()
    # No kernels of Inductor's own on the CPU: a C++ compiler would take longer than all else.
    loss: Any = torch.compile(function, fullgraph=True, options={"fallback_by_default": DEVICE == "cpu"})(x)
    loss.backward()
    torch.testing.assert_close(x.grad, torch.cos(x.detach()) * 2 * size)
    torch.library.opcheck(
        torch.ops.commsir.all_reduce.default,
        (x.detach(), "sum", dist.group.WORLD.group_name),
        test_utils=("test_schema", "test_faketensor"),
    )


def kernels(rank: int, size: int) -> dict[str, int]:
    """How often each op runs in one call of the compiled function."""
    torch._dynamo.reset()
    compiled: Any = torch.compile(residual_rms_norm, fullgraph=True, options=fusing.compile_options())
    arguments = [_tensor(rank, 4, COLUMNS, dtype=torch.bfloat16) for _ in range(2)]
    weight = _tensor(0, COLUMNS, dtype=torch.bfloat16)
    compiled(*arguments, weight)
    compiled(*arguments, weight)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if DEVICE != "cpu":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        compiled(*arguments, weight)
        if DEVICE != "cpu":
            torch.cuda.synchronize()
    names = [event.name for event in profile.events()]
    return {name: names.count(name) for name in set(names)}
