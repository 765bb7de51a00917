"""Matmuls next to collectives as ops: the overlapped way where the model says that it is faster, else one after the
other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, cast

import torch

from commsir import _native, errors
from commsir.torch import capi, op_declarations, op_groups, ops, sites
from commsir.torch.agreement import digest_of
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.foreign_calls import ForeignCall
from commsir.torch.matmul import model, overlapped
from commsir.torch.matmul.factor import BLOCK, FP8, Factor, padded, scaled_rows

__all__ = ["all_gather_matmul", "matmul_all_reduce", "matmul_reduce_scatter"]

_CUDA: Any = torch.cuda
_OPS: Any = torch.ops
_LIBRARY: Any = torch.library
_check: Any = torch._check
_DisableAutocast: Any = torch._C._DisableAutocast
_Tensor = torch.Tensor

_implementations = _LIBRARY.Library("commsir", "FRAGMENT")
#: Types that a matmul of fp8, or of groups of rows, may round to.
_RESULTS = (torch.float16, torch.bfloat16, torch.float32)
#: What a factor has in addition to its weight and bias (factor.py). `scales` has one for each weight.
_OF_FACTORS = (
    "Tensor? ends=None, int group_rows=0, Tensor? row_scale=None, {}=None, ScalarType? dtype=None, bool fast=False"
)
for _name in ("all_gather_matmul", "all_to_all_matmul"):
    _implementations.define(
        f"{_name}(Tensor shard, Tensor[] weights, Tensor?[] biases, bool gathered, str group_name, str site='',"
        f" {_OF_FACTORS.format('Tensor[]? scales')}) -> Tensor[]"
    )
for _name in ("matmul_reduce_scatter", "matmul_all_reduce", "matmul_all_to_all"):
    _implementations.define(
        f"{_name}(Tensor a, Tensor b, str group_name, str site='', {_OF_FACTORS.format('Tensor? scale')}) -> Tensor"
    )


# ---------------------------------------------------------------------------------------------------------------------
# What a call is
# ---------------------------------------------------------------------------------------------------------------------


def _check_product(a: torch.Tensor, factor: Factor, rows: int, own: int) -> None:
    """`rows` are those of the whole product; `own` those of this rank, of which an op gathers scales."""
    _check_shapes(a, factor)
    _check_operands(a, factor)
    if factor.row_scale is not None:
        _check_scales(a, factor, rows, own)


def _check_shapes(a: torch.Tensor, factor: Factor) -> None:
    b: Any = factor.weight
    _check(
        isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor),
        lambda: f"commsir: a matmul of {type(a).__name__} by {type(b).__name__}; give tensors",
    )
    has_groups = factor.ends is not None or factor.group_rows != 0
    _check(
        a.dim() >= 2 and b.dim() == (3 if has_groups else 2) and a.shape[-1] == b.shape[-2],
        lambda: (
            f"commsir: a matmul of {tuple(a.shape)} by {tuple(b.shape)}: the first has two dimensions or more, the "
            "second two, and the last of the first is the first of the second; with groups of rows, the second has a "
            "matrix for each group"
        ),
    )
    if has_groups:
        _check_groups(factor)


def _check_groups(factor: Factor) -> None:
    ends, size, count = factor.ends, factor.group_rows, factor.groups
    _check(
        factor.bias is None or ends is not None,
        lambda: "commsir: a matmul of groups of rows with a bias; add it to the result",
    )
    if ends is None:
        _check(
            size > 0 and count > 0,
            lambda: f"commsir: {count} groups of {size} rows; give one or more of one or more rows",
        )
        return
    _check(
        size == 0 and ends.dtype is torch.int32 and tuple(ends.shape) == (count,),
        lambda: (
            f"commsir: groups of rows that end at {ends.dtype}{list(ends.shape)}, and group_rows {size}, for {count} "
            f"matrices; give the ends as int32[{count}], and no group_rows"
        ),
    )


def _check_operands(a: torch.Tensor, factor: Factor) -> None:
    """Their types and devices."""
    b, is_fp8 = factor.weight, a.dtype in FP8
    for one in (b, factor.bias, factor.ends, factor.row_scale, factor.scale):
        _check(
            one is None or one.device == a.device,
            lambda: f"commsir: a matmul of a tensor on {a.device} with one on {one.device}; move them to one device",  # type: ignore[union-attr]  # noqa: B023
        )
    _check(
        a.dtype == b.dtype or (is_fp8 and b.dtype in FP8),
        lambda: f"commsir: a matmul of {a.dtype} by {b.dtype}; give tensors of one type",
    )
    _check(
        is_fp8 == (factor.row_scale is not None) == (factor.scale is not None),
        lambda: (
            f"commsir: a matmul of {a.dtype} has {'scales' if is_fp8 else 'no scales'}; give "
            f"{'row_scale and scale' if is_fp8 else 'neither row_scale nor scale'}"
        ),
    )
    is_cast = is_fp8 or factor.ends is not None
    _check(
        factor.dtype in ((None, a.dtype, *_RESULTS) if is_cast else (None, a.dtype)),
        lambda: (
            f"commsir: a matmul of {a.dtype} with a result of {factor.dtype}; "
            f"{'a float16, bfloat16 or float32 one' if is_cast else f'one of {a.dtype}'} is made, which can be cast"
        ),
    )


def _check_scales(a: torch.Tensor, factor: Factor, rows: int, own: int) -> None:
    row_scale, scale = factor.row_scale, factor.scale
    assert row_scale is not None and scale is not None
    _check(
        row_scale.dtype is scale.dtype is torch.float32,
        lambda: f"commsir: scales of {row_scale.dtype} and {scale.dtype}; give float32",
    )
    _check(
        factor.group_rows == 0,
        lambda: "commsir: a matmul of fp8 by groups of rows; give where they end (`ends`), and no group_rows",
    )
    count, n, k = scaled_rows(row_scale), factor.columns, a.shape[-1]
    _check(
        count in (1, rows, own),
        lambda: f"commsir: {count} scales of rows for a matmul of {rows} rows; give one, or one for each row",
    )
    if factor.weight.dim() > 2:
        return
    blocks, wide = -(-k // BLOCK), -(-n // BLOCK)
    given = tuple(row_scale.shape)
    of_one = row_scale.numel() == 1 or given in ((rows, 1), (own, 1))
    is_whole = of_one and tuple(scale.shape) in ((), (1,), (1, 1), (1, n))
    is_blocks = given in ((rows, blocks), (own, blocks)) and tuple(scale.shape) in (
        (blocks, n),
        (blocks, wide),
        (padded(blocks), wide),
    )
    _check(
        is_whole or is_blocks,
        lambda: (
            f"commsir: scales of {tuple(row_scale.shape)} and {tuple(scale.shape)} for a matmul of {rows} rows by "
            f"{tuple(factor.weight.shape)}; give one for each side, ({rows}, 1) and (1, {n}), or for blocks of {BLOCK} "
            f"terms ({rows}, {blocks}) and ({blocks}, {n}) or ({blocks}, {wide})"
        ),
    )


def _check_counts(weights: Sequence[Any], biases: Sequence[Any], scales: Sequence[Any] | None) -> None:
    count = len(weights)
    _check(count > 0, lambda: "commsir: a matmul without weights; give one or more")
    for what, given in (("biases", biases), ("scales", scales)):
        _check(
            given is None or len(given) == count,
            lambda: f"commsir: {count} weights have {len(given)} {what}; give one for each weight, or None",  # type: ignore[arg-type]  # noqa: B023
        )


def _check_biases(factors: list[Factor]) -> None:
    for factor in factors:
        bias, weight = factor.bias, factor.weight
        _check(
            bias is None or bias.shape == weight.shape[1:],
            lambda: f"commsir: a bias of {tuple(bias.shape)} for a weight of {tuple(weight.shape)}; give one a column",  # type: ignore[union-attr]  # noqa: B023
        )
        _check(
            bias is None or factor.row_scale is not None or bias.dtype == weight.dtype,
            lambda: f"commsir: a bias of {bias.dtype} for a weight of {weight.dtype}; give tensors of one type",  # type: ignore[union-attr]  # noqa: B023
        )


def _check_shares(a: torch.Tensor, ranks: int) -> None:
    _check(a.shape[0] % ranks == 0, lambda: f"commsir: {a.shape[0]} rows cannot be shared out to {ranks} ranks")


def _ranks(name: str) -> int:
    return op_groups.size_of(name.encode())


def _flat(a: torch.Tensor) -> torch.Tensor:
    """As rows, which the overlapped ways take."""
    return a.contiguous().view(prod(a.shape[:-1]), a.shape[-1])


# ---------------------------------------------------------------------------------------------------------------------
# Which way
# ---------------------------------------------------------------------------------------------------------------------

#: Places of compiled graphs at which all ranks want the overlapped way, by process group.
_agreed: set[tuple[str, int, str]] = set()
#: Whether ranks were alike in the first eager call, on a GPU of a process group, that sends this or is this.
_alike: dict[tuple[str, int, Any], bool] = {}


def _are_alike(name: str, device: torch.device, key: Any, text: str, otherwise: str = "") -> bool:
    """Whether all ranks pass the same text in the first call with that key. Collective then, but not in a capture.

    Raises an error if they pass another text `otherwise`, too.
    """
    place = (name, int(device.index), key)
    if place not in _alike:
        if _CUDA.is_current_stream_capturing():
            return True
        group, stream = op_groups.group_of(*place[:2]), _CUDA.current_stream(device).cuda_stream
        try:
            group.compare(text, stream)
            _alike[place] = True
        except capi.CommsIRError as error:
            if not isinstance(error.__cause__, errors.DisagreementError):
                raise
            if otherwise:
                group.compare(otherwise, stream)
            _alike[place] = False
    return _alike[place]


def _may_overlap(name: str, a: torch.Tensor, sent: str, what: tuple[Any, ...]) -> bool:
    """Compares an eager call among the ranks. Raises an error if they differ in what they send, whose shape its number
    of elements does not show. False: they differ in the rest, so that one may overlap what another does not.

    On the CPU, where nothing overlaps, ranks compare each call; on GPUs the first one that sends this.
    """
    if _ranks(name) < 2:
        return True
    if a.device.type == "cpu":
        op_groups.group_of(name).compare(sent)
        return False
    return _are_alike(name, a.device, sent, f"{sent}, with {what}", otherwise=sent)


def _takes_overlapped(
    site: str, name: str, device: torch.device, what: tuple[Any, ...], collective: Callable[[], Any]
) -> tuple[bool, Any]:
    """Whether this call is to be overlapped; else the result of the collective of this call, if it has run already."""
    if not site:
        return _are_alike(name, device, what, str(what)), None
    if (name, int(device.index), site) in _agreed:
        return True, None
    agreement = sites.agreement_of(name, int(device.index))
    if _CUDA.is_current_stream_capturing() or not agreement.is_open(site):
        return False, None

    def ended() -> Any:
        made = collective()
        _CUDA.current_stream(device).synchronize()
        return made

    wanted = digest_of(site, *what, _native.version())
    made, all_want = agreement.attempt(site, wanted, ended, is_counted=ForeignCall.of(site) is None)
    if all_want:
        _agreed.add((name, int(device.index), site))
    return False, made


def _forget(name: str | None) -> None:
    _agreed.difference_update([key for key in _agreed if name in (None, key[0])])
    for place in [place for place in _alike if name in (None, place[0])]:
        del _alike[place]


when_gone(_forget)


def _collective(op: str, input: torch.Tensor, name: str, site: str) -> torch.Tensor:  # noqa: A002
    """At a place of a compiled graph the program's own, which other ranks may have left as it is."""
    moves = op in ("all_gather", "all_to_all")
    if site:
        return sites.run_collective(op, input, "" if moves else "sum", name, ForeignCall.of(site))
    given = input.contiguous()
    return cast(torch.Tensor, getattr(_OPS.commsir, op)(given, *(() if moves else ("sum",)), name))


def _space(name: str, device: torch.device, size: int) -> overlapped.Workspace | None:
    """With so much symmetric memory; None: a stream is captured, and none was made before."""
    space = overlapped.workspace(name, device)
    return space if space and space.reserve(size) else None


def _choose(op: str, ranks: int, rows: int, a: torch.Tensor, factors: Sequence[Factor]) -> model.Choice:
    """`rows` as `model.choose` takes them."""
    columns, first = sum(one.columns for one in factors), factors[0]
    groups = model.Groups(first.groups, first.group_rows)
    return model.choose(op, ranks, rows, columns, a.shape[-1], a.dtype, a.device, groups, first.result_type(a))


def _sent(op: str, a: torch.Tensor, columns: int, dtype: torch.dtype, has_scales: bool = False) -> str:
    """What has to be alike on all ranks for the collective to be right, in words."""
    scales = ", with a scale for each row" if has_scales else ""
    return f"{op} of {prod(a.shape[:-1])} x {columns} {str(dtype).removeprefix('torch.')}{scales}"


def _shown(a: torch.Tensor, factors: Sequence[Factor]) -> tuple[Any, ...]:
    """What all ranks have to want alike."""
    return tuple(a.shape), a.dtype, *((tuple(one.weight.shape), one.group_rows, one.dtype) for one in factors)


# ---------------------------------------------------------------------------------------------------------------------
# The ops
# ---------------------------------------------------------------------------------------------------------------------


def _factors(
    weights: list[_Tensor],
    biases: list[_Tensor | None],
    ends: _Tensor | None,
    group_rows: int,
    row_scale: _Tensor | None,
    scales: list[_Tensor] | None,
    dtype: torch.dtype | None,
    fast: bool,
) -> list[Factor]:
    _check_counts(weights, biases, scales)
    absent: list[_Tensor | None] = [None] * len(weights)
    given = zip(weights, biases, scales or absent, strict=True)
    return [Factor(weight, bias, ends, group_rows, row_scale, scale, dtype, fast) for weight, bias, scale in given]


def _is_of_shard(shard: _Tensor, factors: Sequence[Factor], ranks: int, site: str) -> bool:
    """Whether there are scales for each row of this rank, which are to be gathered.

    [1, 1] with a shard of one row is such a scale if weights have more than one. A compiled graph never has it.
    """
    row_scale = factors[0].row_scale
    if row_scale is None or ranks < 2:
        return False
    if row_scale.numel() == 1 and (site or row_scale.dim() < 2 or _have_one_scale(factors)):
        return False
    return scaled_rows(row_scale) == prod(shard.shape[:-1])


def _have_one_scale(factors: Sequence[Factor]) -> bool:
    return any(one.scale is not None and one.scale.numel() == 1 for one in factors)


def _with_scales(factors: Sequence[Factor], gathered: _Tensor) -> list[Factor]:
    return [replace(one, row_scale=gathered) for one in factors]


def _whole_shape(op: str, shard: _Tensor, ranks: int) -> list[int]:
    """Of the rows that arrive, except the last dimension."""
    return [shard.shape[0] * (ranks if op == "all_gather" else 1), *shard.shape[1:-1]]


def _checked_arrivals(op: str, shard: _Tensor, factors: list[Factor], ranks: int) -> list[int]:
    """The shape of what arrives, of a call that is right."""
    own = prod(shard.shape[:-1])
    for factor in factors:
        _check_product(shard, factor, own * ranks if op == "all_gather" else own, own)
    _check_biases(factors)
    if op == "all_to_all":
        _check_shares(shard, ranks)
    return _whole_shape(op, shard, ranks)


def _multiply_arrivals(
    op: str,
    shard: _Tensor,
    weights: list[_Tensor],
    biases: list[_Tensor | None],
    gathered: bool,
    group_name: str,
    site: str = "",
    ends: _Tensor | None = None,
    group_rows: int = 0,
    row_scale: _Tensor | None = None,
    scales: list[_Tensor] | None = None,
    dtype: torch.dtype | None = None,
    fast: bool = False,
) -> list[_Tensor]:
    factors = _factors(weights, biases, ends, group_rows, row_scale, scales, dtype, fast)
    ranks = _ranks(group_name)
    shape = _checked_arrivals(op, shard, factors, ranks)
    k = shard.shape[-1]
    asked = "all_to_all_before" if op == "all_to_all" else op
    choice = _choose(asked, ranks, prod(shape) // ranks, shard, factors)
    arrived = None
    own = row_scale if op == "all_gather" and _is_of_shard(shard, factors, ranks, site) else None
    what = (op, *_shown(shard, factors), gathered, own is not None)
    may_overlap = bool(site) or _may_overlap(
        group_name, shard, _sent(f"{op}_matmul", shard, k, shard.dtype, own is not None), what
    )

    def arrive() -> _Tensor:
        """The collectives of the program, in its order."""
        made = _collective(op, shard, group_name, site)
        if own is not None:
            factors[:] = _with_scales(factors, _collective("all_gather", own.contiguous(), group_name, site))
        return made

    if choice.blocks and may_overlap:
        takes, arrived = _takes_overlapped(site, group_name, shard.device, what, arrive)
        size = prod(shape) * k * shard.dtype.itemsize
        if takes and (space := _space(group_name, shard.device, size)):
            whole = shard.new_empty([*shape, k]) if gathered else None
            if own is not None:
                factors = _with_scales(factors, _collective("all_gather", own.contiguous(), group_name, site))
            way = overlapped.all_gather_matmul if op == "all_gather" else overlapped.all_to_all_matmul
            outs = way(space, _flat(shard), factors, whole)
            return [*(out.view(*shape, -1) for out in outs), *([] if whole is None else [whole])]
    if arrived is None:
        arrived = arrive()
    flat = _flat(arrived)
    outs = [factor.multiply(flat, 0) for factor in factors]
    return [*(out.view(*shape, out.shape[-1]) for out in outs), *([arrived] if gathered else [])]


def _fake_multiply_arrivals(
    op: str,
    shard: _Tensor,
    weights: list[_Tensor],
    biases: list[_Tensor | None],
    gathered: bool,
    group_name: str,
    site: str = "",
    ends: _Tensor | None = None,
    group_rows: int = 0,
    row_scale: _Tensor | None = None,
    scales: list[_Tensor] | None = None,
    dtype: torch.dtype | None = None,
    fast: bool = False,
) -> list[_Tensor]:
    factors = _factors(weights, biases, ends, group_rows, row_scale, scales, dtype, fast)
    shape = _checked_arrivals(op, shard, factors, _ranks(group_name))
    outs = [shard.new_empty([*shape, one.columns], dtype=one.result_type(shard)) for one in factors]
    return [*outs, *([shard.new_empty([*shape, shard.shape[-1]])] if gathered else [])]


def _space_of_products(op: str, ranks: int, a: torch.Tensor, factor: Factor) -> int:
    """Bytes of symmetric memory."""
    whole = prod(a.shape[:-1]) * factor.columns * factor.result_type(a).itemsize
    return whole // ranks * (ranks - 1) if op == "reduce_scatter" else whole


def _sent_shape(op: str, a: _Tensor, factor: Factor, ranks: int) -> list[int]:
    """The shape of the result of a call that is right."""
    _check_product(a, factor, prod(a.shape[:-1]), prod(a.shape[:-1]))
    if op != "all_reduce":
        _check_shares(a, ranks)
    first = a.shape[0] // ranks if op == "reduce_scatter" else a.shape[0]
    return [first, *a.shape[1:-1], factor.columns]


def _send_products(
    op: str,
    a: _Tensor,
    b: _Tensor,
    group_name: str,
    site: str = "",
    ends: _Tensor | None = None,
    group_rows: int = 0,
    row_scale: _Tensor | None = None,
    scale: _Tensor | None = None,
    dtype: torch.dtype | None = None,
    fast: bool = False,
) -> _Tensor:
    factor = Factor(b, None, ends, group_rows, row_scale, scale, dtype, fast)
    ranks, rows = _ranks(group_name), prod(a.shape[:-1])
    shape = _sent_shape(op, a, factor, ranks)

    def in_turn() -> _Tensor:
        made = factor.multiply(_flat(a), 0).view(*a.shape[:-1], factor.columns)
        return _collective(op, made, group_name, site).view(shape)

    what = (op, *_shown(a, [factor]))
    may_overlap = bool(site) or _may_overlap(
        group_name, a, _sent(f"matmul_{op}", a, factor.columns, factor.result_type(a)), what
    )
    choice = _choose("all_to_all_behind" if op == "all_to_all" else op, ranks, rows, a, [factor])
    if choice.blocks and may_overlap:
        takes, made = _takes_overlapped(site, group_name, a.device, what, in_turn)
        if made is not None:
            return cast(torch.Tensor, made)
        if takes and (space := _space(group_name, a.device, _space_of_products(op, ranks, a, factor))):
            if op == "all_to_all":
                return overlapped.matmul_all_to_all(space, _flat(a), factor).view(shape)
            way = overlapped.matmul_reduce_scatter if op == "reduce_scatter" else overlapped.matmul_all_reduce
            return way(space, _flat(a), factor, choice.blocks).view(shape)
    return in_turn()


def _fake_send_products(
    op: str,
    a: _Tensor,
    b: _Tensor,
    group_name: str,
    site: str = "",
    ends: _Tensor | None = None,
    group_rows: int = 0,
    row_scale: _Tensor | None = None,
    scale: _Tensor | None = None,
    dtype: torch.dtype | None = None,
    fast: bool = False,
) -> _Tensor:
    factor = Factor(b, None, ends, group_rows, row_scale, scale, dtype, fast)
    return a.new_empty(_sent_shape(op, a, factor, _ranks(group_name)), dtype=factor.result_type(a))


_WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{
        f"{op}_matmul": (partial(_multiply_arrivals, op), partial(_fake_multiply_arrivals, op))
        for op in ("all_gather", "all_to_all")
    },
    **{
        f"matmul_{op}": (partial(_send_products, op), partial(_fake_send_products, op))
        for op in ("reduce_scatter", "all_reduce", "all_to_all")
    },
}


def _without_autocast(way: Callable[..., Any]) -> Callable[..., Any]:
    """Autocast changes no argument of an op, so it must not change the matmuls in it either."""

    def call(*given: Any, **named: Any) -> Any:
        with _DisableAutocast():
            return way(*given, **named)

    return call


for _name, (_way, _fake) in _WAYS.items():
    for _key in ("CPU", "CUDA"):
        _implementations.impl(_name, _without_autocast(_way), _key)
    _LIBRARY.register_fake(f"commsir::{_name}", _fake)
    op_declarations.refuse_gradients(
        _name,
        f"torch.ops.commsir.{_name} has no derivative, but an argument requires grad: call it under torch.no_grad(), or"
        " write the collective and the matmul one by one, which torch.compile puts together",
    )


# ---------------------------------------------------------------------------------------------------------------------
# By group rather than by name
# ---------------------------------------------------------------------------------------------------------------------


def _listed(what: str, given: Any) -> list[Any]:
    """`given` as a list; a tensor would be one of its rows."""
    if isinstance(given, torch.Tensor) or not isinstance(given, Iterable):
        shown = "one tensor" if isinstance(given, torch.Tensor) else type(given).__name__
        raise errors.UsageError(f"all_gather_matmul takes a list of {what}, one for each weight, but got {shown}")
    return list(given)


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
    factors = _listed("weights", weights)
    given = [None] * len(factors) if biases is None else _listed("biases", biases)
    made = _OPS.commsir.all_gather_matmul(shard, factors, given, False, ops._named(group))
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
