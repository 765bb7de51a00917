"""The program's line in the report, of code of many kinds (test_reporting.py). Comments tell the lines apart."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch._inductor.custom_graph_pass
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.torch import reporting
from compile_checks import _compiled, _tensor

dist: Any = torch.distributed
_Module: Any = torch.nn.Module


def _sum(x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)  # helper


class _Block(_Module):  # type: ignore[misc, unused-ignore]
    def forward(self, x: Any) -> Any:
        h = x * 2
        return _sum(h).relu()  # block


class _Calls(_Module):  # type: ignore[misc, unused-ignore]
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x).relu()  # calls


class _Layers(_Module):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([_Block() for _ in range(3)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x) + 1
        return x


class _Hooked(_Module):  # type: ignore[misc, unused-ignore]
    """As parallelize_module does: the collective is that of a hook."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Identity()
        self.inner.register_forward_hook(lambda module, given, made: _sum(made))

    def forward(self, x: Any) -> Any:
        return self.inner(x * 2).relu()  # hooked


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return _sum(x)  # function

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


class _Reduces(_Module):  # type: ignore[misc, unused-ignore]
    """The line is that of the model, not of the helper in the same file."""

    def forward(self, x: Any) -> Any:
        h = _APPLY(x * 2).relu()  # first
        return _APPLY(h * 3).sigmoid()  # second


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    return call


@_decorated
def _with_decorator(x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD).relu()  # decorated


def _scaled(factor: float, x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD).relu() * factor  # partial


def _generated() -> Any:
    made: dict[str, Any] = {}
    exec("def function(x):\n    return funcol.all_reduce(x, 'sum', dist.group.WORLD).relu() * 2\n", globals(), made)
    return made["function"]


_APPLY: Any = _Function.apply
_LAMBDA = lambda x: funcol.all_reduce(x, "sum", dist.group.WORLD).relu()  # noqa: E731  # lambda


#: What the lines end in, and the modules. Dynamo keeps no frames of generated code.
SOURCES: dict[str, tuple[Callable[[], Any], list[tuple[str, str]]]] = {
    "a module": (_Block, [("# block", "")]),
    "modules": (_Layers, [("# block", f"layers.{number}") for number in range(3)]),
    "nn.Sequential": (lambda: torch.nn.Sequential(torch.nn.Identity(), _Block()), [("# block", "1")]),
    "a lambda": (lambda: _LAMBDA, [("# lambda", "")]),
    "a module that calls a function": (lambda: _Calls(_sum), [("# calls", "")]),
    "a hook": (_Hooked, [("# hooked", "inner")]),
    "an autograd function": (lambda: _APPLY, [("# function", "")]),
    "an autograd function in a module": (_Reduces, [("# first", ""), ("# second", "")]),
    "an autograd function in a module of a module": (
        lambda: torch.nn.Sequential(torch.nn.Identity(), _Reduces()),
        [("# first", "1"), ("# second", "1")],
    ),
    "a decorator": (lambda: _with_decorator, [("# decorated", "")]),
    "functools.partial": (lambda: functools.partial(_scaled, 2.0), [("# partial", "")]),
    "generated code": (_generated, [("", "")]),
    "generated code in a module": (lambda: _Calls(_generated()), [("# calls", "")]),
    "torch.func": (lambda: _sum_after_vmap, [("# vmap", "")]),
}


def _sum_after_vmap(x: Any) -> Any:
    doubled = torch.func.vmap(lambda row: row * 2)(x)
    return funcol.all_reduce(doubled, "sum", dist.group.WORLD).relu()  # vmap


def sources(rank: int, size: int, name: str) -> list[tuple[str, str]]:
    """Lines of the report, and modules."""
    compiled = _compiled(SOURCES[name][0](), leaves=True)
    compiled(_tensor(rank, 4, 32, dtype=torch.float32))
    return [(one.source, one.module) for one in fusing.report()]


def numbers(rank: int, size: int) -> list[str]:
    """The report's graphs, where one rank has compiled more than others before."""
    for _ in range(rank):
        reporting.graph_name(torch.fx.Graph())
    _compiled(_LAMBDA, leaves=True)(_tensor(rank, 4, 64, dtype=torch.float32))
    return [one.graph for one in fusing.report()]


def without_numbers(why: str) -> str:
    """A reason without the numbers of lines."""
    return re.sub(r"(\.py):\d+", r"\1", why)


def _gather(x: Any, dim: int = 0) -> Any:
    return funcol.all_gather_tensor(x, dim, dist.group.WORLD)


def _split_beside(x: Any) -> Any:
    """What is not in pieces is one of the parts of a tensor."""
    parts = torch.split(torch.cat([x, x, x, x], -1).cos(), 64, -1)
    return _gather(x, 1) + parts[1]


def _late(x: Any) -> Any:
    first = _sum(x)
    second = _sum(x * 3) @ x.t()
    return first.relu() + second.sum(-1, keepdim=True)


def _needed(x: Any) -> Any:
    h = torch.relu(x * 2)
    return _sum(h) + 1, h @ h.t()


def _shared(x: Any) -> Any:
    """Two collectives send one value; the reason names the other collective, not the kernel in its place."""
    sent = torch.relu(x * 2)
    return _sum(sent) + 1, _gather(sent) * 3


def _columns(x: Any) -> Any:
    return _sum(x).relu().sum(0) * 2


def _long(x: Any) -> Any:
    return _sum(x).to(torch.int64) * 2


def _strided(x: Any) -> Any:
    return _sum(x)[:, 1:30:3] + 1


#: Programs that are not fused as a whole.
REASONS: dict[str, Callable[[Any], Any]] = {
    one.__name__: one for one in (_split_beside, _late, _needed, _shared, _columns, _long, _strided)
}


class _Names(torch._inductor.custom_graph_pass.CustomGraphPass):
    """The names of the graph's nodes before the pass."""

    found: set[str]

    def __call__(self, graph: torch.fx.Graph) -> None:
        # What a function or an operation is called may be the name of a node as well.
        self.found = {node.name for node in graph.nodes if re.search(r"\d", node.name) or node.name == "getitem"}

    def uuid(self) -> None:
        return None


def reasons(rank: int, size: int, name: str) -> tuple[list[str], set[str]]:
    """What the report says, and the names of the graph's nodes."""
    names = _Names()
    compiled = _compiled(REASONS[name], leaves=True, post_grad_custom_post_pass=names)
    compiled(_tensor(rank, 4, 32, dtype=torch.float32))
    return [why for one in fusing.report() for why in one.because], names.found
