"""The ranks' part of test_compile.py on the CPU, or, by CHECK_DEVICE, of test/gpu/torch_run.py on GPUs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch._inductor.custom_graph_pass
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.errors import UsageError
from commsir.torch import foreign_collectives, fusion, ops, region_nodes

COLUMNS = 96
DEVICE = os.environ.get("CHECK_DEVICE", "cpu")
#: On the CPU, what is left to Inductor runs as it is: a C++ compiler would take longer than all else.
#: Inductor knows no order of what falls back, which it does not reorder either where it is told so by its lite mode.
LITE: dict[str, Any] = (
    {"fallback_by_default": True, "reorder_for_peak_memory": False}
    if DEVICE == "cpu"
    # Inductor pads products where its measurement says so, which is not the same in every run.
    else {"shape_padding": False}
)
#: Much of it is without types.
dist: Any = torch.distributed


def _tensor(rank: int, *shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randn(shape, generator=generator, device="cpu").to(DEVICE, dtype)


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
    """Sequence parallel: each rank normalizes its rows."""
    h = funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)
    return _rms_norm(h + r[: h.shape[0]], w)


def gathered(x: Any, r: Any, w: Any) -> Any:
    """Rows of all ranks, scaled."""
    return funcol.all_gather_tensor(x, 0, dist.group.WORLD) * w


def quantized(x: Any, r: Any, w: Any) -> Any:
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
        quantized,
        followed_by_matmul,
        late_argument,
    )
}


def _compiled(function: Callable[..., Any], leaves: bool, **options: Any) -> Callable[..., Any]:
    """The function, compiled anew; `leaves`: something of it is left to Inductor."""
    # What comes out of Inductor's cache has not met the pass in this process.
    torch._inductor.config.force_disable_caches = True
    torch._inductor.config.cpp_cache_precompile_headers = False
    torch._dynamo.reset()
    fusing.clear_fusions()
    left = LITE if leaves else {}
    return torch.compile(function, fullgraph=True, options={**fusing.compile_options(**options), **left})


def fuses(rank: int, size: int, name: str, dtype: torch.dtype, dynamic: bool = False) -> list[str]:
    """Compiled with the pass, a function gives what it gives without; returns what the pass says."""
    function = FUSED[name]
    compiled = _compiled(function, leaves=name == "late_argument")
    for rows in (size, 3 * size) if dynamic else (size,):
        shape = (rows, COLUMNS) if name in ("scattered", "gathered") else (2, rows, COLUMNS)
        x = _tensor(rank, *shape, dtype=dtype)
        r = _tensor(0, *shape, dtype=dtype, seed=5)
        w = _tensor(0, COLUMNS, dtype=dtype, seed=6)
        if dynamic:
            torch._dynamo.mark_dynamic(x, 1)
            torch._dynamo.mark_dynamic(r, 1)
        _compare(function(x, r, w), compiled(x, r, w), {torch.float32: 2e-5}.get(dtype, 4e-2))
    return [str(one) for one in fusing.fusions()]


def passes_handles(rank: int, size: int) -> tuple[int, int, int]:
    """How often generated code prepares a call, passes tensors to one, and has the text of a kernel."""
    from torch._inductor.utils import run_and_get_code

    def function(x: Any, r: Any, w: Any) -> Any:
        return residual_rms_norm(residual_rms_norm(x, r, w)[0], r, w)

    compiled = _compiled(function, leaves=False)
    x, r, w = _tensor(rank, 4, COLUMNS, dtype=torch.float32), _tensor(0, 4, COLUMNS, dtype=torch.float32), None
    w = _tensor(0, COLUMNS, dtype=torch.float32, seed=6)
    made, codes = run_and_get_code(compiled, x, r, w)
    _compare(function(x, r, w), made, 2e-5)
    (code,) = codes
    calls = [line for line in code.splitlines() if "= commsir_call_" in line]
    return code.count("commsir.torch.ops.prepared("), len(calls), code.count("comms.yield")


def _compare(want: Any, got: Any, loose: float) -> None:
    for a, b in zip(*((one if isinstance(one, tuple) else (one,)) for one in (want, got)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        most = 0.13 if a.dtype == torch.float8_e4m3fn else loose
        scale = a.float().abs().max().item() if a.numel() else 0
        torch.testing.assert_close(a.float(), b.float(), rtol=most, atol=most * scale)


#: Of a collective: what was fused, and why not more.
Said = tuple[tuple[str, ...], tuple[str, ...]]


def _said() -> list[Said]:
    """Without the shapes, whose symbols stay in the process."""
    return [(one.fused, one.because) for one in fusing.fusions()]


#: Columns of the checks of shapes, and rows of their squares.
SQUARE = 16

#: What has a statistic of the rows along the columns, as shapes without keepdim are aligned: no region holds it.
ALONG_COLUMNS: dict[str, Callable[..., Any]] = {
    "mean": lambda h, w: h - h.mean(-1),
    "unsqueezed in front": lambda h, w: h * h.mean(-1).unsqueeze(0),
    "viewed": lambda h, w: h * h.mean(-1).view(1, SQUARE),
    "indexed": lambda h, w: h + h.amax(-1).reshape(-1)[None, :],
    "expanded": lambda h, w: h.sum(-1).expand(SQUARE, SQUARE) * 2,
    "variance": lambda h, w: h - torch.var_mean(h, -1)[1],
    "with itself": lambda h, w: h.mean(-1).view(1, -1) - h.mean(-1).view(-1, 1),
}

#: What has it next to a tensor with an element for each row, which is as long as a row: a region holds all of it.
EACH_WITH_ITS_OWN: dict[str, Callable[..., Any]] = {
    "one dimension": lambda h, w: h.mean(-1) * w,
    "and the rows": lambda h, w: (h * 2, h.mean(-1) + w),
}

#: What has it along the rows, or as a result: a region holds all of it.
ALONG_ROWS: dict[str, Callable[..., Any]] = {
    "kept": lambda h, w: h - h.mean(-1, keepdim=True),
    "unsqueezed": lambda h, w: h * (h.mean(-1).abs() + 1).unsqueeze(-1) * w,
    "viewed": lambda h, w: h.view(-1, SQUARE) * h.mean(-1).view(-1, 1),
    "indexed": lambda h, w: h + h.amax(-1)[..., None],
    "expanded": lambda h, w: h.sum(-1, keepdim=True).expand(h.shape) * w,
    "with what all rows share": lambda h, w: h.mean(-1, keepdim=True) * w,
    "a result": lambda h, w: (h * 2, h.mean(-1) + h.amax(-1)),
}


def _after(collective: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def all_reduce(x: Any, w: Any) -> Any:
        return function(funcol.all_reduce(x, "sum", dist.group.WORLD), w)

    def all_gather(x: Any, w: Any) -> Any:
        return function(funcol.all_gather_tensor(x, 0, dist.group.WORLD), w)

    def reduce_scatter(x: Any, w: Any) -> Any:
        return function(funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD), w)

    return {one.__name__: one for one in (all_reduce, all_gather, reduce_scatter)}[collective]


def _aligns(
    rank: int, size: int, collective: str, function: Callable[..., Any], shape: tuple[int, ...], dynamic: bool
) -> list[Said]:
    """What follows a collective whose result has that shape agrees with torch."""
    function = _after(collective, function)
    x = _tensor(rank, *shape, dtype=torch.float32)
    w = _tensor(0, SQUARE, dtype=torch.float32, seed=6)
    if collective == "all_gather":
        x = x[: shape[0] // size].clone()
    elif collective == "reduce_scatter":
        x = x.repeat(size, *(1 for _ in shape[1:]))
    compiled = _compiled(function, leaves=True)
    if dynamic:
        # Where torch makes it static after all, as a square has to be, it may.
        torch._dynamo.maybe_mark_dynamic(x, 0)
    _compare(function(x, w), compiled(x, w), 2e-5)
    return _said()


def aligns(rank: int, size: int, collective: str, name: str, along_rows: bool) -> list[Said]:
    """A line of the tables: squares, where torch would take either dimension, and what else the line takes."""
    function = {**ALONG_ROWS, **EACH_WITH_ITS_OWN, **({} if along_rows else ALONG_COLUMNS)}[name]
    shapes: list[tuple[int, ...]] = [(SQUARE, SQUARE), (1, SQUARE, SQUARE)]
    if along_rows or name == "with itself":
        shapes += [(8, SQUARE), (2, 4, SQUARE)]
    said = []
    for shape in shapes if collective == "all_reduce" else shapes[::2]:
        for dynamic in (False, True):
            said += _aligns(rank, size, collective, function, shape, dynamic)
    return said


def _total(x: torch.Tensor) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


def _heads(x: torch.Tensor) -> torch.Tensor:
    """[2, 4, 64] as [2, 4 heads, 4, 16]."""
    return x.view(2, 4, 4, 16).transpose(1, 2)


def _dropped(x: torch.Tensor, r: torch.Tensor) -> Any:
    return torch.nn.functional.dropout(_total(x), 0.5, True) + r


#: What follows an all_reduce of [2, 4, 64], with arguments of these shapes (of no dimension: float64): a region holds
#: all of it, except views of its results.
WHOLE: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "heads, then a norm of each": (lambda x, w: torch.nn.functional.rms_norm(_heads(_total(x)), (16,), w), [(16,)]),
    "a norm of each head": (
        lambda x, w: torch.nn.functional.rms_norm(_total(x).view(2, 4, 4, 16), (16,), w).transpose(1, 2),
        [(16,)],
    ),
    "heads next to others": (lambda x, r: _heads(_total(x)) + r, [(2, 4, 4, 16)]),
    "heads and back": (lambda x, r: (_heads(_total(x)) * r).transpose(1, 2).exp(), [(4, 1, 16)]),
    "heads of one size": (lambda x, r: (_total(x).view(8, 4, 4, 4).transpose(1, 2) * r).exp(), [(4, 1, 4)]),
    "dimensions turned twice": (lambda x, r: (_total(x) * 2).permute(2, 0, 1).permute(2, 1, 0) - r, [(4, 2, 64)]),
    "a number for each head": (lambda x, r: _total(x).view(2, 4, 4, 16) * r, [(4, 1)]),
    "a number for each token and head": (lambda x, r: _total(x).view(2, 4, 4, 16) * r, [(2, 4, 4, 1)]),
    "rows for the batch": (lambda x, r: _total(x).view(2, 4, 4, 16) * r, [(4, 1, 16)]),
    "parts of rows": (lambda x, r: _total(x).view(2, 4, 4, 16) + r, [(2, 1, 4, 1)]),
    "dropout": (_dropped, [(2, 4, 64)]),
    "dropout and a norm": (
        lambda x, r, w: torch.nn.functional.rms_norm(_dropped(x, r), (64,), w),
        [(2, 4, 64), (64,)],
    ),
    "dropout twice": (
        lambda x, r: torch.nn.functional.dropout(_dropped(x, torch.rand_like(r)), 0.1, True),
        [(2, 4, 64)],
    ),
    "a number in float64": (lambda x, s: _total(x) * s + 1, [()]),
    "rounded quotients": (
        lambda x, r: torch.div(torch.div(_total(x), r, rounding_mode="floor"), 2, rounding_mode="trunc"),
        [(2, 4, 64)],
    ),
}


def holds_all(rank: int, size: int, name: str, dtype: torch.dtype) -> list[Said]:
    """A line of the table gives, bit by bit of its random numbers, what it gives where nothing is fused."""
    function, shapes = WHOLE[name]
    x = _tensor(rank, 2, 4, 64, dtype=dtype)
    given = [
        _tensor(0, *shape, dtype=dtype if shape else torch.float64, seed=5 + place)
        for place, shape in enumerate(shapes)
    ]
    plain = torch.compile(function, fullgraph=True, options={"fallback_by_default": DEVICE == "cpu"})
    torch._dynamo.reset()
    torch.manual_seed(rank)
    wanted = [plain(x, *given) for _ in range(5)]
    compiled = _compiled(function, leaves=True)
    torch.manual_seed(rank)
    for want in wanted:
        made = compiled(x, *given)
        _compare(want, made, {torch.float32: 2e-5}.get(dtype, 4e-2))
        assert all(a.stride() == b.stride() for a, b in zip(_listed(want), _listed(made), strict=True))
    return _said()


def _exchanged(x: torch.Tensor) -> Any:
    return funcol.all_to_all_single(x, None, None, dist.group.WORLD)


def _collected(x: torch.Tensor) -> Any:
    return funcol.all_gather_tensor(x, 0, dist.group.WORLD)


#: What follows an exchange, or a gather of quantized rows: of what type the rows of 32 are, then of a row and of as
#: many rows as arrive.
ARRIVES: dict[str, tuple[torch.dtype, Callable[..., Any]]] = {
    "exchanged": (torch.float32, lambda x, w, r: torch.nn.functional.rms_norm(_exchanged(x), (32,), w) * 2),
    "exchanged in bfloat16": (torch.bfloat16, lambda x, w, r: torch.relu(_exchanged(x)).float() * w),
    "heads exchanged": (
        torch.float32,
        lambda x, w, r: _exchanged(x.view(4, -1, 32)).view(4, -1, 4, 8).transpose(1, 2).exp(),
    ),
    "fp8 exchanged": (torch.float8_e4m3fn, lambda x, w, r: _exchanged(x).float() * r),
    "fp8 gathered": (torch.float8_e4m3fn, lambda x, w, r: _collected(x).to(torch.bfloat16) * w.bfloat16()),
    "wide fp8 gathered": (torch.float8_e5m2, lambda x, w, r: (_collected(x).float() * w).sum(-1)),
    "int8 gathered": (torch.int8, lambda x, w, r: torch.softmax(_collected(x).float() * 0.1, -1)),
    "int8 gathered by groups": (torch.int8, lambda x, w, r: _collected(x).view(-1, 4, 8).float() * w.view(4, 8)[:, :1]),
    "int8 gathered and kept": (torch.int8, lambda x, w, r: (lambda h: (h.float() * w, h.float() + 1))(_collected(x))),
    "int8 exchanged": (torch.int8, lambda x, w, r: (lambda h: (h, h.float() * w))(_exchanged(x))),
}


def arrives(rank: int, size: int, name: str) -> list[Said]:
    """A line of the table gives what it gives in eager mode; of fp8, NaN and infinity arrive, too."""
    dtype, function = ARRIVES[name]
    x = (_tensor(rank, 8 * size, 32, dtype=torch.float32) * 20).to(dtype)
    if dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        x[0, 0], x[1, 1] = float("nan"), float("inf")
    w, r = _tensor(0, 32, dtype=torch.float32, seed=6), _tensor(rank, 8 * size, 1, dtype=torch.float32, seed=7)
    compiled = _compiled(function, leaves=True)
    for _ in range(5):
        for want, made in zip(_listed(function(x, w, r)), _listed(compiled(x, w, r)), strict=True):
            assert want.dtype == made.dtype
            loose = 2e-2 if want.dtype == torch.bfloat16 else 1e-5
            torch.testing.assert_close(made.float(), want.float(), rtol=loose, atol=loose, equal_nan=True)
    return _said()


def _listed(value: Any) -> Any:
    return value if isinstance(value, tuple) else (value,)


def folded_away(rank: int, size: int) -> list[Said]:
    """Inductor knows what 0 times something is, and leaves arithmetic that nobody uses."""

    def function(x: Any, r: Any) -> Any:
        h = funcol.all_reduce(x, "sum", dist.group.WORLD) + r
        return r.sum() + (0 * h).sum()

    x, r = (_tensor(rank, 4, SQUARE, dtype=torch.float32, seed=seed) for seed in range(2))
    _compare(function(x, r), _compiled(function, leaves=True)(x, r), 2e-5)
    return _said()


def _norm_add_norm(sum_of: Callable[..., Any], x: Any, r: Any) -> Any:
    """What follows a layer of Gemma: a norm, the residual, a norm."""
    h = r + torch.nn.functional.rms_norm(sum_of(x), (SQUARE,))
    return torch.nn.functional.rms_norm(h, (SQUARE,)), h


def waited_for_twice(rank: int, size: int) -> list[Said]:
    """A program waits itself for what functional collectives wait for, too."""
    wait: Any = funcol.wait_tensor

    def sum_of(x: Any) -> Any:
        return wait(wait(funcol.all_reduce(x, "sum", dist.group.WORLD)).detach())

    def function(x: Any, r: Any) -> Any:
        return _norm_add_norm(sum_of, x, r)

    x, r = (_tensor(rank, 4, SQUARE, dtype=torch.float32, seed=seed) for seed in range(2))
    with torch.no_grad():
        compiled = _compiled(function, leaves=True)
        for _ in range(2):
            _compare(function(x, r), compiled(x, r), 2e-5)
    return _said()


def followed_by_bmm(rank: int, size: int) -> list[Said]:
    """Inductor expands an operand of a bmm to the shape that it has."""

    def function(x: Any, w: Any) -> Any:
        return funcol.all_reduce(x, "sum", dist.group.WORLD) @ w

    x, w = (_tensor(rank, 2, 8, 8, dtype=torch.float32, seed=seed) for seed in range(2))
    _compare(function(x, w), _compiled(function, leaves=True)(x, w), 2e-5)
    return _said()


def waits_behind_views(rank: int, size: int) -> int:
    """What has begun is seen in other shapes, and waited for more than once; returns how many kernels there are."""
    functional, aten = torch.ops._c10d_functional, torch.ops.aten
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    begun = graph.call_function(functional.all_reduce.default, (x, "sum", dist.group.WORLD.group_name))
    view = graph.call_function(aten.view.default, (begun, [2, 4, SQUARE]))
    waits = [graph.call_function(functional.wait_tensor.default, (one,)) for one in (view, begun)]
    back = graph.call_function(aten.view.default, (waits[0], [8, SQUARE]))
    clone = graph.call_function(aten.clone.default, (waits[1],))
    graph.output(graph.call_function(aten.add.Tensor, (back, clone)))
    given = _tensor(rank, 8, SQUARE, dtype=torch.float32)
    x.meta["val"] = given
    for node in graph.nodes:
        if node.op == "call_function":
            values = torch.fx.node.map_arg(node.args, lambda one: one.meta["val"])
            node.meta["val"] = node.target(*values)
    want = torch.fx.GraphModule({}, graph)(given)
    count = fusion.fuse_collectives(graph)
    assert not any(node.target is functional.wait_tensor.default for node in graph.nodes)
    torch.testing.assert_close(torch.fx.GraphModule({}, graph)(given), want)
    return count


def too_many_results(rank: int, size: int) -> list[Said]:
    """One more than a kernel writes."""

    def function(x: Any) -> Any:
        h = funcol.all_reduce(x, "sum", dist.group.WORLD)
        a = h + 1
        b = a * 2
        c = b - 3
        return h, h.reshape(2, 2, -1), a, b, c, c * c, *(c + number for number in range(12))

    x, compiled = _tensor(rank, 4, SQUARE, dtype=torch.float32), _compiled(function, leaves=True)
    for _ in range(2):
        _compare(function(x), compiled(x), 2e-5)
    return _said()


def saved_for_gradients(rank: int, size: int) -> list[Said]:
    """What the backward pass needs are results, too."""

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> Any:
            return funcol.all_reduce(x, "sum", dist.group.WORLD)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return grad

    sum_of: Any = Sum.apply  # type: ignore[no-untyped-call, unused-ignore]

    def function(x: Any, r: Any) -> Any:
        return _norm_add_norm(sum_of, x, r)

    def run(called: Callable[..., Any]) -> Any:
        given = [_tensor(rank, 4, SQUARE, dtype=torch.float32, seed=seed).requires_grad_() for seed in range(2)]
        made = called(*given)
        sum(one.square().sum() for one in made).backward()
        return *(one.detach() for one in made), *(one.grad for one in given)

    compiled = _compiled(function, leaves=True)
    for _ in range(2):
        _compare(run(function), run(compiled), 2e-5)
    return _said()


def every_collective(rank: int, size: int) -> dict[str, str]:
    """What is said of each kind of collective, by its name."""
    group = dist.group.WORLD

    def function(x: Any) -> Any:
        a, b = funcol.all_reduce_coalesced([x, x + 1], "sum", group)
        return (
            a + b,
            # Rank 0 gets more than rank 1.
            funcol.all_to_all_single(x, [5 - 2 * rank] * 2, [5, 3], group) * 2,
            funcol.broadcast(x, 0, group) + 1,
            *funcol.all_gather_into_tensor_coalesced([x], group),
            *funcol.reduce_scatter_tensor_coalesced([x], "sum", [0], group),
            funcol.all_reduce(x.sum(), "sum", group) * 2,
            funcol.all_gather_tensor(x.long(), 0, group) + 1,
            _theirs(x) * 2,
            _written(x * 3) + 1,
        )

    _compiled(function, leaves=True)(_tensor(rank, 8, SQUARE, dtype=torch.float32))
    assert not any(one.fused for one in fusing.fusions())
    assert all(one.shape or one.collective == "all_reduce" for one in fusing.fusions())
    return {one.collective: " ".join(one.because) for one in fusing.fusions()}


@torch.library.custom_op("checks::tp_all_reduce", mutates_args=())
def _theirs(x: torch.Tensor) -> torch.Tensor:
    made = x.clone()
    dist.all_reduce(made)
    return made


@_theirs.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("checks::tp_all_reduce_", mutates_args=("x",))
def _theirs_in_place(x: torch.Tensor) -> None:
    dist.all_reduce(x)


def _written(x: torch.Tensor) -> torch.Tensor:
    _theirs_in_place(x)
    return x


class _Functional(torch._inductor.custom_graph_pass.CustomGraphPass):
    """A program's own pass, which writes functional collectives for the program's own operation."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        functional: Any = torch.ops._c10d_functional
        for node in graph.find_nodes(op="call_function", target=torch.ops.checks.tp_all_reduce.default):
            with graph.inserting_before(node):
                begun = graph.call_function(
                    functional.all_reduce.default, (*node.args, "sum", dist.group.WORLD.group_name)
                )
                wait = graph.call_function(functional.wait_tensor.default, (begun,))
            begun.meta["val"] = wait.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(wait)
            graph.erase_node(node)

    def uuid(self) -> str:
        return "1"


class _Targets(fusing.CollectivePass):
    """What is in the graph behind the pass."""

    found: list[str]

    def __call__(self, graph: torch.fx.Graph) -> None:
        super().__call__(graph)
        self.found = [str(node.target) for node in graph.nodes]
        # Inductor writes nodes into comments of one line.
        broken = [shown for node in graph.nodes if "\n" in (shown := str(node.format_node()))]
        assert not broken, broken


def registered(rank: int, size: int, by_name: bool) -> tuple[list[Said], list[str], Any]:
    """An operation of somebody else that is said to be a collective; what is left of it where nothing follows."""

    def function(x: Any, r: Any) -> Any:
        return _norm_add_norm(_theirs, x, r)

    foreign_collectives.register_collective("checks::tp_all_reduce" if by_name else _theirs, "all_reduce")
    try:
        x, r = (_tensor(rank, 4, SQUARE, dtype=torch.float32, seed=seed) for seed in range(2))
        compiled = _compiled(function, leaves=True)
        for _ in range(5):
            _compare(function(x, r), compiled(x, r), 2e-5)
        said, seen = _said(), _Targets()
        alone = torch.compile(lambda x: _theirs(x) @ x.t(), options={"post_grad_custom_post_pass": seen})
        _compare(_theirs(x) @ x.t(), alone(x), 2e-5)
        return said, seen.found, fusing.CollectivePass().uuid()
    finally:
        foreign_collectives._meanings.clear()


def in_every_mode(rank: int, size: int) -> list[list[Said]]:
    """`enable` for options that torch.compile takes no others beside, and torch's own fusion of matmuls."""
    x, r = (_tensor(rank, 8, SQUARE, dtype=torch.float32, seed=seed) for seed in range(2))
    # The size of a parameter is known, and that of rows with it.
    w = torch.nn.Parameter(_tensor(0, SQUARE, dtype=torch.float32, seed=6), requires_grad=False)
    said = []
    for options in ({"mode": "reduce-overhead"}, {"dynamic": True}, {"options": {"_micro_pipeline_tp": True}}):
        torch._dynamo.reset()
        fusing.clear_fusions()
        fusing.enable()
        try:
            compiled: Any = torch.compile(residual_rms_norm, fullgraph=True, **options)
            for rows in (8, 8, 8, 6):
                given = x[:rows].clone(), r[:rows].clone(), w
                _compare(residual_rms_norm(*given), compiled(*given), 2e-5)
        finally:
            fusing.disable()
        said.append(_said())
    return said


def warm(rank: int, size: int, folder: str) -> tuple[int, int, int]:
    """Graphs that Inductor compiles, kernels that the ops compile, and entries of the report."""
    from torch._dynamo.utils import counters

    os.environ.update(TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor-{rank}", COMMSIR_CACHE_DIR=f"{folder}/kernels")
    function = FUSED["residual_rms_norm"]
    compiled = _compiled(function, leaves=True)
    torch._inductor.config.force_disable_caches = False
    counters.clear()
    x, r = (_tensor(rank, 8, 48, dtype=torch.float32, seed=seed) for seed in range(2))
    for _ in range(4):
        _compare(function(x, r, r[0]), compiled(x, r, r[0]), 2e-5)
    counts = ops.counts_of(dist.group.WORLD)["cpu.ops"]
    return int(counters["inductor"]["fxgraph_cache_miss"]), int(counts["compiled"]), len(fusing.report())


def with_a_defect(rank: int, size: int) -> tuple[list[Said], list[str], str]:
    """The pass fails behind its first change: the graph is compiled as it was. What the report and warnings say, and
    the program that repeats it."""

    def function(x: Any, y: Any, w: Any) -> Any:
        first = funcol.all_reduce(x, "sum", dist.group.WORLD) * 2
        return first, torch.relu(funcol.all_reduce(y, "sum", dist.group.WORLD)) @ w

    def broken(region: Any, node: Any) -> Any:
        raise IndexError("none of these")

    given = [_tensor(rank, SQUARE, SQUARE, dtype=torch.float32, seed=seed) for seed in range(3)]
    target = torch.ops.aten.relu.default
    kept, strict = region_nodes.RULES[target], os.environ.pop("COMMSIR_TORCH_STRICT", None)
    region_nodes.RULES[target] = broken
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(2):
                compiled = _compiled(function, leaves=True)
                for _ in range(3):
                    _compare(function(*given), compiled(*given), 2e-5)
    finally:
        region_nodes.RULES[target] = kept
        if strict is not None:
            os.environ["COMMSIR_TORCH_STRICT"] = strict
    texts = [str(one.message) for one in told if "has a defect" in str(one.message)]
    path = texts[0].split("`python ")[1].split("`")[0] if texts else ""
    return _said(), texts, path


def fails_where_it_is_strict(rank: int, size: int) -> str:
    """As in our tests."""
    kept = region_nodes.RULES[torch.ops.aten.relu.default]

    def broken(region: Any, node: Any) -> Any:
        raise IndexError("none of these")

    region_nodes.RULES[torch.ops.aten.relu.default] = broken
    try:
        _compiled(lambda x: torch.relu(funcol.all_reduce(x, "sum", dist.group.WORLD)), leaves=True)(torch.ones(4, 4))
    except Exception as error:
        return str(error)
    finally:
        region_nodes.RULES[torch.ops.aten.relu.default] = kept
    return ""


def register_mistakes(rank: int, size: int) -> list[str]:
    """What is said of operations that cannot be registered."""
    said = []
    calls: list[Callable[[], None]] = [
        lambda: foreign_collectives.register_collective("checks::nothing", "all_reduce"),
        lambda: foreign_collectives.register_collective(_theirs, "broadcast"),
        lambda: foreign_collectives.register_collective(torch.add, "all_reduce"),
        lambda: foreign_collectives.register_collective(torch.ops.aten.add_.Tensor, "all_reduce"),
    ]
    for call in calls:
        try:
            call()
        except UsageError as error:
            said.append(str(error))
    return said


def behind_another_pass(rank: int, size: int, as_function: bool) -> list[Said]:
    """A pass before ours writes the collectives; with `as_function` one that Inductor cannot cache."""

    def function(x: Any, r: Any) -> Any:
        return _norm_add_norm(_theirs, x, r)

    functional: Any = _Functional()
    before = functional.__call__ if as_function else functional
    compiled = _compiled(function, leaves=True, post_grad_custom_post_pass=before)
    x, r = (_tensor(rank, 4, SQUARE, dtype=torch.float32, seed=seed) for seed in range(2))
    for _ in range(2):
        _compare(function(x, r), compiled(x, r), 2e-5)
    return _said()


def another_pass_each_time(rank: int, size: int) -> list[float]:
    """Passes without a name for their state, before ours, with Inductor's cache: what each time comes out."""

    def function(x: Any) -> Any:
        return funcol.all_reduce(x, "sum", dist.group.WORLD) + 1.0

    def adding(number: float) -> Any:
        def change(graph: torch.fx.Graph) -> None:
            for node in graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor):
                node.args = (node.args[0], number)

        return change

    made = []
    for number in (5.0, 7.0):
        compiled = _compiled(function, leaves=True, post_grad_custom_post_pass=adding(number))
        torch._inductor.config.force_disable_caches = False
        try:
            made.append(float(compiled(torch.zeros(4, SQUARE, device=DEVICE))[0, 0]))
        finally:
            torch._inductor.config.force_disable_caches = True
    return made


def rows_that_may_lack(rank: int, size: int, rows: int) -> list[Said]:
    """A mask chooses rows, or none."""

    def function(x: Any, mask: Any) -> Any:
        chosen = mask.nonzero().squeeze(1)
        return funcol.all_reduce(x[chosen], "sum", dist.group.WORLD) * 2

    x = _tensor(rank, 4, SQUARE, dtype=torch.float32)
    mask = torch.arange(4, device=DEVICE) < rows
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        _compare(function(x, mask), _compiled(function, leaves=True)(x, mask), 2e-5)
    return _said()


def without_elements(rank: int, size: int, shape: tuple[int, ...]) -> list[Said]:
    """There are no rows, or none worth a kernel, and arithmetic follows."""

    def function(x: Any) -> Any:
        return funcol.all_reduce(x, "sum", dist.group.WORLD) * 2

    x = torch.ones(shape, device=DEVICE)
    _compare(function(x), _compiled(function, leaves=True)(x), 0)
    return _said()


def overflows(rank: int, size: int, dtype: torch.dtype) -> list[Said]:
    """A cast makes of what is too large what torch makes of it, to the bit."""

    def function(x: Any) -> Any:
        h = (funcol.all_reduce(x, "max", dist.group.WORLD) * 1.0).to(dtype)
        return h, h.float() * 2

    ends = [447.0, 448.0, 463.9, 464.0, 464.1, 479.0, 480.0, 5e4, 57344.0, 61439.0, 61441.0, 1e9, float("inf"), 0.0]
    x = torch.tensor([*ends, *(-end for end in ends), float("nan"), 1e-4], device=DEVICE).repeat(2, 1)
    for a, b in zip(function(x), _compiled(function, leaves=True)(x), strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a.float(), b.float(), rtol=0, atol=0, equal_nan=True)
        numbers = ~a.float().isnan()
        assert torch.equal(a.float().signbit()[numbers], b.float().signbit()[numbers])
    return _said()


def ends_of_functions(rank: int, size: int, name: str) -> list[Said]:
    """Functions of subnormal, huge and special numbers are those of torch, to rounding."""

    def function(x: Any) -> Any:
        h = funcol.all_reduce(x, "max", dist.group.WORLD) * 1.0
        return h, getattr(torch, name)(h)

    inf = float("inf")
    numbers = [
        0.0,
        -0.0,
        1e-45,
        1e-40,
        1.2e-38,
        1e-8,
        0.5,
        1.0,
        2.5,
        10.0,
        88.7,
        88.8,
        -88.0,
        -103.0,
        -104.0,
        1e30,
        inf,
    ]
    x = torch.tensor([*numbers, -inf, float("nan"), -1.0], device=DEVICE).repeat(2, 1)
    for a, b in zip(function(x), _compiled(function, leaves=True)(x), strict=True):
        torch.testing.assert_close(a, b, rtol=5e-7, atol=6e-45, equal_nan=True)
    return _said()


def used_in_another_order(rank: int, size: int) -> list[Said]:
    """Collectives begin in one order on all ranks; what a rank does with their results decides nothing."""

    def function(x: Any, y: Any, w: Any) -> Any:
        a = funcol.all_reduce(x, "sum", dist.group.WORLD) * 2
        b = funcol.all_reduce(y, "sum", dist.group.WORLD) * 2
        first, second = (a, b) if rank == 0 else (b, a)
        return first @ w, (second @ w).sum()

    x, y, w = torch.ones(8, 8), torch.full((8, 8), 100.0), torch.eye(8)
    given = [one.to(DEVICE) for one in (x, y, w)]
    _compare(function(*given), _compiled(function, leaves=True)(*given), 0)
    return _said()


def begin_in_order(rank: int, size: int) -> list[Said]:
    """What one rank gathers in one piece the other begins in two, which need different things."""

    def function(x: Any, w: Any) -> Any:
        y = x @ w if rank == 0 else x
        return funcol.all_gather_tensor(x, 0, dist.group.WORLD) * 2, funcol.all_gather_tensor(
            y, 0, dist.group.WORLD
        ) + 1

    given = [_tensor(rank, 8, 8, dtype=torch.float32), torch.eye(8, device=DEVICE) * 3]
    compiled = _compiled(function, leaves=rank != 0)
    for _ in range(3):
        _compare(function(*given), compiled(*given), 2e-5)
    return _said()


def each_needs_the_other(rank: int, size: int) -> list[Said]:
    """Of two regions that read each other's products one has to end before."""

    def function(x: Any, y: Any, w: Any) -> Any:
        a = funcol.all_reduce(x, "sum", dist.group.WORLD)
        b = funcol.all_reduce(y, "sum", dist.group.WORLD)
        c, e = a.relu(), b.relu()
        return c * (e @ w), e * (c @ w)

    x, y = (_tensor(rank, 8, 8, dtype=torch.float32, seed=seed) for seed in (1, 2))
    w = _tensor(0, 8, 8, dtype=torch.float32)
    _compare(function(x, y, w), _compiled(function, leaves=True)(x, y, w), 2e-5)
    return _said()


def ops_keep_their_order(rank: int, size: int) -> None:
    """And none is left out: other ranks wait for it, though this one reads no result."""
    import commsir.torch.ops as ops

    def function(x: Any, y: Any, w: Any) -> Any:
        a, b, unread = ops.all_reduce(x), ops.all_reduce(y), ops.all_reduce(x + y)
        first, second = (a, b) if rank == 0 else (b, a)
        return first @ w, (second @ w).sum() + (unread.sum() if rank == 1 else 0)

    given = [one.to(DEVICE) for one in (torch.ones(8, 8), torch.full((8, 8), 100.0), torch.eye(8))]
    for backend in ("aot_eager", "inductor"):
        torch._dynamo.reset()
        options: Any = {"fallback_by_default": DEVICE == "cpu"} if backend == "inductor" else None
        compiled: Any = torch.compile(function, fullgraph=True, backend=backend, options=options)
        _compare(function(*given), compiled(*given), 0)


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
