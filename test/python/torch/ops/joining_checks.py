"""The ranks' part of test_joining.py: graphs in which whole collectives can be saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import commsir.torch.ops as ops
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import DEVICE, _compare, _compiled, _Targets, _tensor

WIDTH = 16
dist: Any = torch.distributed


def _sum(x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


def two(x: Any, y: Any, w: Any) -> Any:
    """Attention and MLP side by side, with biases, then the residual and a norm."""
    h = (_sum(x @ w) + w[0]) + (_sum(y @ w) + w[1]) + x
    return torch.nn.functional.rms_norm(h, (WIDTH,)), h


def three(x: Any, y: Any, w: Any) -> Any:
    """The gradients of q, k and v, which are seen in another shape."""
    parts = [_sum((one @ w).view(2, -1, WIDTH)) for one in (x, y, x - y)]
    return (parts[0] + parts[1] + parts[2]) * 2


def alone(x: Any, y: Any, w: Any) -> Any:
    """Nothing but the sum: a matmul follows."""
    return (_sum(x) + _sum(y)) @ w


def scattered(x: Any, y: Any, w: Any) -> Any:
    """Sequence parallel."""
    parts = [funcol.reduce_scatter_tensor(one, "sum", 0, dist.group.WORLD) for one in (x, y)]
    return torch.relu(parts[0] + parts[1])


def rows_of_heads(x: Any, y: Any, w: Any) -> Any:
    """A norm over heads behind two sums."""
    h = (_sum(x) + _sum(y)).view(-1, 4, WIDTH // 4)
    return torch.nn.functional.rms_norm(h, (WIDTH // 4,))


def experts(x: Any, y: Any, w: Any) -> Any:
    """Routed experts work on rows, and shared ones on sequences."""
    return (_sum(x @ w).view(2, -1, WIDTH) + _sum((y @ w).view(2, -1, WIDTH))).relu()


def over_experts(x: Any, y: Any, w: Any) -> Any:
    """The rows of four experts, whose results are added up."""
    return (_sum(x @ w).view(4, -1, WIDTH).sum(0) + w[:2]).relu()


def kept_dimension(x: Any, y: Any, w: Any) -> Any:
    """A sum over two dimensions, of which one stays."""
    return _sum(x).view(2, 2, 2, WIDTH).sum((0, 1), keepdim=True) * 2


def routed_and_shared(x: Any, y: Any, w: Any) -> Any:
    """Experts, and one that all rows have."""
    return (_sum(x @ w).view(4, -1, WIDTH).sum(0) + _sum(y[:2])) * 2


def smaller(x: Any, y: Any, w: Any) -> Any:
    """What is left of a sum without its collective has other shapes: one number, and a row."""
    return ((_sum(x) + w[0, 0]) + w[:1]) + (w[1] + _sum(y))


def gathered_twice(x: Any, y: Any, w: Any) -> Any:
    """Each of two matmuls gathers the same rows."""
    return tuple(funcol.all_gather_tensor(x, 0, dist.group.WORLD) @ one for one in (w, w * 2))


def reduced_twice(x: Any, y: Any, w: Any) -> Any:
    return _sum(x) * 2, _sum(x) + 1


#: How many collectives of the program each one that is left stands for.
JOINED: dict[str, tuple[Callable[..., Any], list[int]]] = {
    "two": (two, [2]),
    "three": (three, [3]),
    "alone": (alone, [2]),
    "scattered": (scattered, [2]),
    "rows_of_heads": (rows_of_heads, [2]),
    "experts": (experts, [2]),
    "smaller": (smaller, [2]),
    "over_experts": (over_experts, [1]),
    "kept_dimension": (kept_dimension, [1]),
    "routed_and_shared": (routed_and_shared, [2]),
    "gathered_twice": (gathered_twice, [2]),
    "reduced_twice": (reduced_twice, [2]),
}


def read_elsewhere(x: Any, y: Any, w: Any) -> Any:
    """One of the results is needed by itself."""
    a = _sum(x)
    return a + _sum(y), a.relu()


def another_between(x: Any, y: Any, w: Any) -> Any:
    """Other ranks wait for what begins in between."""
    a = _sum(x)
    largest = funcol.all_reduce(x, "max", dist.group.WORLD)
    return a + _sum(y), largest


def no_sums(x: Any, y: Any, w: Any) -> Any:
    return funcol.all_reduce(x, "max", dist.group.WORLD) + funcol.all_reduce(y, "max", dist.group.WORLD)


def other_types(x: Any, y: Any, w: Any) -> Any:
    return _sum(x) + _sum(y.bfloat16())


def other_shapes(x: Any, y: Any, w: Any) -> Any:
    return _sum(x) + _sum(w[0])


def scaled(x: Any, y: Any, w: Any) -> Any:
    """A factor on one of them."""
    return torch.add(_sum(x), _sum(y), alpha=2)


def with_itself(x: Any, y: Any, w: Any) -> Any:
    a = _sum(x)
    return (a + a) + y


LEFT: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (read_elsewhere, another_between, no_sums, other_types, other_shapes, scaled, with_itself)
}


#: The functions in which a sum goes before its collective, and what the collective is of then.
SUMMED_FIRST: dict[str, tuple[int, ...]] = {
    "over_experts": (2, WIDTH),
    "kept_dimension": (1, 1, 2, WIDTH),
    "routed_and_shared": (2, WIDTH),
}


def other_sums(x: Any, y: Any, w: Any) -> Any:
    """Sums that stay: over other dimensions, of what is read elsewhere, in another type, and of largest elements."""
    a, largest = _sum(x), funcol.all_reduce(x, "max", dist.group.WORLD)
    others = _sum(y).view(4, 2, WIDTH).sum(1), _sum(y * 2).view(4, 2, WIDTH).sum(0, dtype=torch.float64)
    return a.view(4, 2, WIDTH).sum(0), a + 1, largest.view(4, 2, WIDTH).sum(0), *others


def _own(x: Any, dim: int) -> Any:
    return x.chunk(dist.get_world_size(), dim)[dist.get_rank()]


def own_rows(x: Any, y: Any, w: Any) -> Any:
    """As of a layer whose rows are shared out: the residual and a norm of them."""
    h = _own(_sum(x), 0) + _own(y, 0)
    return torch.nn.functional.rms_norm(h, (WIDTH,), w[0]), h


def own_columns(x: Any, y: Any, w: Any) -> Any:
    return torch.relu(_own(_sum(x), 1)) * 2


def own_positions(x: Any, y: Any, w: Any) -> Any:
    """Of a batch, by two slices, with nothing that follows but a matmul."""
    size, rank = dist.get_world_size(), dist.get_rank()
    h = funcol.all_reduce(x.view(2, 4, WIDTH), "avg", dist.group.WORLD)
    part = slice(4 // size * rank, 4 // size * (rank + 1))
    return h[:, part] @ w, h[:, part].sum(-1)


#: Functions that read the own part of an all_reduce alone, and its shape on two ranks.
OWN: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "own_rows": (own_rows, (4, WIDTH)),
    "own_columns": (own_columns, (8, WIDTH // 2)),
    "own_positions": (own_positions, (2, 2, WIDTH)),
}


def own_parts(rank: int, size: int, name: str, dtype: torch.dtype, some: bool = False) -> tuple[Any, Any, int]:
    """Compiled, a function gives what it gives otherwise: what the report says, and collectives of the process group in
    the last call. `some`: the other rank's part on rank 0 alone, which is then of an all_reduce."""
    function = OWN[name][0]
    if some and rank == 0:

        def function(x: Any, y: Any, w: Any) -> Any:
            return torch.relu(_sum(x).chunk(size, 1)[1]) * 2

    compiled = _compiled(function, leaves=True)
    w = _tensor(0, WIDTH, WIDTH, dtype=dtype, seed=9)
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    for turn in range(5):
        x, y = (_tensor(rank, 8, WIDTH, dtype=dtype, seed=seed + turn) for seed in (10, 20))
        want = function(x, y, w)
        before = backend._get_sequence_number_for_group()
        got = compiled(x, y, w)
        calls = int(backend._get_sequence_number_for_group() - before)
        _compare(want, got, {torch.float32: 2e-5}.get(dtype, 4e-2))
    return [(one.collective, one.shape) for one in fusing.report()], [one.fused for one in fusing.report()], calls


def shapes(rank: int, size: int, name: str) -> list[tuple[int, ...]]:
    """Compiled, a function gives what it gives otherwise; what its collectives are of."""
    function = other_sums if name == "other_sums" else JOINED[name][0]
    compiled = _compiled(function, leaves=True)
    w = _tensor(0, WIDTH, WIDTH, dtype=torch.float32, seed=9)
    for turn in range(4):
        x, y = (_tensor(rank, 8, WIDTH, dtype=torch.float32, seed=seed + turn) for seed in (10, 20))
        _compare(function(x, y, w), compiled(x, y, w), 2e-5)
    assert name == "other_sums" or all(one.fused[0] == "aten.sum.dim_IntList" for one in fusing.report())
    return [one.shape for one in fusing.report()]


def joins(rank: int, size: int, name: str, dtype: torch.dtype, **options: Any) -> list[tuple[int, tuple[str, ...]]]:
    """Compiled, a function gives what it gives otherwise; what each collective stands for, and why not for more."""
    function = JOINED[name][0] if name in JOINED else LEFT[name]
    compiled = _compiled(function, leaves=True, **options)
    w = _tensor(0, WIDTH, WIDTH, dtype=dtype, seed=9)
    loose = 2e-5 if dtype == torch.float32 and function is not other_types else 4e-2
    for turn in range(5):
        x, y = (_tensor(rank, 8, WIDTH, dtype=dtype, seed=seed + turn) for seed in (10, 20))
        _compare(function(x, y, w), compiled(x, y, w), loose)
    said = fusing.report()
    assert list(said) == fusing.fusions() and len(said.as_dicts()) == len(said)
    assert f"graph {said[0].graph}: {len(said)} collectives" in str(said)
    assert all(name in one.source or "return" in one.source or "=" in one.source for one in said), said.as_dicts()
    return [(one.joined, one.because) for one in said]


def same_bits(rank: int, size: int) -> bytes:
    """A sum of three in bfloat16, once ranks have agreed: what all have to give alike."""
    compiled = _compiled(three, leaves=True)
    w = _tensor(0, WIDTH, WIDTH, dtype=torch.bfloat16, seed=9)
    x, y = (_tensor(rank, 8, WIDTH, dtype=torch.bfloat16, seed=seed) for seed in (1, 2))
    for _ in range(4):
        made: torch.Tensor = compiled(x, y, w)
    return made.cpu().view(torch.int16).numpy().tobytes()


def calls(rank: int, size: int, name: str) -> int:
    """Collectives of the process group in a call, once ranks have agreed on kernels: none."""
    compiled = _compiled(JOINED[name][0], leaves=True)
    given = [_tensor(rank, 8, WIDTH, dtype=torch.float32, seed=seed) for seed in (1, 2)]
    given.append(_tensor(0, WIDTH, WIDTH, dtype=torch.float32, seed=3))
    for _ in range(4):
        compiled(*given)
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    before = backend._get_sequence_number_for_group()
    compiled(*given)
    return int(backend._get_sequence_number_for_group() - before)


def joins_on_some(rank: int, size: int, name: str) -> list[int]:
    """Rank 0 puts sums together, the others do not."""
    return [joined for joined, _ in joins(rank, size, name, torch.float32, join_sums=rank == 0)]


def measures(rank: int, size: int) -> tuple[list[float | None], str]:
    """What the kernels gain, where all ranks have them: not one whose arithmetic each rank has by itself."""

    def function(x: Any, y: Any, w: Any) -> Any:
        return two(x, y, w), _sum(x) * (rank + 2.0)

    compiled = _compiled(function, leaves=True)
    given = [_tensor(rank, 8, WIDTH, dtype=torch.float32, seed=seed) for seed in (1, 2)]
    compiled(*given, _tensor(0, WIDTH, WIDTH, dtype=torch.float32, seed=3))
    said = fusing.measure(calls=2)
    return [one.measured for one in said], str(said)


_TEXT = f"""(%sum: tensor<{WIDTH}xf32>) {{
    // Twice the sum.
    %0 = arith.addf %sum, %sum : tensor<{WIDTH}xf32> // "twice"
    comms.yield %0 : tensor<{WIDTH}xf32>
}}"""


def _with_text(x: Any, y: Any, w: Any) -> Any:
    """Joined sums next to a region that the program has written."""
    (made,) = ops.fused_collective("all_reduce", x + y, [], _TEXT, [(torch.float32, WIDTH)])
    return two(x, y, w), made


def _by_name(x: Any, y: Any, w: Any) -> Any:
    """The op itself, whose text only the pass can put in a line."""
    name = dist.group.WORLD.group_name
    call: tuple[Any, ...] = ("all_reduce", x + y, [], "sum", _TEXT, "f32", [WIDTH], False, name, "", None, "", 0)
    return torch.ops.commsir.fused_collective(*call)


def in_lines(rank: int, size: int) -> None:
    """Every node of a compiled graph is shown in one line, with the pass and, for the function, without."""

    def check_graph(module: torch.fx.GraphModule, inputs: Any) -> Any:
        assert all("\n" not in str(node.format_node()) for node in module.graph.nodes)
        return module.forward

    given = [_tensor(rank, 8, WIDTH, dtype=torch.float32, seed=seed) for seed in (1, 2)]
    given.append(_tensor(0, WIDTH, WIDTH, dtype=torch.float32, seed=3))
    for function in (_with_text, _by_name):
        seen = _Targets()
        compiled = _compiled(function, leaves=True, post_grad_custom_post_pass=seen)
        for _ in range(3):
            for want, got in zip(function(*given), compiled(*given), strict=True):
                _compare(want, got, 2e-5)
        assert {"commsir.fused_collective.default", "with_effects"} & set(seen.found)
    torch._dynamo.reset()
    alone = torch.compile(_with_text, fullgraph=True, backend=check_graph)
    _compare(_with_text(*given)[1], alone(*given)[1], 2e-5)
