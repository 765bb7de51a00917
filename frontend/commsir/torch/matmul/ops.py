"""Matmuls beside collectives as ops: the overlapped way where the model says that it is faster, else one after the
other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import torch

from commsir import _native
from commsir.torch import ops
from commsir.torch.agreement import digest_of
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.matmul import model, overlapped

__all__ = ["all_gather_matmul", "matmul_all_reduce", "matmul_reduce_scatter"]

_CUDA: Any = torch.cuda
_OPS: Any = torch.ops
_LIBRARY: Any = torch.library
_check: Any = torch._check
#: Types that are multiplied with scales alone.
_SCALED = (torch.float8_e4m3fn, torch.float8_e5m2)

_implementations = _LIBRARY.Library("commsir", "FRAGMENT")
_implementations.define(
    "all_gather_matmul(Tensor shard, Tensor[] weights, Tensor?[] biases, bool gathered, str group_name, str site='')"
    " -> Tensor[]"
)
for _name in ("matmul_reduce_scatter", "matmul_all_reduce"):
    _implementations.define(f"{_name}(Tensor a, Tensor b, str group_name, str site='') -> Tensor")


# ---------------------------------------------------------------------------------------------------------------------
# What a call is
# ---------------------------------------------------------------------------------------------------------------------


def _check_product(a: torch.Tensor, b: torch.Tensor) -> None:
    _check(
        a.dim() >= 2 and b.dim() == 2 and a.shape[-1] == b.shape[0],
        lambda: (
            f"commsir: a matmul of {tuple(a.shape)} by {tuple(b.shape)}: the first has two dimensions or more, the "
            "second two, and the last of the first is the first of the second"
        ),
    )
    _check(
        a.dtype == b.dtype and a.device == b.device,
        lambda: (
            f"commsir: a matmul of {a.dtype} on {a.device} by {b.dtype} on {b.device}; give tensors of one type on one "
            "device"
        ),
    )

    _check(
        a.dtype not in _SCALED,
        lambda: (
            f"commsir: a matmul of {a.dtype} has scales, which this op does not take; call torch._scaled_mm and the "
            "collective one by one"
        ),
    )


def _check_biases(weights: list[torch.Tensor], biases: list[torch.Tensor | None]) -> None:
    _check(
        len(weights) == len(biases),
        lambda: f"commsir: {len(weights)} weights have {len(biases)} biases; give one for each weight, or None",
    )
    for weight, bias in zip(weights, biases, strict=True):
        _check(
            bias is None or bias.shape == weight.shape[1:],
            lambda: f"commsir: a bias of {tuple(bias.shape)} for a weight of {tuple(weight.shape)}; give one a column",  # type: ignore[union-attr]  # noqa: B023
        )


def _check_shares(a: torch.Tensor, ranks: int) -> None:
    _check(a.shape[0] % ranks == 0, lambda: f"commsir: {a.shape[0]} rows cannot be shared out to {ranks} ranks")


def _ranks(name: str) -> int:
    return ops._size(name.encode())


def _flat(a: torch.Tensor) -> torch.Tensor:
    """As rows, which the overlapped ways take."""
    return a.contiguous().view(prod(a.shape[:-1]), a.shape[-1])


# ---------------------------------------------------------------------------------------------------------------------
# Which way
# ---------------------------------------------------------------------------------------------------------------------

#: Places of compiled graphs at which all ranks want the overlapped way, by process group.
_agreed: set[tuple[str, int, str]] = set()


def _takes_overlapped(
    site: str, name: str, device: torch.device, what: tuple[Any, ...], collective: Callable[[], Any]
) -> tuple[bool, Any]:
    """Whether this call is to be overlapped; else the result of the collective of this call, if it has run already."""
    if not site or (name, int(device.index), site) in _agreed:
        return True, None
    agreement = ops._agreement(name, int(device.index))
    if _CUDA.is_current_stream_capturing() or not agreement.is_open(site):
        return False, None

    def ended() -> Any:
        made = collective()
        _CUDA.current_stream(device).synchronize()
        return made

    wanted = digest_of(site, *what, _native.version())
    made, all_want = agreement.attempt(site, wanted, ended)
    if all_want:
        _agreed.add((name, int(device.index), site))
    return False, made


def _forget(name: str | None) -> None:
    _agreed.difference_update([key for key in _agreed if name in (None, key[0])])


when_gone(_forget)


def _collective(op: str, input: torch.Tensor, name: str, site: str) -> torch.Tensor:  # noqa: A002
    """At a place of a compiled graph the process group's own, which other ranks may have left as it is."""
    if site:
        return ops._collective(op, input, "" if op == "all_gather" else "sum", name)
    given = input.contiguous()
    if op == "all_gather":
        return cast(torch.Tensor, _OPS.commsir.all_gather(given, name))
    return cast(torch.Tensor, getattr(_OPS.commsir, op)(given, "sum", name))


def _space(name: str, device: torch.device, size: int) -> overlapped.Workspace | None:
    """With so much symmetric memory; None: a stream is captured, and none was made before."""
    space = overlapped.workspace(name, device)
    return space if space and space.reserve(size) else None


# ---------------------------------------------------------------------------------------------------------------------
# The ops
# ---------------------------------------------------------------------------------------------------------------------


def _all_gather_matmul(
    shard: torch.Tensor,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor | None],
    gathered: bool,
    group_name: str,
    site: str = "",
) -> list[torch.Tensor]:
    for weight in weights:
        _check_product(shard, weight)
    _check_biases(weights, biases)
    ranks, rows, k = _ranks(group_name), prod(shard.shape[:-1]), shard.shape[-1]
    choice = model.choose("all_gather", ranks, rows, sum(one.shape[1] for one in weights), k, shard.dtype, shard.device)
    shape = [ranks * shard.shape[0], *shard.shape[1:-1]]
    arrived = None
    if choice.blocks:
        what = (tuple(shard.shape), [tuple(one.shape) for one in weights], shard.dtype, gathered)
        takes, arrived = _takes_overlapped(
            site, group_name, shard.device, what, lambda: _collective("all_gather", shard, group_name, site)
        )
        if takes and (space := _space(group_name, shard.device, ranks * shard.nbytes)):
            whole = shard.new_empty([*shape, k]) if gathered else None
            outs = overlapped.all_gather_matmul(space, _flat(shard), weights, biases, whole)
            return [*(out.view(*shape, -1) for out in outs), *([] if whole is None else [whole])]
    if arrived is None:
        arrived = _collective("all_gather", shard, group_name, site)
    flat = _flat(arrived)
    outs = [
        torch.mm(flat, weight) if bias is None else torch.addmm(bias, flat, weight)
        for weight, bias in zip(weights, biases, strict=True)
    ]
    return [*(out.view(*shape, out.shape[-1]) for out in outs), *([arrived] if gathered else [])]


def _fake_all_gather_matmul(
    shard: torch.Tensor,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor | None],
    gathered: bool,
    group_name: str,
    site: str = "",
) -> list[torch.Tensor]:
    for weight in weights:
        _check_product(shard, weight)
    _check_biases(weights, biases)
    shape = [_ranks(group_name) * shard.shape[0], *shard.shape[1:-1]]
    widths = [*(weight.shape[1] for weight in weights), *([shard.shape[-1]] if gathered else [])]
    return [shard.new_empty([*shape, width]) for width in widths]


def _space_of_products(op: str, ranks: int, a: torch.Tensor, b: torch.Tensor) -> int:
    """Bytes of symmetric memory."""
    rows = a.numel() // a.shape[-1]
    whole = rows * b.shape[1] * a.dtype.itemsize
    return whole if op == "all_reduce" else whole // ranks * (ranks - 1)


def _product(op: str, a: torch.Tensor, b: torch.Tensor, name: str, site: str) -> torch.Tensor:
    _check_product(a, b)
    ranks, rows, (k, n) = _ranks(name), prod(a.shape[:-1]), b.shape
    shape = [*a.shape[:-1], n]
    if op == "reduce_scatter":
        _check_shares(a, ranks)
        shape[0] //= ranks
    choice = model.choose(op, ranks, rows, n, k, a.dtype, a.device)
    if choice.blocks:
        what = (op, tuple(a.shape), tuple(b.shape), a.dtype)
        takes, made = _takes_overlapped(
            site, name, a.device, what, lambda: _collective(op, (_flat(a) @ b).view(*a.shape[:-1], n), name, site)
        )
        if made is not None:
            return cast(torch.Tensor, made)
        if takes and (space := _space(name, a.device, _space_of_products(op, ranks, a, b))):
            way = overlapped.matmul_reduce_scatter if op == "reduce_scatter" else overlapped.matmul_all_reduce
            return way(space, _flat(a), b, choice.blocks).view(shape)
    return _collective(op, (_flat(a) @ b).view(*a.shape[:-1], n), name, site)


def _matmul_reduce_scatter(a: torch.Tensor, b: torch.Tensor, group_name: str, site: str = "") -> torch.Tensor:
    return _product("reduce_scatter", a, b, group_name, site)


def _matmul_all_reduce(a: torch.Tensor, b: torch.Tensor, group_name: str, site: str = "") -> torch.Tensor:
    return _product("all_reduce", a, b, group_name, site)


def _fake_matmul_reduce_scatter(a: torch.Tensor, b: torch.Tensor, group_name: str, site: str = "") -> torch.Tensor:
    _check_product(a, b)
    ranks = _ranks(group_name)
    _check_shares(a, ranks)
    return a.new_empty([a.shape[0] // ranks, *a.shape[1:-1], b.shape[1]])


def _fake_matmul_all_reduce(a: torch.Tensor, b: torch.Tensor, group_name: str, site: str = "") -> torch.Tensor:
    _check_product(a, b)
    return a.new_empty([*a.shape[:-1], b.shape[1]])


_WAYS = {
    "all_gather_matmul": (_all_gather_matmul, _fake_all_gather_matmul),
    "matmul_reduce_scatter": (_matmul_reduce_scatter, _fake_matmul_reduce_scatter),
    "matmul_all_reduce": (_matmul_all_reduce, _fake_matmul_all_reduce),
}
for _name, (_way, _fake) in _WAYS.items():
    for _key in ("CPU", "CUDA"):
        _implementations.impl(_name, _way, _key)
    _LIBRARY.register_fake(f"commsir::{_name}", _fake)
    ops._refuse_gradients(
        _name,
        f"torch.ops.commsir.{_name} has no derivative, but an argument requires grad: call it under torch.no_grad(), or"
        " write the collective and the matmul one by one, which torch.compile puts together",
    )


# ---------------------------------------------------------------------------------------------------------------------
# By group rather than by name
# ---------------------------------------------------------------------------------------------------------------------


def all_gather_matmul(
    shard: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor | None] | None = None,
    *,
    group: Any = None,
) -> list[torch.Tensor]:
    """All ranks' `shard`, one after the other along dimension 0, times each of `weights`, plus its bias.

    `shard` is [rows, …, k], a weight [k, n], a bias [n]; the results are [ranks x rows, …, n], of the type of `shard`.
    Shards are multiplied while others are on their way where the model (docs/Torch.md) says that this is faster.
    """
    given = [None] * len(weights) if biases is None else list(biases)
    made = _OPS.commsir.all_gather_matmul(shard, list(weights), given, False, ops._named(group))
    return cast("list[torch.Tensor]", list(made))


def matmul_reduce_scatter(a: torch.Tensor, b: torch.Tensor, *, group: Any = None) -> torch.Tensor:
    """This rank's part, along dimension 0, of the sum of all ranks' `a @ b`.

    `a` is [rows, …, k] and `b` [k, n]; the result is [rows / ranks, …, n]. Parts are summed in the type of `a`, each
    matmul in float32.
    """
    return cast(torch.Tensor, _OPS.commsir.matmul_reduce_scatter(a, b, ops._named(group)))


def matmul_all_reduce(a: torch.Tensor, b: torch.Tensor, *, group: Any = None) -> torch.Tensor:
    """The sum of all ranks' `a @ b`, on every rank with the same bits. `a` is [rows, …, k] and `b` [k, n]."""
    return cast(torch.Tensor, _OPS.commsir.matmul_all_reduce(a, b, ops._named(group)))
