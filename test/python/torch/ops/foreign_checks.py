"""The ranks' part of test_foreign.py: graphs with other libraries' operations that are collectives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
from commsir.torch import foreign_collectives
from compile_checks import _compare, _compiled, _Targets, _tensor, _theirs, _written, funcol

dist: Any = torch.distributed
ROWS, WIDTH = 4, 32
_f: Any = torch.nn.functional


@torch.library.custom_op("checks::tp_all_gather", mutates_args=())
def _gather(x: torch.Tensor, dim: int) -> torch.Tensor:
    size = dist.get_world_size()
    made = x.new_empty(size * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(made, x.contiguous())
    return torch.cat(made.chunk(size), dim)


@_gather.register_fake
def _(x: torch.Tensor, dim: int) -> torch.Tensor:
    shape = list(x.shape)
    shape[dim] *= dist.get_world_size()
    return x.new_empty(shape)


@torch.library.custom_op("checks::tp_reduce_scatter", mutates_args=())
def _scatter(x: torch.Tensor, dim: int) -> torch.Tensor:
    size = dist.get_world_size()
    rows = torch.cat(x.chunk(size, dim))
    made = x.new_empty(rows.shape[0] // size, *rows.shape[1:])
    dist.reduce_scatter_tensor(made, rows)
    return made


@_scatter.register_fake
def _(x: torch.Tensor, dim: int) -> torch.Tensor:
    shape = list(x.shape)
    shape[dim] //= dist.get_world_size()
    return x.new_empty(shape)


#: And an operation that is fused.
ALONG: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "gathered_rows": (lambda x: _f.rms_norm(_gather(x, 0), (WIDTH,)), "aten.rsqrt"),
    "gathered_columns": (lambda x: torch.tanh(_gather(x, -1) / 30) * 30, "aten.tanh"),
    "scattered_rows": (lambda x: torch.relu(_scatter(x, 0)), "aten.relu"),
    "scattered_columns": (lambda x: torch.relu(_scatter(x * 2, 1)), "aten.relu"),
}
#: Nothing is fused with these.
ALONE: dict[str, Callable[[torch.Tensor], Any]] = {
    "gathered": lambda x: _gather(x, 1),
    "scattered": lambda x: _scatter(x, 1),
}


def along(rank: int, size: int, name: str) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Compiled, a function gives what it gives otherwise. What is fused, why not more, and what is in the graph."""
    foreign_collectives.register_collective(_gather, "all_gather")
    foreign_collectives.register_collective(_scatter, "reduce_scatter")
    function = ALONG[name][0] if name in ALONG else ALONE[name]
    try:
        seen = _Targets()
        compiled = _compiled(function, leaves=True, post_grad_custom_post_pass=seen)
        for turn in range(4):
            x = _tensor(rank, ROWS, WIDTH, dtype=torch.float32, seed=turn)
            _compare(function(x), compiled(x), 2e-5)
        said = fusing.fusions()[0]
        return said.fused, said.because, seen.found
    finally:
        foreign_collectives._meanings.clear()


def keeps_order(rank: int, size: int, in_place: bool) -> tuple[str, ...]:
    """One rank adds two collectives' results, the other does not: both begin them in the order of the program."""
    other = _written if in_place else _theirs

    def function(x: Any) -> Any:
        first = funcol.all_reduce(x, "sum", dist.group.WORLD)
        second = other(x * 3 + 1)
        return torch.relu(first + second) if rank == 0 else (torch.relu(first + 1), second)

    compiled = _compiled(function, leaves=True)
    for turn in range(4):
        x = _tensor(rank, ROWS, WIDTH, dtype=torch.float32, seed=turn)
        _compare(function(x), compiled(x), 2e-5)
    return fusing.fusions()[0].because
