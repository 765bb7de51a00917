"""The ranks' part of test_foreign.py: graphs with other libraries' operations that are collectives."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
from commsir.torch import foreign_collectives
from compile_checks import _compare, _compiled, _Targets, _tensor, _theirs, _written, funcol
from matmul_checks import _always

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


# ---------------------------------------------------------------------------------------------------------------------
# Operations of an engine
# ---------------------------------------------------------------------------------------------------------------------

#: What the engine calls its groups. "own": a group of its own, so that the registered one, which no other check has,
#: does not count its calls.
GROUPS: dict[str, Any] = {}
CALLS = 5
#: How often operations have run.
RUNS = [0]


def _group(name: str) -> Any:
    """The group of a run."""
    RUNS[0] += 1
    return GROUPS[name]


def _gathered(x: torch.Tensor, group: Any) -> torch.Tensor:
    made = x.new_empty(group.size() * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(made, x.contiguous(), group=group)
    return made


@torch.library.custom_op("engine::total", mutates_args=())
def _total(x: torch.Tensor, group_name: str) -> torch.Tensor:
    made = x.clone()
    dist.all_reduce(made, group=_group(group_name))
    return made


@_total.register_fake
def _(x: torch.Tensor, group_name: str) -> torch.Tensor:
    return torch.empty_like(x)


def _keep_group(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.group_name = inputs[1]


_total.register_autograd(lambda ctx, grad: (_total(grad, ctx.group_name), None), setup_context=_keep_group)


@torch.library.custom_op("engine::total_", mutates_args=("x",))
def _total_in_place(x: torch.Tensor, group_name: str) -> None:
    dist.all_reduce(x, group=_group(group_name))


@torch.library.custom_op("engine::gather_into", mutates_args=("out",))
def _gather_into(out: torch.Tensor, x: torch.Tensor, group_name: str) -> None:
    out.copy_(_gathered(x, _group(group_name)))


@torch.library.custom_op("engine::gather_pieces", mutates_args=())
def _gather_pieces(x: torch.Tensor, group_name: str) -> list[torch.Tensor]:
    group = _group(group_name)
    return [one.clone() for one in _gathered(x, group).chunk(group.size())]


@_gather_pieces.register_fake
def _(x: torch.Tensor, group_name: str) -> list[torch.Tensor]:
    return [torch.empty_like(x) for _ in range(GROUPS[group_name].size())]


@torch.library.custom_op("engine::shares", mutates_args=())
def _shares(x: torch.Tensor, dim: int, sizes: list[int], group_name: str) -> torch.Tensor:
    """Has what the process group need not know: a dimension and a list."""
    rows = torch.cat(torch.split(x, sizes, dim))
    made = rows.new_empty(rows.shape[0] // len(sizes), *rows.shape[1:])
    dist.reduce_scatter_tensor(made, rows, group=_group(group_name))
    return made


@_shares.register_fake
def _(x: torch.Tensor, dim: int, sizes: list[int], group_name: str) -> torch.Tensor:
    shape = list(x.shape)
    shape[dim] = sizes[0]
    return x.new_empty(shape)


def in_place(x: torch.Tensor, name: str) -> Any:
    h = x * 2
    _total_in_place(h, name)
    return torch.relu(h) + 1


def in_place_of_a_view(x: torch.Tensor, name: str) -> Any:
    """A row for each head."""
    h = x * 2
    _total_in_place(h.view(-1, WIDTH // 2), name)
    return _f.rms_norm(h, (WIDTH,))


def in_place_of_an_input(x: torch.Tensor, name: str) -> Any:
    h = x.clone()
    _total_in_place(h, name)
    h += 1
    _total_in_place(h, name)
    return h * 0.5


def of_a_part(x: torch.Tensor, name: str) -> Any:
    """What it writes is some rows of a tensor."""
    h = x * 2
    _total_in_place(h[1:3], name)
    return torch.relu(h)


def into(x: torch.Tensor, name: str) -> Any:
    made = x.new_empty(GROUPS[name].size() * x.shape[0], WIDTH)
    _gather_into(made, x, name)
    return torch.relu(made)


def pieces(x: torch.Tensor, name: str) -> Any:
    return torch.cat([torch.relu(one * 3) for one in _gather_pieces(x, name)])


def one_piece(x: torch.Tensor, name: str) -> Any:
    """Nothing is fused, and the pieces are still those of the operation."""
    first, *_ = _gather_pieces(x, name)
    return first @ first.t()


def shares(x: torch.Tensor, name: str) -> Any:
    size = GROUPS[name].size()
    return torch.tanh(_shares(x, 1, [WIDTH // size] * size, name))


def norm(x: torch.Tensor, name: str) -> Any:
    h = _total(x * 1.5, name) + x
    return _f.rms_norm(h, (WIDTH,)), h


def sums(x: torch.Tensor, name: str) -> Any:
    """Several become one."""
    return torch.relu(_total(x, name) + _total(x * 2, name) + 1)


def twice(x: torch.Tensor, name: str) -> Any:
    """Of one tensor, where ranks may have one for both."""
    return _total(x, name) * 2, _total(x, name) + 1


def beside_torch(x: torch.Tensor, name: str) -> Any:
    """Torch's own collectives before and after."""
    h: Any = torch.relu(funcol.all_reduce(x, "sum", dist.group.WORLD))
    h = _total(h, name) * 0.25
    made: Any = funcol.all_reduce(h, "sum", dist.group.WORLD) - 1
    return made


#: Each, and whether a kernel can run in its place.
ENGINE: dict[str, tuple[Callable[..., Any], bool]] = {
    one.__name__: (one, one not in (of_a_part, one_piece))
    for one in (
        *(in_place, in_place_of_a_view, in_place_of_an_input, of_a_part, into, pieces, one_piece, shares),
        *(norm, sums, twice, beside_torch),
    )
}
_REGISTERED = {
    "engine::total": "all_reduce",
    "engine::total_": "all_reduce",
    "engine::gather_into": "all_gather",
    "engine::gather_pieces": "all_gather",
    "engine::shares": "reduce_scatter",
}


def _register(names: Any = _REGISTERED) -> None:
    foreign_collectives._meanings.clear()
    for name in names:
        foreign_collectives.register_collective(name, _REGISTERED[name], groups=GROUPS)


def _make_groups(rank: int, size: int, of: str) -> Any:
    """The group that the operations are registered for, and the name that they know it by."""
    GROUPS.clear()
    halves = [dist.new_group(list(range(begin, begin + 2))) for begin in range(0, size, 2)]
    mine = {"world": dist.group.WORLD, "half": halves[rank // 2], "own": dist.new_group()}[of]
    GROUPS[of] = mine
    return dist.new_group() if of == "own" else mine


def _as_registered(name: str, group: Any) -> None:
    """Registers a group in place of that in which the operation runs."""
    for target, meaning in list(foreign_collectives._meanings.items()):
        foreign_collectives._meanings[target] = dataclasses.replace(meaning, groups={name: group})


@contextlib.contextmanager
def _registered(rank: int, size: int, of: str, names: Any = _REGISTERED) -> Iterator[None]:
    """Operations for a group that they know as `of`."""
    group = _make_groups(rank, size, of)
    _register(names)
    _as_registered(of, group)
    try:
        yield
    finally:
        foreign_collectives._meanings.clear()


def _run(function: Callable[..., Any], name: str, rank: int, compiles: bool = True) -> list[int]:
    """Compares a function, compiled, with itself in each call. How often operations ran in each."""
    compiled = _compiled(function, leaves=True) if compiles else function
    ran = []
    for turn in range(CALLS):
        x = _tensor(rank, ROWS, WIDTH, dtype=torch.float32, seed=turn)
        before = RUNS[0]
        got = compiled(x.clone(), name)
        ran.append(RUNS[0] - before)
        _compare(function(x.clone(), name), got, 2e-5)
    return ran


def engine(rank: int, size: int, names: list[str], of: str) -> dict[str, list[int]]:
    """Functions of operations that all ranks have registered."""
    with _registered(rank, size, of):
        return {name: _run(ENGINE[name][0], of, rank) for name in names}


def _in_order(rank: int) -> list[str]:
    """Ranks know the same operations, in different orders."""
    return list(_REGISTERED)[:: -1 if rank else 1]


def _one_each(rank: int) -> list[str]:
    return [list(_REGISTERED)[rank % 2]]


#: What a rank registers, by its number; whether kernels run in the place of engine::total.
REGISTRATIONS: dict[str, tuple[Callable[[int], Any], bool]] = {
    "same": (lambda rank: _REGISTERED, True),
    "other order": (_in_order, True),
    "first rank alone": (lambda rank: [] if rank else _REGISTERED, False),
    "last rank not": (lambda rank: [] if rank == dist.get_world_size() - 1 else _REGISTERED, False),
    "one each": (_one_each, False),
    "more on one": (lambda rank: _REGISTERED if rank else ["engine::total"], True),
}


def _another(x: torch.Tensor, name: str, rank: int) -> Any:
    """One rank has nothing to fuse."""
    h = _total(x, name)
    return h @ h.t() if rank == 0 else (h * 2) @ h.t()


def differ(rank: int, size: int, how: str, of: str) -> dict[str, list[int]]:
    """Ranks that register different operations."""
    with _registered(rank, size, of, REGISTRATIONS[how][0](rank)):
        ran = {name: _run(ENGINE[name][0], of, rank) for name in ("norm", "sums", "beside_torch", "in_place")}
        ran["another"] = _run(lambda x, name: _another(x, name, rank), of, rank)
        ran["norm again"] = _run(norm, of, rank)
        return ran


def change(rank: int, size: int, of: str) -> list[int]:
    """After ranks have agreed, one has other graphs now and then, and then none are compiled on it."""

    def function(x: torch.Tensor, name: str, has_more: bool) -> Any:
        h = _total(x, name)
        return h @ h.t() if has_more else h * 2

    compiled, ran = _compiled(function, leaves=True), []
    with _registered(rank, size, of):
        for turn in range(8):
            x = _tensor(rank, ROWS, WIDTH, dtype=torch.float32, seed=turn)
            before, has_more = RUNS[0], rank == 0 and turn % 3 == 2
            got = compiled(x, of, has_more)
            ran.append(RUNS[0] - before)
            _compare(function(x, of, has_more), got, 2e-5)
        return ran


def multiplied(rank: int, size: int, of: str, how: str) -> tuple[list[tuple[str, ...]], list[int]]:
    """Matmuls before operations, with `how` ranks register: what is fused, and how often operations ran."""
    w = _tensor(0, WIDTH, WIDTH, dtype=torch.float32, seed=9)

    def function(x: torch.Tensor, name: str) -> Any:
        h = _total((x @ w).view(2, -1, WIDTH), name).view(x.shape)
        return torch.tanh(_shares(h @ w, 0, [ROWS // size] * size, name)), h

    with _registered(rank, size, of, REGISTRATIONS[how][0](rank)), _always():
        ran = _run(function, of, rank)
        return [one.fused for one in fusing.fusions()], ran


def overlapped(rank: int, size: int, how: str) -> tuple[list[tuple[str, ...]], list[int]]:
    """A matmul of GPUs that is large enough to be overlapped with the operation behind it."""
    rows, terms, columns = 4096, 8192 // size, 8192
    w = _tensor(rank, terms, columns, dtype=torch.bfloat16, seed=9) / 64

    def function(x: torch.Tensor) -> Any:
        return torch.relu(_total(x @ w, "own"))

    with _registered(rank, size, "own", REGISTRATIONS[how][0](rank)):
        compiled, ran = _compiled(function, leaves=True), []
        for turn in range(CALLS):
            x = _tensor(rank, rows, terms, dtype=torch.bfloat16, seed=turn)
            before = RUNS[0]
            got = compiled(x)
            ran.append(RUNS[0] - before)
            _compare(function(x), got, 2e-2)
        return [one.fused for one in fusing.fusions()], ran


def not_compiled(rank: int, size: int, of: str) -> list[int]:
    """One rank runs the operations as they are."""
    with _registered(rank, size, of):
        return _run(norm, of, rank, compiles=rank != 0)


def gradients(rank: int, size: int, of: str) -> tuple[list[str], list[str]]:
    """An operation with a derivative, which is a collective as well. What is fused in each direction."""

    def function(x: torch.Tensor) -> Any:
        normed = _f.rms_norm(_total(torch.tanh(x), of) + x, (WIDTH,))
        return (normed * torch.arange(WIDTH, device=x.device)).square().sum()

    def step(run: Callable[..., Any], x: torch.Tensor) -> tuple[torch.Tensor, Any]:
        given = x.clone().requires_grad_()
        loss = run(given)
        loss.backward()
        return loss.detach(), given.grad

    compiled = _compiled(function, leaves=True)
    with _registered(rank, size, of):
        for turn in range(4):
            x = _tensor(rank, ROWS, WIDTH, dtype=torch.float32, seed=turn)
            _compare(step(function, x), step(compiled, x), 1e-4)
        said = {one.graph.split(", ")[1]: one for one in fusing.fusions()}
        return list(said["forward"].fused), list(said["backward"].fused + said["backward"].produced)


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be taken
# ---------------------------------------------------------------------------------------------------------------------


@torch.library.custom_op("engine::total_and_more", mutates_args=())
def _total_and_more(
    x: torch.Tensor, more: torch.Tensor | None, dtype: torch.dtype | None, group_name: str
) -> torch.Tensor:
    made = x + (0 if more is None else more)
    dist.all_reduce(made, group=_group(group_name))
    return made


@_total_and_more.register_fake
def _(x: torch.Tensor, more: torch.Tensor | None, dtype: torch.dtype | None, group_name: str) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("engine::totals", mutates_args=())
def _totals(xs: list[torch.Tensor], group_name: str) -> list[torch.Tensor]:
    return [one.clone() for one in xs]


@torch.library.custom_op("engine::total_and_return", mutates_args=("x",))
def _total_and_return(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op("engine::nothing_to_read", mutates_args=())
def _nothing_to_read(size: int) -> torch.Tensor:
    return torch.ones(size)


#: Programs, and what the report says of their operations.
LEFT: dict[str, tuple[Callable[..., Any], str, str]] = {
    "other tensor": (lambda x: _total_and_more(x, x, None, "world") * 2, "all_reduce", "reads other tensors"),
    "dtype": (lambda x: _total_and_more(x, None, torch.float32, "world") * 2, "all_reduce", "its argument dtype is"),
    "other collective": (lambda x: _total(x, "world") * 2, "all_gather", "is not that of an all_gather of [4, 32]"),
    "unknown group": (lambda x: _total(x, "world") * 2, "all_reduce", "there is no process group 'world'"),
    "part": (lambda x: of_a_part(x, "world"), "all_reduce", "writes into a part of a tensor"),
    "integers": (lambda x: _total(x.long(), "world") * 2, "all_reduce", "it is of torch.int64"),
    "matmul": (lambda x: _gather(x, 0) @ x.t(), "all_gather", "takes torch's all_gather, not checks::tp_all_gather"),
}
_OPERATIONS = {"matmul": _gather, "other tensor": _total_and_more, "dtype": _total_and_more, "part": _total_in_place}
#: Operations that are refused, and what is said.
REFUSED: dict[str, tuple[Any, str]] = {
    "lists": (_totals, "takes lists of tensors"),
    "both": (_total_and_return, "writes into its arguments and returns tensors"),
    "no tensor": (_nothing_to_read, "reads no tensor"),
    "two results": (torch.ops.aten.max.dim, "returns Tensor, Tensor"),
}


def left(rank: int, size: int, name: str) -> list[str]:
    """Operations that are registered and stay: why, by the report."""
    GROUPS.clear()
    GROUPS["world"] = dist.group.WORLD
    function, op, _ = LEFT[name]
    groups = {"unknown group": {"tp": dist.group.WORLD}, "matmul": None}.get(name, GROUPS)
    foreign_collectives.register_collective(_OPERATIONS.get(name, _total), op, groups=groups)
    try:
        compiled = _compiled(function, leaves=True)
        for turn in range(2):
            x = _tensor(rank, ROWS, WIDTH, dtype=torch.float32, seed=turn)
            _compare(function(x), compiled(x), 2e-5)
        assert not fusing.fusions()[0].fused
        return list(fusing.fusions()[0].because)
    finally:
        foreign_collectives._meanings.clear()


def unknown_sizes(rank: int, size: int) -> tuple[tuple[str, ...], list[int]]:
    """Rows of a number that is not known when it is compiled."""
    _make_groups(rank, size, "world")
    _register()
    try:
        compiled, ran = _compiled(norm, leaves=True), []
        for rows in (4, 7, 3, 9, 0, 5):
            x = _tensor(rank, rows, WIDTH, dtype=torch.float32)
            torch._dynamo.maybe_mark_dynamic(x, 0)  # type: ignore[no-untyped-call, unused-ignore]
            before = RUNS[0]
            got = compiled(x, "world")
            ran.append(RUNS[0] - before)
            _compare(norm(x, "world"), got, 2e-5)
        return fusing.fusions()[0].fused, ran
    finally:
        foreign_collectives._meanings.clear()
