"""Modules that DTensor parallelizes, with sequence parallelism: compiled with the pass, forward and backward.

The ranks' part of test_parallel.py.
"""

from __future__ import annotations

import copy
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch._inductor.config
import torch.distributed
from compile_checks import DEVICE, LITE

dist: Any = torch.distributed
_config: Any = torch._inductor.config

WIDTH = 32


class _Block(torch.nn.Module):
    """A norm, two matmuls side by side and one behind them, and the residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.RMSNorm(WIDTH, eps=1e-6)
        self.gate = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        y: torch.Tensor = x + self.down(torch.nn.functional.silu(self.gate(h)) * self.up(h))
        return y


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(_Block() for _ in range(2))
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        y: torch.Tensor = self.norm(x)
        return y


def _parallel(model: _Model, mesh: Any) -> Any:
    """Rows are sharded along the sequence outside of the matmuls."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        PrepareModuleOutput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    plan: dict[str, Any] = {"norm": SequenceParallel()}
    for number in range(len(model.blocks)):
        at = f"blocks.{number}"
        plan[f"{at}.norm"] = SequenceParallel()
        for name in ("gate", "up"):
            plan[f"{at}.{name}"] = ColwiseParallel(input_layouts=Shard(1))
        plan[f"{at}.down"] = RowwiseParallel(output_layouts=Shard(1))
    plan["blocks.0"] = PrepareModuleInput(
        input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=True
    )
    made = parallelize_module(model, mesh, plan)
    last = PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
    return parallelize_module(made, mesh, last)


def _step(model: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    given = x.detach().requires_grad_()
    y = model(given)
    # Not what the last norm makes constant.
    (y * torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape)).sum().backward()
    made = {"y": y.detach(), "x": given.grad}
    for name, one in model.named_parameters():
        grad: Any = one.grad
        made[name] = (grad.to_local() if hasattr(grad, "to_local") else grad).clone()
    model.zero_grad(set_to_none=True)
    return made


def _options(mode: str) -> dict[str, Any]:
    given = {"triton.cudagraphs": True} if mode == "reduce-overhead" else {}
    return {**LITE, **given, **fusing.compile_options()}


#: Of a collective: the graph's kind, its name, what was fused, and why not more.
Said = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def trains(rank: int, size: int, mode: str, batch: int, dtype: torch.dtype) -> list[Said]:
    """A step gives what it gives in eager mode."""
    mesh = dist.device_mesh.init_device_mesh(DEVICE, (size,))
    torch.manual_seed(0)
    whole = _Model().to(dtype)
    model = _parallel(copy.deepcopy(whole), mesh)
    _config.force_disable_caches = True
    torch._dynamo.reset()
    fusing.clear_fusions()
    torch.manual_seed(1)
    # torch 2.11 compiles no sharded sequence whose length it does not know, but batches.
    more = (0, 0, 1, 2) if mode == "dynamic" else (0,) * 4
    inputs = [torch.randn(batch + one, 4 * size, WIDTH).to(dtype) for one in more]
    wanted = [_step(model, x) for x in inputs]
    pipelined = _config._micro_pipeline_tp
    _config._micro_pipeline_tp = mode == "pipelined"
    try:
        compiled = torch.compile(model, options=_options(mode))
        for x, want in zip(inputs, wanted, strict=True):
            if mode == "dynamic":
                torch._dynamo.mark_dynamic(x, 0)
            made = _step(compiled, x)
            for name, value in want.items():
                got = made.get(name, made.get(f"_orig_mod.{name}"))
                assert got is not None and got.shape == value.shape, name
                # In bfloat16 gradients are up to 8 % of the largest off float64's, in eager mode too.
                loose = 1e-5 if dtype == torch.float32 else 0.1
                scale = max(float(value.abs().max()), 1e-6)
                torch.testing.assert_close(got, value, rtol=loose, atol=loose * scale)
    finally:
        _config._micro_pipeline_tp = pipelined
    return [(one.graph.split(", ")[1], one.collective, one.fused, one.because) for one in fusing.report()]
