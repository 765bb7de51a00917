"""Inputs that kernels cannot take as they are, and ranks that do not match. The ranks' part of test_awkward.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import _compare, _compiled, _said, _tensor
from matmul_checks import _always

dist: Any = torch.distributed


def _norm(h: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(h, (h.shape[-1],))


def _sum(x: torch.Tensor) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


def _gathered(x: torch.Tensor) -> Any:
    # torch takes no other tensors there.
    return funcol.all_gather_tensor(x.contiguous(), 0, dist.group.WORLD)


def _scattered(x: torch.Tensor) -> Any:
    return funcol.reduce_scatter_tensor(x.contiguous(), "sum", 0, dist.group.WORLD)


def _lying(x: torch.Tensor, how: str) -> torch.Tensor:
    """The tensor with its elements elsewhere in memory."""
    if how == "transposed":
        return x.t().contiguous().t()
    if how == "every other":
        return torch.stack((x, -x), -1)[..., 0]
    if how == "repeated":
        return x[:1].expand(x.shape)
    if how == "unaligned":
        return torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape)
    return x


#: Of `x` [rows, columns], a residual like the result, and a weight [columns, columns].
WAYS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda x, r, w: _norm(_sum(x) + r),
    "gathered": lambda x, r, w: _norm(_gathered(x) * 2),
    "scattered": lambda x, r, w: _norm(_scattered(x)),
    "product, sum": lambda x, r, w: _sum(x @ w),
    "product, scattered": lambda x, r, w: _scattered(x @ w),
    "gathered, product": lambda x, r, w: _gathered(x) @ w,
}


def runs(rank: int, size: int, name: str, how: str, rows: int, columns: int) -> list[Any]:
    """Compiled, and with matmuls overlapped wherever that can be, it gives what it gives otherwise."""
    function = WAYS[name]
    x = _lying(_tensor(rank, rows * size, columns, dtype=torch.float32), how)
    r = _lying(_tensor(0, rows * size, columns, dtype=torch.float32, seed=5), how)
    w = _lying(_tensor(0, columns, columns + 3, dtype=torch.float32, seed=6), how)
    with _always():
        compiled = _compiled(function, leaves=True)
        for _ in range(5):
            _compare(function(x, r, w), compiled(x, r, w), 2e-5)
    said: list[Any] = _said()
    return said


def shapes_differ(rank: int, size: int, collective: str, agreed: bool) -> str:
    """Rank 1 comes with other rows, from the first call on or once all ranks have agreed on a kernel; what is said."""
    functions: dict[str, Any] = {
        "all_reduce": lambda x: _norm(_sum(x) * 2),
        "all_gather": lambda x: _norm(_gathered(x) * 2),
        "matmul and all_reduce": lambda x: _sum(x @ x[:4].t()),
        "all_gather and matmul": lambda x: _gathered(x) @ x[:4].t(),
    }
    function = functions[collective]
    overlaps = "matmul" in collective
    x = _tensor(rank, 8, 16, dtype=torch.float32)
    compiled = _compiled(function, leaves=True)
    other = _tensor(rank, 6 if rank else 8, 16, dtype=torch.float32)
    # A matmul is overlapped where sizes are known.
    for one in () if overlaps else (x, other):
        torch._dynamo.mark_dynamic(one, 0)
    with _always(overlaps):
        for _ in range(5 if agreed else 0):
            _compare(function(x), compiled(x), 2e-5)
        assert not (agreed and overlaps) or fusing.fusions()[0].fused == ("aten.mm",)
        try:
            compiled(other)
        except RuntimeError as error:
            return str(error)
    return f"nothing, and {[one.fused for one in fusing.fusions()]}"


def parts_change(rank: int, size: int) -> list[tuple[str, ...]]:
    """Of two ranks one keeps more for itself once both have agreed on a kernel for parts of one size; then no more."""

    def function(x: Any, own: int) -> Any:
        parts = [own, 4] if rank == 0 else [4, own]
        return torch.relu(funcol.all_to_all_single(x, parts, parts, dist.group.WORLD)) * 2

    compiled = _compiled(function, leaves=True)
    torch._dynamo.config.automatic_dynamic_shapes = False  # A size is known in each graph.
    try:
        for number, own in enumerate([4] * 5 + [6] * 3 + [4] * 3):
            kept = own if rank else 4
            x = _tensor(rank, 4 + kept, 16, dtype=torch.float32, seed=number)
            _compare(function(x, kept), compiled(x, kept), 2e-5)
    finally:
        torch._dynamo.config.automatic_dynamic_shapes = True
    return [one.fused for one in fusing.fusions()]


def without_scales(rank: int, size: int) -> str:
    """A matmul of fp8 that is given none."""

    def function(x: Any, w: Any) -> Any:
        return _sum(torch._scaled_mm(x, w, out_dtype=torch.bfloat16)) * 2  # type: ignore[call-arg]

    x, w = (torch.ones(16, 16).to(torch.float8_e4m3fn) for _ in range(2))
    try:
        _compiled(function, leaves=True)(x, w.t())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"
