"""The program's line in the report, of code of many kinds (test_reporting.py). Comments tell the lines apart."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
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
    "an autograd function": (lambda: _Calls(lambda x: _APPLY(x)), [("# function", "")]),
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
