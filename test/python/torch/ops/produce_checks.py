"""Arithmetic before a collective, by kind: it becomes part of the collective's kernel (test_produce.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import DEVICE, _compare, _compiled, _rms_norm, _tensor

dist: Any = torch.distributed
ROWS, WIDTH = 8, 32
_FP8 = torch.float8_e4m3fn


def _gather(x: Any) -> Any:
    return funcol.all_gather_tensor(x, 0, dist.group.WORLD)


def _scatter(x: Any) -> Any:
    return funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)


def _exchange(x: Any) -> Any:
    return funcol.all_to_all_single(x, None, None, dist.group.WORLD)


def _reduce(x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


def cast_before_gather(x: Any, t: Any) -> Any:
    """As of a shard of weights."""
    return _gather(x.to(torch.bfloat16))


def cast_around_gather(x: Any, t: Any) -> Any:
    """Half as much travels."""
    return _gather(x.to(torch.bfloat16)).float() * 2


def cast_after_gather(x: Any, t: Any) -> Any:
    """As of matmuls under autocast: two of what is gathered, and a view."""
    h = _gather(x)
    return h.to(torch.bfloat16) @ t["square"].bfloat16(), h.view(-1, 8).to(torch.bfloat16).relu()


def cast_after_exchange(x: Any, t: Any) -> Any:
    return _exchange(x).half().relu()


def cast_after_columns(x: Any, t: Any) -> Any:
    """Gathered along another dimension."""
    return funcol.all_gather_tensor(x, 1, dist.group.WORLD).to(torch.bfloat16)


def scale_before_scatter(x: Any, t: Any) -> Any:
    """As of a mean of gradients."""
    return _scatter(x.to(torch.bfloat16) / 4)


def fp8_of_tensor(x: Any, t: Any) -> Any:
    """A scale of the whole tensor, known before."""
    sent = (x / t["scale"]).clamp(-448, 448).to(_FP8)
    return _gather(sent).float() * t["scale"]


def fp8_of_rows(x: Any, t: Any) -> Any:
    """Scales of rows from an earlier step."""
    sent = (x / t["row_scale"]).clamp(-448, 448).to(_FP8)
    return _exchange(sent).float()


def int8_exchanged(x: Any, t: Any) -> Any:
    """The scale of a row is made in the kernel; the receiver knows another."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
    return _exchange(torch.round(x / scale).clamp(-128, 127).to(torch.int8)).float() * t["scale"]


def norm_before_gather(x: Any, t: Any) -> Any:
    """Sequence parallel: rows are normalized, and then gathered."""
    return _gather(_rms_norm(x + t["whole"], t["row"]))


def layer_norm_before_gather(x: Any, t: Any) -> Any:
    return torch.relu(_gather(torch.nn.functional.layer_norm(x, (WIDTH,), t["row"], t["row"])))


def gelu_before_reduce(x: Any, t: Any) -> Any:
    """A parallel sum of what each rank makes, then a norm."""
    return _rms_norm(_reduce(torch.nn.functional.gelu(x) * t["whole"]), t["row"])


def masked_before_reduce(x: Any, t: Any) -> Any:
    """As of a vocabulary's parallel embedding."""
    return _reduce(torch.where(t["mask"], x, 0.0))


def vocabulary_before_reduce(x: Any, t: Any) -> Any:
    """As transformers' plans do it: rows of other ranks' tokens are set to zero, by a mask of one dimension."""
    rows = torch.nn.functional.embedding(t["tokens"], x)
    rows[t["tokens"] > 5] = 0.0
    return _reduce(rows)


def mask_comes_first(x: Any, t: Any) -> Any:
    """As of the gradient of relu: the kernel's input is the mask, but numbers are added up."""
    return _reduce(torch.where(t["mask_of_elements"], 0.0, x)) * 2


def integers_before_reduce(x: Any, t: Any) -> Any:
    """Which are compared: float32 does not tell all of them apart."""
    return _reduce(torch.where((t["near"] == 1 + (1 << 24)) | (t["near"].to(torch.int32) == 3 + (1 << 24)), x, x * 2))


def read_elsewhere(x: Any, t: Any) -> Any:
    """The norm is read by the residual as well: it stays outside, the cast goes along."""
    h = _rms_norm(x, t["row"])
    return _gather(h.to(torch.bfloat16)), h + 1


def after_a_matmul(x: Any, t: Any) -> Any:
    return _reduce((x @ t["square"]).to(torch.bfloat16))


def of_three_dimensions(x: Any, t: Any) -> Any:
    return _reduce((x.view(2, -1, WIDTH) * 0.5).to(torch.bfloat16)) + 1


def of_heads(x: Any, t: Any) -> Any:
    """Rows of the kernel are heads, on both sides."""
    h = _reduce(torch.relu(x))
    return torch.nn.functional.rms_norm(h.view(-1, 4, WIDTH // 4), (WIDTH // 4,))


def softmax_before_gather(x: Any, t: Any) -> Any:
    return _gather(torch.softmax(x, -1))


def masked_by_rank(x: Any, t: Any) -> Any:
    """A rank sends its own rows."""
    mine = torch.arange(x.shape[0], device=x.device) % dist.get_world_size() == dist.get_rank()
    return _reduce(torch.where(mine[:, None], x, 0.0)) * t["row"]


def of_one_dimension(x: Any, t: Any) -> Any:
    return _reduce(t["row"] * 3 + x[0]) - 1


def written_after(x: Any, t: Any) -> Any:
    """What the cast has read is written before the collective begins."""
    y = x.clone()
    low = y * 2
    y.add_(1)
    return _reduce(low) + y


def of_a_kernel(x: Any, t: Any) -> Any:
    """What is sent is made of another collective's result."""
    largest = _reduce(x.abs().amax().reshape(1))
    return _gather((x / largest).to(torch.bfloat16)).float() * largest


#: And a word of what goes into the kernel.
PRODUCED: dict[str, tuple[Callable[..., Any], str]] = {
    "cast_before_gather": (cast_before_gather, "convert_element_type"),
    "cast_around_gather": (cast_around_gather, "convert_element_type"),
    "cast_after_gather": (cast_after_gather, "convert_element_type"),
    "cast_after_exchange": (cast_after_exchange, "convert_element_type"),
    "cast_after_columns": (cast_after_columns, "convert_element_type"),
    "scale_before_scatter": (scale_before_scatter, "div"),
    "fp8_of_tensor": (fp8_of_tensor, "clamp"),
    "fp8_of_rows": (fp8_of_rows, "clamp"),
    "int8_exchanged": (int8_exchanged, "amax"),
    "norm_before_gather": (norm_before_gather, "rsqrt"),
    "layer_norm_before_gather": (layer_norm_before_gather, "rsqrt"),
    "gelu_before_reduce": (gelu_before_reduce, "erf"),
    "masked_before_reduce": (masked_before_reduce, "where"),
    "vocabulary_before_reduce": (vocabulary_before_reduce, "where"),
    "integers_before_reduce": (integers_before_reduce, "eq"),
    "mask_comes_first": (mask_comes_first, "where"),
    "read_elsewhere": (read_elsewhere, "convert_element_type"),
    "after_a_matmul": (after_a_matmul, "convert_element_type"),
    "of_three_dimensions": (of_three_dimensions, "mul"),
    "of_heads": (of_heads, "relu"),
    "softmax_before_gather": (softmax_before_gather, "exp"),
    "masked_by_rank": (masked_by_rank, "where"),
    "of_one_dimension": (of_one_dimension, "add"),
    "written_after": (written_after, "mul"),
    "of_a_kernel": (of_a_kernel, "div"),
}


def cast_to_two(x: Any, t: Any) -> Any:
    """Types that differ: what is gathered stays in float32."""
    h = _gather(x)
    return h.to(torch.bfloat16), h.half()


def cast_and_kept(x: Any, t: Any) -> Any:
    h = _gather(x)
    return h.to(torch.bfloat16), h + 1


def needed_twice(x: Any, t: Any) -> Any:
    """What is sent is a result of the program."""
    h = torch.relu(x)
    return _gather(h), h


def of_columns(x: Any, t: Any) -> Any:
    """A sum of columns."""
    return _reduce((x * 2).sum(0)) + t["row"]


def of_no_row(x: Any, t: Any) -> Any:
    """Numbers that are repeated."""
    return _reduce(x[:, :1] * t["row"]) + 1


def sent_as_it_is(x: Any, t: Any) -> Any:
    """The result of another collective, through a matmul, and nothing else."""
    return _reduce(_reduce(x) @ t["square"]) + 1


#: What stays outside, and why.
KEPT: dict[str, tuple[Callable[..., Any], str]] = {
    "cast_to_two": (cast_to_two, ""),
    "cast_and_kept": (cast_and_kept, ""),
    "needed_twice": (needed_twice, "produce: aten.relu at produce_checks.py is needed by the program's result as well"),
    "of_columns": (
        of_columns,
        "produce: aten.sum.dim_IntList at produce_checks.py reduces other dimensions than the last",
    ),
    "of_no_row": (of_no_row, "produce: nothing that aten.mul.Tensor at produce_checks.py is made of has its rows"),
    "sent_as_it_is": (sent_as_it_is, ""),
}


def _given() -> dict[str, Any]:
    given: dict[str, Any] = {
        "whole": _tensor(0, ROWS, WIDTH, dtype=torch.float32, seed=5),
        "row": _tensor(0, WIDTH, dtype=torch.float32, seed=6),
        "square": _tensor(0, WIDTH, WIDTH, dtype=torch.float32, seed=7),
        "row_scale": _tensor(0, ROWS, 1, dtype=torch.float32, seed=8).abs() + 0.1,
        "scale": torch.tensor(0.75, device=DEVICE),
        "mask": torch.arange(ROWS, device=DEVICE).view(ROWS, 1) % 2 == 0,
        "near": torch.arange(ROWS * WIDTH, device=DEVICE).view(ROWS, WIDTH) % 4 + (1 << 24),
        "tokens": torch.arange(ROWS, device=DEVICE).view(2, ROWS // 2),
        "mask_of_elements": torch.arange(ROWS * WIDTH, device=DEVICE).view(ROWS, WIDTH) % 3 == 0,
    }
    return given


def _grown(rows: int, given: dict[str, Any]) -> dict[str, Any]:
    """The same with so many rows."""
    return {
        name: one.repeat(rows // ROWS, 1) if one.dim() == 2 and one.shape[0] == ROWS else one
        for name, one in given.items()
    }


def produces(rank: int, size: int, name: str, dynamic: bool = False) -> list[Any]:
    """Compiled, a function gives what it gives otherwise; what the pass says of each collective."""
    function = {**PRODUCED, **KEPT}[name][0]
    compiled = _compiled(function, leaves=True)
    for turn in range(4):
        given = _grown(ROWS * (1 + turn % 2 if dynamic else 1), _given())
        x = _tensor(rank, given["whole"].shape[0], WIDTH, dtype=torch.float32, seed=turn)
        if dynamic:
            for one in (x, given["whole"], given["row_scale"], given["mask"]):
                torch._dynamo.mark_dynamic(one, 0)
        want = function(x, given)
        _compare(want, compiled(x, given), 1e-2)
    return [(one.produced, one.fused, one.because, str(one)) for one in fusing.fusions()]
