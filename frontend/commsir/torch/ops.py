"""torch.ops.commsir: collectives as torch ops, plain and with arithmetic, that torch.compile traces.

    y = torch.ops.commsir.all_reduce(x, "sum", group_name)
    y, kept = fused_collective("all_reduce", x, [residual, weight], consume=..., ...)

The group is any process group of torch.distributed, by its name (`group.group_name`): CommsIR makes a group of its own
for it, from its store, on the first call, which all ranks must make. An op runs on the current stream; for that
stream it is done when it returns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import commsir.torch._needed  # noqa: F401

# isort: split
import torch
from torch.distributed import distributed_c10d as c10d

import commsir.torch.sites  # noqa: F401  (what runs at sites of compiled graphs)
from commsir.errors import UsageError
from commsir.torch import capi
from commsir.torch.op_declarations import DTYPES, empty_like, extension_module, is_direct, is_grad_enabled, rows_of
from commsir.torch.op_groups import abort, counts_of, group_of, library, size_of
from commsir.torch.region_lines import in_one_line

__all__ = [
    "abort",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "counts_of",
    "fused_collective",
    "group_of",
    "prepare",
    "prepared",
    "reduce_scatter",
]

# torch's own types say less than we know.
_OPS: Any = torch.ops


def _named(group: Any) -> str:
    if isinstance(group, str):
        return group
    used = c10d._get_default_group() if group is None else group
    try:
        return str(used.group_name)
    except AttributeError:
        is_left_out = group == c10d.GroupMember.NON_GROUP_MEMBER
        what = "this rank is not in the group" if is_left_out else f"{type(group).__name__} is no process group"
        raise UsageError(f"{what}; give one that this rank is in, its name, or None for the default one") from None


def _ranks(group: Any) -> int:
    return size_of(_named(group).encode()) if group is None or isinstance(group, str) else int(group.size())


#: Of an op: what is traced and differentiated, and the form that never has Python of autograd in its way.
_Forms = tuple[Any, Any]
_all_reduce: _Forms = (_OPS.commsir.all_reduce.default, _OPS.commsir.all_reduce.out)
_all_gather: _Forms = (_OPS.commsir.all_gather.default, _OPS.commsir.all_gather.out)
_reduce_scatter: _Forms = (_OPS.commsir.reduce_scatter.default, _OPS.commsir.reduce_scatter.out)
_all_to_all: _Forms = (_OPS.commsir.all_to_all.default, _OPS.commsir.all_to_all.out)
_broadcast: _Forms = (_OPS.commsir.broadcast.default, _OPS.commsir.broadcast.out)


def _call(forms: _Forms, input: torch.Tensor, *others: Any, rows: Any = None) -> torch.Tensor:  # noqa: A002
    """`rows` makes the result where it has not the shape of `input`."""
    out: torch.Tensor
    if is_direct or torch.compiler.is_compiling() or (input.requires_grad and is_grad_enabled()):
        out = forms[0](input, *others)
        return out
    out = rows() if rows is not None else empty_like(input)
    forms[1](input, *others, out=out)
    return out


def all_reduce(input: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:  # noqa: A002
    """Reduces all ranks' `input`. Every rank gets the result."""
    return _call(_all_reduce, input, op, _named(group))


def all_gather(input: torch.Tensor, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Concatenates all ranks' `input` along dimension 0, in rank order."""
    return _call(_all_gather, input, _named(group), rows=lambda: rows_of(input, _ranks(group), 1))


def reduce_scatter(input: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:  # noqa: A002
    """Returns this rank's part, along dimension 0, of the reduction of all ranks' `input`."""
    return _call(_reduce_scatter, input, op, _named(group), rows=lambda: rows_of(input, 1, _ranks(group)))


def all_to_all(input: torch.Tensor, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Sends part p of `input`, along dimension 0, to rank p. The result holds the received parts in rank order."""
    return _call(_all_to_all, input, _named(group))


def broadcast(input: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Returns the `input` of rank `root` of the group on every rank."""
    return _call(_broadcast, input, root, _named(group))


def fused_collective(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    consume: str,
    outputs: list[tuple[torch.dtype, int]],
    *,
    reduce_op: str = "sum",
    symmetric: bool = False,
    group: Any = None,
    produce: str = "",
    sources: int = 0,
) -> list[torch.Tensor]:
    """A collective with arithmetic on the received data, and on the data to send, in one kernel.

    `input` is rows of its last dimension. `args` are read by the arithmetic: a tensor of one dimension is one row for
    all rows, others have a row for each row of the result. `consume` is MLIR text, "(%sum: tensor<64xf32>, %r:
    tensor<64xbf16>) { … comms.yield … }"; it yields one tile for each of `outputs`, (dtype, columns). `symmetric` says
    that `input` lies in torch's symmetric memory and stays there as long as the process lives.

    `produce`, likewise, makes what is sent: it gets a row of `input` and of each of the first `sources` of `args`,
    which `consume` does not get. Empty: `input` is sent.
    """
    if torch.compiler.is_compiling():
        types, columns = _texts_of(outputs)
        consume, produce = in_one_line(consume), in_one_line(produce)
        call = (reduce_op, consume, types, columns, symmetric, _named(group), "", None, produce, sources)
        return list(_OPS.commsir.fused_collective(op, input, args, *call))
    key = (op, consume, tuple(outputs), reduce_op, symmetric, _named(group), produce, sources)
    prepared_call = _prepared_calls.get(key)
    if prepared_call is None:
        if len(_prepared_calls) >= _MOST_PREPARED:
            _prepared_calls.clear()
        prepared_call = _prepared_calls[key] = prepare(
            op,
            consume,
            outputs,
            reduce_op=reduce_op,
            symmetric=symmetric,
            group=group,
            produce=produce,
            sources=sources,
        )
    return prepared_call(input, args)


#: (input, args, parts=None, out=None) -> results: a call of `fused_collective`, without its tensors.
PreparedCall = Callable[..., "list[torch.Tensor]"]
_MOST_PREPARED = 1024
_prepared_calls: dict[tuple[Any, ...], PreparedCall] = {}


def _texts_of(outputs: Sequence[tuple[torch.dtype, int]]) -> tuple[str, list[int]]:
    if not outputs:
        raise UsageError("a fused collective has an output at least: give outputs=[(torch.float32, columns), …]")
    for output in outputs:
        if not isinstance(output, (tuple, list)) or len(output) != 2 or not _is_output(*output):
            raise UsageError(f"outputs has {output!r}: an output is a torch.dtype and its columns, (torch.float32, 64)")
        if not capi.element_type(output[0]):
            raise UsageError(f"outputs has {output!r}: kernels write real numbers and masks; give one of their types")
    columns = [count if isinstance(count, _COUNTS[:2]) else int(count) for _, count in outputs]
    return ",".join(capi.element_type(dtype) for dtype, _ in outputs), columns


#: NumPy's integers are numbers of columns, too, and so are symbolic ones in a program that is compiled.
_COUNTS = (int, torch.SymInt, Integral)


def _is_output(dtype: Any, columns: Any) -> bool:
    """Whether these are a type and a number of columns."""
    is_number = isinstance(columns, _COUNTS) and not isinstance(columns, bool)
    return isinstance(dtype, torch.dtype) and is_number and (isinstance(columns, torch.SymInt) or columns >= 0)


def _copy_results(made: Sequence[torch.Tensor], out: Sequence[torch.Tensor]) -> None:
    if len(made) != len(out):
        raise UsageError(f"the call has {len(made)} results, but `out` has {len(out)} tensors")
    for result, place in zip(made, out, strict=True):
        if (result.dtype, result.numel()) != (place.dtype, place.numel()):
            raise UsageError(
                f"a result is {list(result.shape)} of {result.dtype}, but its tensor in `out` is {list(place.shape)} "
                f"of {place.dtype}"
            )
        place.copy_(result.view(place.shape))


def prepared(
    op: str,
    reduce_op: str,
    consume: str,
    out_types: str,
    out_columns: list[int],
    symmetric: bool,
    group_name: str,
    site: str = "",
    produce: str = "",
    sources: int = 0,
) -> PreparedCall:
    """torch.ops.commsir.fused_collective without its tensors, as code that Inductor generates calls it."""

    texts = (reduce_op, consume, out_types, out_columns, symmetric, group_name, site)

    def call_op(input: Any, args: Any = (), parts: Any = None, out: Any = None) -> list[torch.Tensor]:  # noqa: A002
        if out is None:
            return list(_OPS.commsir.fused_collective(op, input, list(args), *texts, parts, produce, sources))
        outs = list(out)
        if not (site or produce or parts):
            _OPS.commsir.fused_collective.out(
                op, input, list(args), reduce_op, consume, symmetric, group_name, outs=outs
            )
            return outs
        _copy_results(call_op(input, args, parts), outs)
        return outs

    if not is_direct:
        return call_op
    outputs = [(DTYPES[kind], columns) for kind, columns in zip(out_types.split(","), out_columns, strict=True)]
    ranks, run = (
        ctypes.cast(function, ctypes.c_void_p).value
        for function in (library.commsir_torch_prepared_ranks, library.commsir_torch_run_prepared)
    )
    made: PreparedCall = extension_module.prepare(
        op, reduce_op, consume, outputs, symmetric, group_name, site, produce, sources, ranks, run, call_op
    )
    return made


def prepare(
    op: str,
    consume: str,
    outputs: Sequence[tuple[torch.dtype, int]],
    *,
    reduce_op: str = "sum",
    symmetric: bool = False,
    group: Any = None,
    produce: str = "",
    sources: int = 0,
) -> PreparedCall:
    """`fused_collective` without its tensors: call the result as `call(input, args)`.

    `call(input, args, out=[…])` fills contiguous tensors of the results' types and sizes, in the order of `outputs`,
    and returns them. Two of them must not share memory.

    On plain GPU tensors such a call goes from Python to the launch without torch's dispatcher, and costs its caller
    about half of what the op costs. It may be kept as long as the process group; nothing meets, and nothing is
    compiled, before it is called.
    """
    types, columns = _texts_of(outputs)
    return prepared(op, reduce_op, consume, types, columns, symmetric, _named(group), produce=produce, sources=sources)
