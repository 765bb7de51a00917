"""Calls at a site of a compiled graph, where ranks may have compiled different arithmetic.

The process group's collective runs, and the arithmetic around it on this rank alone; or all as one kernel, if all
ranks want that (agreement.py).
"""

from __future__ import annotations

import _thread
import functools
import operator
import re
from math import prod
from typing import Any, cast

import torch
from torch.distributed import distributed_c10d as c10d

from commsir import _native
from commsir.torch import backend, crossed_calls, defects, region_values
from commsir.torch.agreement import Agreement, digest_of
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.foreign_calls import SEPARATOR, ForeignCall
from commsir.torch.op_declarations import implementations
from commsir.torch.op_groups import ALONE, group_of, keep_message, library, rank_of, size_of

__all__ = [
    "agreement_of",
    "cast_arrived",
    "own_part",
    "produced_parts",
    "repeated",
    "run_collective",
    "single_rank_result",
    "sum_of",
]

# torch's own types say less than we know.
_OPS: Any = torch.ops
_C10D: Any = c10d
_agreements: dict[tuple[str, int], tuple[Any, Agreement]] = {}


def _forget_agreements(name: str | None) -> None:
    """The process group is gone (without a name: all are)."""
    for key in [key for key in _agreements if name in (None, key[0])]:
        del _agreements[key]


when_gone(_forget_agreements)


def agreement_of(name: str, device: int) -> Agreement:
    """Returns what the ranks of a process group have agreed on, on the CPU (-1) or a GPU."""
    process_group = _C10D._resolve_process_group(name)
    known = _agreements.get((name, device))
    if known is None or known[0] is not process_group:
        known = _agreements[(name, device)] = (process_group, Agreement(process_group, device))
    return known[1]


#: Between a place's name and how many equal collectives of the program it stands for.
_TIMES = "*"


def repeated(site: str, times: int) -> str:
    """The name of a place that stands for so many equal collectives."""
    place, between, call = site.partition(SEPARATOR)
    return f"{place}{_TIMES}{times}{between}{call}" if times > 1 else site


#: And before the dimension of which a rank gets its own part, where the program reads no more of an all_reduce.
_OWN = "@"


def own_part(site: str, dim: int) -> str:
    """The name of a place that stands for an all_reduce of which the own part along `dim` alone is read."""
    place, between, call = site.partition(SEPARATOR)
    return f"{place}{_OWN}{dim}{between}{call}"


def _own_dim(site: str) -> int | None:
    dim = site.partition(SEPARATOR)[0].partition(_OWN)[2]
    return int(dim) if dim else None


def _own_parts_of(parts: list[torch.Tensor], dim: int, reduce_op: str, group_name: str) -> list[torch.Tensor]:
    """Runs the program's all_reduces of `parts`. Returns the own part of each result."""
    ranks, rank = size_of(group_name.encode()), rank_of(group_name.encode())
    whole = _each_of("all_reduce", parts, reduce_op, group_name, None)
    return [one.chunk(ranks, dim)[rank].contiguous() for one in whole]


def _times(site: str) -> int:
    return int(site.partition(SEPARATOR)[0].partition(_TIMES)[2] or 1)


def run_collective(
    op: str,
    input: torch.Tensor,  # noqa: A002
    reduce_op: str,
    group_name: str,
    foreign: ForeignCall | None = None,
) -> torch.Tensor:
    """The process group's own, or the operation of another library, as the program has it."""
    if foreign:
        return foreign.run(op, input, size_of(group_name.encode()))
    functional, ranks, given = _OPS._c10d_functional, size_of(group_name.encode()), input.contiguous()
    if op == "all_reduce":
        begun = functional.all_reduce(given, reduce_op, group_name)
    elif op == "reduce_scatter":
        begun = functional.reduce_scatter_tensor(given, reduce_op, ranks, group_name)
    elif op == "all_to_all":
        parts = [given.shape[0] // ranks] * ranks
        begun = functional.all_to_all_single(given, parts, parts, group_name)
    else:
        begun = functional.all_gather_into_tensor(given, ranks, group_name)
    return cast(torch.Tensor, functional.wait_tensor(begun))


def _each_of(
    op: str, parts: list[torch.Tensor], reduce_op: str, group_name: str, foreign: ForeignCall | None
) -> list[torch.Tensor]:
    """The program's collective of each part, as on ranks that run them one by one."""
    made = list[torch.Tensor]()
    for part in parts:
        if made:  # Each is a step of the group; the first has been one.
            _OPS.commsir._unfused(part, group_name, foreign.operation if foreign else "")
        made.append(run_collective(op, part, reduce_op, group_name, foreign))
    return made


_YIELD = re.compile(r"comms\.yield\s[^:]*:(.*)")
_TILE = re.compile(r"tensor<(\d+)x(\w+)>")


def _yielded(region: str) -> tuple[str, list[int]]:
    """Types and widths of the tiles that a region's text yields, as `fused_collective` takes those of its outputs."""
    tiles = _TILE.findall(_YIELD.findall(region)[-1])
    return ",".join(kind for _, kind in tiles), [int(width) for width, _ in tiles]


#: Statuses of the library that say that no kernel can be made of a call.
_COMPILE, _CHECKER, _DISAGREE = 3, 4, 9
#: Regions that no kernel can be made of, on one device.
_defective: set[tuple[str, torch.device]] = set()


def _has_no_kernel() -> bool:
    """Whether this thread's last call failed because no kernel can be made of it."""
    return library.commsir_torch_last_status() in (_COMPILE, _CHECKER)


def _computed(
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    region: str,
    out_types: str,
    out_columns: list[int],
) -> list[torch.Tensor]:
    """A region on this rank: by a kernel, or by torch if none can be made of it."""
    if (region, input.device) not in _defective:
        call = (single_rank_result(reduce_op), input, args, reduce_op, region, out_types, out_columns, False)
        try:
            return cast("list[torch.Tensor]", _OPS.commsir.fused_collective(*call, ALONE))
        except RuntimeError as error:
            if not _has_no_kernel():
                raise
            defects.report_kernel(error, call, 1)
            _defective.add((region, input.device))
    shape = list(input.shape) if input.dim() > 1 else [1, *input.shape]
    made = region_values.evaluate(region, [input, *args])
    return [one.reshape([*shape[:-1], columns]) for one, columns in zip(made, out_columns, strict=True)]


def produced_parts(input: torch.Tensor, sources: list[torch.Tensor], produce: str) -> list[torch.Tensor]:  # noqa: A002
    """Computes the data to send on this rank: one tensor for each tile that `produce` yields."""
    return _computed(input, sources, "", produce, *_yielded(produce))


def cast_arrived(arrived: torch.Tensor, produce: str) -> torch.Tensor:
    """What has arrived in the type in which a kernel would have sent it."""
    return arrived.to(region_values.type_of(_yielded(produce)[0]))


def sum_of(op: str, arrived: list[torch.Tensor], input: torch.Tensor, group_name: str) -> torch.Tensor:  # noqa: A002
    """Sums the results of several collectives, in the result shape of `input`. Of a larger result the rows are summed
    up."""
    shape = list(input.shape)
    if op == "reduce_scatter":
        shape[0] //= size_of(group_name.encode())
    elif op != "all_reduce":
        return arrived[0]
    totals = [one.reshape(shape) if one.numel() == prod(shape) else one.reshape([-1, *shape]).sum(0) for one in arrived]
    return functools.reduce(operator.add, totals)


def single_rank_result(reduce_op: str) -> str:
    """Returns the collective that leaves the data unchanged on one rank."""
    return "all_reduce" if reduce_op else "all_gather"


def _apart(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    consume: str,
    out_types: str,
    out_columns: list[int],
    symmetric: bool,
    group_name: str,
    site: str,
    parts: list[torch.Tensor] | None = None,
    produce: str = "",
    sources: int = 0,
) -> list[torch.Tensor]:
    """The collective of the process group, with the arithmetic before and after it on this rank; or all as one kernel,
    from this call on, if that is what all ranks want."""
    device = -1 if input.device.type == "cpu" else int(input.device.index)
    agreement = agreement_of(group_name, device)
    if defect := library.commsir_torch_take_defect():
        agreement.close(site)
        call = (op, input, args, reduce_op, consume, out_types, out_columns, symmetric)
        defects.report_kernel(RuntimeError(defect.decode()), call, size_of(group_name.encode()), produce, sources)
    sent = produced_parts(input, args[:sources], produce) if produce and not parts else [input]

    foreign, own_dim = ForeignCall.of(site), _own_dim(site)

    def collective() -> list[torch.Tensor]:
        if own_dim is not None:
            return _own_parts_of(parts or [], own_dim, reduce_op, group_name)
        return _each_of(op, parts or sent * _times(site), reduce_op, group_name, foreign)

    def ended() -> list[torch.Tensor]:
        arrived = collective()
        if device >= 0:
            torch.cuda.current_stream(input.device).synchronize()
        return arrived

    captured = device >= 0 and torch.cuda.is_current_stream_capturing()
    if captured or input.numel() == 0 or not agreement.is_open(site):
        arrived = collective()
    else:
        shapes = [(tuple(one.shape), one.dtype) for one in (input, *args)]
        in_place = symmetric and input.is_contiguous()
        kernel = (
            site,
            op,
            reduce_op,
            consume,
            out_types,
            out_columns,
            in_place,
            produce,
            sources,
            shapes,
            _native.version(),
        )
        arrived, all_want = agreement.attempt(site, digest_of(*kernel), ended, is_counted=foreign is None)
        if all_want:
            call = (op, input, args, reduce_op, consume, out_types, out_columns, symmetric)
            made = _agreed(agreement, call, group_name, device, site, produce, sources)
            if made is not None:
                return made
    if _times(site) > 1:
        # Results of collectives that are the same here, and need not be the same elsewhere.
        return [one.reshape([-1, *input.shape[1:]] if input.dim() > 1 else [1, -1]) for one in arrived]
    if produce and parts:  # A cast, which is the same after the program's collective.
        total, args = cast_arrived(arrived[0], produce), args[sources:]
    elif produce:
        total, args = arrived[0], [*arrived[1:], *args[sources:]]
    else:
        total = sum_of(op, arrived, input, group_name)
    return _computed(total, args, reduce_op, consume, out_types, out_columns)


def _agreed(
    agreement: Agreement, call: tuple[Any, ...], group_name: str, device: int, site: str, produce: str, sources: int
) -> list[torch.Tensor] | None:
    """The kernel that all ranks want, also in later calls. None: no kernel can be made, which all ranks have heard."""
    group_of(group_name, device)
    try:
        made = _OPS.commsir.fused_collective(*call, group_name, "", None, produce, sources)
    except RuntimeError as error:
        status = library.commsir_torch_last_status()
        if status not in (_COMPILE, _CHECKER, _DISAGREE):
            raise
        if status != _DISAGREE:
            agreement.close(site)
            defects.report_kernel(error, call, size_of(group_name.encode()), produce, sources)
        return None
    if library.commsir_torch_agree(group_name.encode(), device, site.encode()):
        raise RuntimeError(f"commsir: no group for process group {group_name} any more")
    if device < 0:
        _watch(group_name)
    return cast("list[torch.Tensor]", made)


def _watch(group_name: str) -> None:
    """From now on, ranks that wait for each other in different calls are found."""
    process_group, made = _C10D._resolve_process_group(group_name), group_of(group_name)
    crossed_calls.watch(
        process_group,
        lambda: int(made.counts()["launches"]),
        lambda reason: backend.abort(process_group, reason),
    )


def _capturing_error(call: Any) -> Any:
    """Keeps the exception for `error`, because the C++ code up to the caller can only return a status."""

    def said(*arguments: Any) -> Any:
        try:
            with torch.no_grad():
                return call(*arguments)
        except BaseException as error:
            keep_message(error)
            if isinstance(error, KeyboardInterrupt):
                _thread.interrupt_main()
            raise

    return said


for _key in ("CPU", "CUDA"):
    implementations.impl("_apart", _capturing_error(_apart), _key)
