"""Odd use of compiled collectives and matmuls: what a rank does for test_use.py. Matmuls are overlapped wherever that
can be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import DEVICE, _compare, _compiled, _tensor
from matmul_checks import _always
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

dist: Any = torch.distributed
_f: Any = torch.nn.functional
_ops: Any = torch.ops._c10d_functional
WIDTH, OWN = 16, 8


def _sum(x: Any, op: str = "sum", group: Any = None) -> Any:
    return funcol.all_reduce(x, op, group or dist.group.WORLD)


def _gathered(x: Any, dim: int = 0, group: Any = None) -> Any:
    return funcol.all_gather_tensor(x, dim, group or dist.group.WORLD)


def _scattered(x: Any, dim: int = 0, op: str = "sum", group: Any = None) -> Any:
    return funcol.reduce_scatter_tensor(x, op, dim, group or dist.group.WORLD)


def _norm(h: Any) -> Any:
    return _f.rms_norm(h, (h.shape[-1],))


def _weights() -> tuple[Any, Any]:
    return (
        _tensor(0, WIDTH, OWN, dtype=torch.float32, seed=50) / 4,
        _tensor(0, OWN, WIDTH, dtype=torch.float32, seed=51) / 3,
    )


def _rows(rank: int, size: int, seed: int, times: int = 2) -> Any:
    return _tensor(rank, times * size, WIDTH, dtype=torch.float32, seed=seed)


# ---------------------------------------------------------------------------------------------------------------------
# One function, called under several circumstances
# ---------------------------------------------------------------------------------------------------------------------

LAYERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a layer": lambda x, w, v: _norm(_sum(torch.relu(x @ w) @ v) + x),
    "a sequence": lambda x, w, v: _norm(_scattered(torch.relu(_gathered(x) @ w) @ v)),
    "an exchange": lambda x, w, v: funcol.all_to_all_single(x, None, None, dist.group.WORLD).relu() @ w,
    "positions": lambda x, w, v: _norm(_gathered(x.view(-1, 2, WIDTH), 1)) @ w,
}


def _automatic(turn: int) -> Any:
    return contextlib.nullcontext()


def _inference(turn: int) -> Any:
    return torch.inference_mode() if turn % 2 else torch.no_grad()


def _autocast(turn: int) -> Any:
    return torch.autocast(DEVICE, torch.bfloat16)


#: What surrounds each call, and how many rows each rank has for each rank.
CIRCUMSTANCES: dict[str, tuple[Callable[[int], Any], tuple[int, ...]]] = {
    "rows that change": (_automatic, (2, 4, 4, 6, 2, 32)),
    "inference and training": (_inference, (2,) * 6),
    "autocast": (_autocast, (2,) * 5),
}


def is_called(rank: int, size: int, layer: str, how: str, dynamic: bool | None = None) -> int:
    """Compiled, a layer gives what it gives otherwise; how many collectives were met."""
    function, (surround, counts) = LAYERS[layer], CIRCUMSTANCES[how]
    w, v = _weights()
    with _always():
        compiled = _compiled(function, leaves=True)
        for turn, times in enumerate(counts):
            x = _rows(rank, size, turn, times)
            if dynamic:
                torch._dynamo.mark_dynamic(x, 0)
            with surround(turn):
                # In bf16 sums of kernels are not rounded before the arithmetic.
                _compare(function(x, w, v), compiled(x, w, v), 4e-2 if how == "autocast" else 5e-5)
    return len(fusing.fusions())


# ---------------------------------------------------------------------------------------------------------------------
# Many functions in one graph
# ---------------------------------------------------------------------------------------------------------------------


def _in_place(x: Any, w: Any, v: Any) -> Any:
    y = x.clone()
    h = _sum(y)
    y.add_(1)
    h = h * 2
    h.mul_(y)
    return h


def _waited_later(x: Any, w: Any, v: Any) -> Any:
    begun = _ops.all_reduce(x, "sum", dist.group.WORLD.group_name)
    other = x * 2
    once = _ops.wait_tensor(begun)
    return once + other, _ops.wait_tensor(begun) * 3


def _by_dist(x: Any, w: Any, v: Any) -> Any:
    size = dist.get_world_size()
    summed, rows = x * 1, x.new_empty(x.shape[0] * size, WIDTH)
    part, swapped = x.new_empty(x.shape[0] // size, WIDTH), torch.empty_like(x)
    dist.all_reduce(summed)
    dist.all_gather_into_tensor(rows, x)
    dist.reduce_scatter_tensor(part, x * 2)
    dist.all_to_all_single(swapped, x * 3)
    return _norm(summed), _norm(rows), _norm(part), swapped * 2


def _at_once(x: Any, w: Any, v: Any) -> Any:
    a, b = funcol.all_reduce_coalesced([x, x * 2], "sum", dist.group.WORLD)
    return _norm(a) + b


def _unused(x: Any, w: Any, v: Any) -> Any:
    _sum(x * 7)
    return x * 2


def _repeated(x: Any, w: Any, v: Any) -> Any:
    for _ in range(3):
        x = _norm(_sum(x) + x)
    return x


USES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "in place": _in_place,
    "waited for later, and twice": _waited_later,
    "by torch.distributed": _by_dist,
    "several at once": _at_once,
    "broadcast": lambda x, w, v: funcol.broadcast(x, 0, dist.group.WORLD) * 2,
    "unused": _unused,
    "repeated": _repeated,
    "returned": lambda x, w, v: (_sum(x), x * 2),
    "result used twice": lambda x, w, v: (lambda h: (_norm(h), h * 2, h.sum(0)))(_sum(x)),
    "two collectives of one input": lambda x, w, v: (_norm(_sum(x)), _gathered(x) * 2, _scattered(x) * 3),
    "of a collective": lambda x, w, v: _sum(_sum(x) * 2, "max") + 1,
    "reductions": lambda x, w, v: tuple(_norm(_sum(x * 2, op)) for op in ("max", "min", "avg", "product")),
    "a number": lambda x, w, v: _sum(x.sum()) * 2,
    "one row": lambda x, w, v: torch.softmax(_sum(x[0]), -1),
    "one column": lambda x, w, v: torch.softmax(_sum(x[:, :1]), -1) + 1,
    "no rows": lambda x, w, v: _norm(_sum(x[:0])),
    "no columns": lambda x, w, v: _sum(x[:, :0]) * 2,
    "of two types": lambda x, w, v: _norm(_sum(x) + x.bfloat16()) + x.double(),
    "float64": lambda x, w, v: _sum(x.double() @ w.double()),
    "whole numbers": lambda x, w, v: _sum(x.round().long() @ w.round().long()) + 1,
    "masks": lambda x, w, v: ~_gathered(x > 0),
    "complex numbers": lambda x, w, v: torch.view_as_real(_gathered(torch.complex(x, -x)) * 2),
    "product used twice": lambda x, w, v: (lambda h: (_sum(h) * 2, _scattered(h)))(x @ w),
    "rows multiplied twice": lambda x, w, v: (lambda h: (h @ w, h @ w.abs(), h.sum()))(_gathered(x)),
    "products of products": lambda x, w, v: _scattered(_gathered(_scattered(_gathered(x) @ w) @ v) @ w),
    "one row each": lambda x, w, v: _gathered(x[:1]) @ w,
    "a vector": lambda x, w, v: _sum(x[0] @ w),
    "strided": lambda x, w, v: _sum(x[:, ::2] @ w[::2]),
    "by itself": lambda x, w, v: _sum(x.t() @ x),
    "turned": lambda x, w, v: _sum(w.t() @ x.t()),
    "repeated row": lambda x, w, v: _sum(x[:1].expand(6, WIDTH) @ w),
    "without terms": lambda x, w, v: _sum(x[:, :0] @ w[:0]),
    "without columns": lambda x, w, v: _sum(x @ w[:, :0]),
    "without rows": lambda x, w, v: _gathered(x[:0]) @ w,
    "scaled addend": lambda x, w, v: _sum(torch.addmm(x[:, :OWN], x, w, beta=0.5, alpha=2)),
    "scaled bias": lambda x, w, v: torch.addmm(w[0], _gathered(x), w, beta=0.5, alpha=2),
    "bias of one row": lambda x, w, v: torch.addmm(w[:1], _gathered(x), w),
    "bias of one column": lambda x, w, v: torch.addmm(_gathered(x)[:, :1], _gathered(x * 2), w),
    "linear": lambda x, w, v: _f.linear(_gathered(x.view(2, -1, WIDTH), 1), w.t(), w[0]),
    "batches": lambda x, w, v: _sum(torch.matmul(x.view(2, -1, WIDTH), torch.stack((w, w * 2)))),
    "rows by several": lambda x, w, v: _sum(torch.matmul(x, torch.stack((w, w * 2, w * 3)))),
    "heads": lambda x, w, v: _sum(torch.einsum("bhd,hdc->bc", x.view(-1, 2, OWN), torch.stack((w[:OWN], w[OWN:])))),
    "average": lambda x, w, v: (_sum(x @ w, "avg"), _scattered(x @ w.abs(), 0, "avg")),
    "last dimension": lambda x, w, v: (_gathered(x @ w, 1) * 2, _scattered(x @ v.t() @ v, 1) * 2),
    "gathered weight": lambda x, w, v: (x @ _gathered(w, 1)[:, :OWN], x @ _gathered(w)[:WIDTH]),
    "bias before a sum": lambda x, w, v: _scattered(x @ w + w[0]),
}


def are_used(rank: int, size: int, names: list[str]) -> int:
    """Compiled in one graph, functions give what they give otherwise; how many collectives were met."""
    w, v = _weights()

    def function(xs: Any, w: Any, v: Any) -> Any:
        return [USES[name](x, w, v) for name, x in zip(names, xs, strict=True)]

    with _always():
        compiled = _compiled(function, leaves=True)
        for turn in range(4):
            xs = [_rows(rank, size, 100 * turn + place) for place, _ in enumerate(names)]
            for name, want, got in zip(names, function(xs, w, v), compiled(xs, w, v), strict=True):
                _same(name, want, got)
    return len(fusing.fusions())


def _same(name: str, want: Any, got: Any) -> None:
    try:
        _compare(_waited(want), _waited(got), 1e-4)
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from None


def _waited(made: Any) -> tuple[Any, ...]:
    given = made if isinstance(made, tuple) else (made,)
    return tuple(one.wait() if isinstance(one, funcol.AsyncCollectiveTensor) else one for one in given)


# ---------------------------------------------------------------------------------------------------------------------
# DTensor, groups and gradients
# ---------------------------------------------------------------------------------------------------------------------

_PLACES: dict[str, Any] = {"P": Partial(), "R": Replicate(), "S0": Shard(0), "S1": Shard(1), "S2": Shard(2)}
REDISTRIBUTED = [
    (a, b) for a in ("P", "S0", "S1", "S2") for b in ("R", "S0", "S1", "S2") if a != b and (a == "P" or b != "S2")
]


def redistributes(rank: int, size: int, trains: bool) -> int:
    """Tensors that change from each placement to each other one, in one graph; backward, too."""
    mesh = init_device_mesh(DEVICE, (size,))

    def function(xs: Any) -> Any:
        made = []
        for (a, b), x in zip(REDISTRIBUTED, xs, strict=True):
            given = DTensor.from_local(x, mesh, [_PLACES[a]], run_check=False)
            made.append(_norm(given.redistribute(mesh, [_PLACES[b]]).to_local() * 2) + 1)
        return made

    compiled = _compiled(function, leaves=True)
    for turn in range(3):
        results = []
        for call in (function, compiled):
            xs = [_local(rank, size, a, 10 * turn + place) for place, (a, _) in enumerate(REDISTRIBUTED)]
            made = call([x.requires_grad_() for x in xs] if trains else xs)
            if trains:
                sum(one.square().sum() for one in made).backward()
            results.append([one.detach() for one in made] + ([x.grad for x in xs] if trains else []))
        for place, (want, got) in enumerate(zip(*results, strict=True)):
            _same(str(place), want, got)
    return len(fusing.fusions())


def _local(rank: int, size: int, placement: str, seed: int) -> Any:
    shape = [2 * size, 3 * size, 4 * size]
    if placement[0] == "S":
        shape[int(placement[1])] //= size
    return _tensor(rank, *shape, dtype=torch.float32, seed=seed)


def in_groups(rank: int, size: int) -> int:
    """Collectives of some ranks next to those of all; the others call none."""
    halves = [dist.new_group(list(range(first, size, 2))) for first in range(2)]
    own = halves[rank % 2]

    def function(x: Any) -> Any:
        h = _norm(_sum(x, group=own) + _sum(x * 2))
        h = h + _gathered(_scattered(x * 3, group=own), group=own)
        return h * _sum(x * 4, group=own).sigmoid() if rank % 2 else h

    compiled = _compiled(function, leaves=True)
    for turn in range(5):
        x = _rows(rank, size, turn)
        _compare(function(x), compiled(x), 5e-5)
    return len(fusing.fusions())


def goes_back_twice(rank: int, size: int, keeps: bool) -> int:
    """A layer with sequence parallelism whose gradients are asked for twice."""
    gather, scatter = funcol.all_gather_tensor_autograd, funcol.reduce_scatter_tensor_autograd

    def function(x: Any, w: Any, v: Any) -> Any:
        hidden = torch.relu(gather(x, 0, dist.group.WORLD) @ w)
        return _norm(scatter(hidden @ v, "sum", 0, dist.group.WORLD) + x)

    def run(call: Any, turn: int) -> Any:
        given = [one.clone().requires_grad_() for one in (_rows(rank, size, turn), *_weights())]
        made = call(*given)
        if keeps:
            made.square().sum().backward(retain_graph=True)
        else:
            torch.autograd.grad(made.sum(), given[0], retain_graph=True)
        made.sum().backward()
        return made.detach(), *(one.grad for one in given)

    with _always():
        compiled = _compiled(function, leaves=True)
        for turn in range(4):
            _compare(run(function, turn), run(compiled, turn), 1e-4)
    return len(fusing.fusions())


def _turned_around(graph: Any) -> None:
    """Puts what follows a collective before it. Inductor sorts a graph after all passes."""
    for node in list(graph.nodes)[:-1]:
        if node.op == "call_function":
            next(iter(graph.nodes)).prepend(node)


def follows_a_pass(rank: int, size: int) -> list[str]:
    """Nodes that another pass has left out of order; what became of the collectives."""
    w, v = _weights()
    layer = LAYERS["a layer"]
    compiled = _compiled(layer, leaves=True, post_grad_custom_post_pass=_turned_around)
    for turn in range(4):
        x = _rows(rank, size, turn)
        _compare(layer(x, w, v), compiled(x, w, v), 5e-5)
    return [one.collective for one in fusing.fusions() if one.fused]


def learns_with_ddp(rank: int, size: int) -> list[str]:
    """A collective in a model of DDP, of which torch puts the gradients into the graph. What became of collectives."""
    from torch._dynamo import compiled_autograd

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            return _norm(self.second(torch.relu(self.first(x))) + _sum(x))

    def losses(compiles: bool) -> list[Any]:
        torch.manual_seed(0)
        model: Any = Model().to(DEVICE)
        options: Any = {"fallback_by_default": True, "reorder_for_peak_memory": False, **fusing.compile_options()}
        made = []
        with contextlib.ExitStack() as stack:
            if compiles:
                fusing.clear_fusions()
                torch._dynamo.reset()
                stack.enter_context(torch._dynamo.config.patch(optimize_ddp="python_reducer"))
                stack.enter_context(compiled_autograd._enable(torch.compile(options=options)))
            step: Any = torch.nn.parallel.DistributedDataParallel(model)
            step = torch.compile(step, options=options) if compiles else step
            for turn in range(4):
                loss = step(_rows(rank, size, turn)).mul(torch.arange(float(WIDTH), device=DEVICE)).square().mean()
                loss.backward()
                made += [loss.detach(), *(one.grad.clone() for one in model.parameters())]
        return made

    for want, got in zip(losses(False), losses(True), strict=True):
        _compare(want, got, 1e-4)
    return [one.collective for one in fusing.fusions() if one.is_changed]


# ---------------------------------------------------------------------------------------------------------------------
# Gradients of extremes
# ---------------------------------------------------------------------------------------------------------------------

#: What gradients go through: backward graphs compute the sine again, and compare it with the extreme.
EXTREMES: dict[str, Callable[[Any], Any]] = {
    "largest": lambda x: (lambda v: v.amax(-1, keepdim=True) - v)(torch.sin(_sum(x).clamp(-1, 1))),
    "smallest": lambda x: (lambda v: v.amin(-1, keepdim=True) - v)(torch.sin(_sum(x).clamp(-1, 1))),
    "largest of all": lambda x: (lambda v: v.max() - v)(torch.sin(_sum(x).clamp(-1, 1))),
    "gathered": lambda x: (lambda v: v.amax(-1, keepdim=True) - v)(
        torch.sin(funcol.all_gather_tensor_autograd(x, 1, dist.group.WORLD).clamp(-1, 1))
    ),
    "exact": lambda x: (lambda v: v.amax(-1, keepdim=True) - v)(torch.relu(_sum(x) - 0.25)),
}


def extremes_learn(rank: int, size: int, name: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Compiled, gradients of extremes are what they are otherwise, and no 0 / 0; the forward graph's regions."""
    function = EXTREMES[name]
    with _always():
        compiled = _compiled(function, leaves=True)
        for turn in range(3):
            results = []
            for call in (function, compiled):
                x = _tensor(rank, 64, 20, dtype=torch.float32, seed=turn).requires_grad_()
                made = call(x)
                (made * torch.arange(float(made.shape[-1]), device=DEVICE)).sum().backward()
                results.append((made.detach(), x.grad))
            _compare(*results, 1e-4)
    return [(one.fused, one.because) for one in fusing.fusions() if one.graph.endswith("forward")]
