"""Odd operands and odd use of the matmuls with collectives: what a rank does for test_odd.py."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import commsir.torch
import torch
import torch.autograd.forward_ad
import torch.distributed
from commsir.torch.matmul import model
from commsir.torch.matmul import ops as matmuls
from compile_checks import DEVICE, _tensor

dist: Any = torch.distributed
_OPS: Any = torch.ops
_forward_ad: Any = torch.autograd.forward_ad

#: Rows of each rank, terms and columns, where a case does not say otherwise. None is a multiple of a tile.
ROWS, TERMS, COLUMNS = 3, 13, 5


# ---------------------------------------------------------------------------------------------------------------------
# Operands
# ---------------------------------------------------------------------------------------------------------------------

_Operands = tuple[torch.Tensor, torch.Tensor]
_Make = Callable[[int, int], _Operands]


def _sizes(rows: int, k: int, n: int, dtype: torch.dtype = torch.float32) -> _Make:
    """`rows` of each part, so that all ranks can share them out."""
    return lambda rank, size: (
        _tensor(rank, rows * size, k, dtype=dtype, seed=1),
        _tensor(rank, k, n, dtype=dtype, seed=2),
    )


def _lying(
    how_rows: Callable[[torch.Tensor], torch.Tensor], how_weight: Callable[[torch.Tensor], torch.Tensor]
) -> _Make:
    """The usual operands, changed by these functions."""

    def make(rank: int, size: int) -> _Operands:
        a, b = _sizes(ROWS, TERMS, COLUMNS)(rank, size)
        return how_rows(a), how_weight(b)

    return make


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


def _every_other(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((x, -x), -1)[..., 0]


def _every_other_row(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((x, -x), 1).view(-1, x.shape[1])[::2]


def _one_row(x: torch.Tensor) -> torch.Tensor:
    return x[:1].expand(x.shape)


def _one_column(x: torch.Tensor) -> torch.Tensor:
    return x[:, :1].expand(x.shape)


def _one_number(x: torch.Tensor) -> torch.Tensor:
    return x[0, 0].expand(x.shape)


def _unaligned(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape)


def _overlapping(x: torch.Tensor) -> torch.Tensor:
    """Rows that begin within the row before."""
    return x.flatten().as_strided(x.shape, (1, 1))


def _negated_lazily(x: torch.Tensor) -> torch.Tensor:
    """A view whose elements torch negates when it reads them."""
    return torch.complex(x, -x).conj().imag


def _parameter(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.Parameter(x, requires_grad=False)


def _inference(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return x.clone()


def _batches(*shape: int) -> _Make:
    """Rows in several dimensions, the first times the ranks."""
    return lambda rank, size: (
        _tensor(rank, shape[0] * size, *shape[1:], dtype=torch.float32, seed=1),
        _tensor(rank, shape[-1], COLUMNS, dtype=torch.float32, seed=2),
    )


def _typed(dtype: torch.dtype, weight: torch.dtype | None = None) -> _Make:
    def make(rank: int, size: int) -> _Operands:
        a, b = _lying(lambda x: (x * 4).round(), lambda x: (x * 4).round())(rank, size)
        return a.to(dtype), b.to(weight or dtype)

    return make


def _filled(value: float) -> _Make:
    def make(rank: int, size: int) -> _Operands:
        a, b = _sizes(ROWS, TERMS, COLUMNS)(rank, size)
        a[0, 0] = value if rank == size - 1 else a[0, 0]
        return a, b

    return make


def _batched_columns(rank: int, size: int) -> _Operands:
    """A batch whose dimensions are permuted in memory."""
    a = _tensor(rank, TERMS, 2, ROWS * size, dtype=torch.float32, seed=1).permute(2, 1, 0)
    return a, _tensor(rank, TERMS, COLUMNS, dtype=torch.float32, seed=2)


def _with_itself(rank: int, size: int) -> _Operands:
    a = _tensor(rank, ROWS * size, TERMS, dtype=torch.float32, seed=1)
    return a, a.t()


def _weight_of(*shape: int) -> _Make:
    return lambda rank, size: (
        _tensor(rank, ROWS * size, TERMS, dtype=torch.float32, seed=1),
        _tensor(rank, *shape, dtype=torch.float32, seed=2),
    )


def _rows_of(*shape: int) -> _Make:
    return lambda rank, size: (
        _tensor(rank, *shape, dtype=torch.float32, seed=1),
        _tensor(rank, TERMS, COLUMNS, dtype=torch.float32, seed=2),
    )


class _Named(torch.Tensor):
    """A subclass that adds nothing."""


def _subclass(x: torch.Tensor) -> torch.Tensor:
    return x.as_subclass(_Named)


#: Operands of every call.
OPERANDS: dict[str, _Make] = {
    "usual": _sizes(ROWS, TERMS, COLUMNS),
    "one row, term and column": _sizes(1, 1, 1),
    "one column": _sizes(ROWS, TERMS, 1),
    "one term": _sizes(ROWS, 1, COLUMNS),
    "prime sizes": _sizes(17, 131, 37),
    "no rows": _sizes(0, TERMS, COLUMNS),
    "no terms": _sizes(ROWS, 0, COLUMNS),
    "no columns": _sizes(ROWS, TERMS, 0),
    "no rows and terms": _sizes(0, 0, COLUMNS),
    "no terms and columns": _sizes(ROWS, 0, 0),
    "nothing": _sizes(0, 0, 0),
    "rows transposed": _lying(_transposed, _same),
    "weight transposed": _lying(_same, _transposed),
    "both transposed": _lying(_transposed, _transposed),
    "every other column": _lying(_every_other, _every_other),
    "every other row": _lying(_every_other_row, _every_other_row),
    "one row for all": _lying(_one_row, _one_row),
    "one column for all": _lying(_one_column, _one_column),
    "one number for all": _lying(_one_number, _one_number),
    "unaligned": _lying(_unaligned, _unaligned),
    "rows that overlap": _lying(_overlapping, _same),
    "negated lazily": _lying(_negated_lazily, _negated_lazily),
    "parameters": _lying(_parameter, _parameter),
    "inference tensors": _lying(_inference, _inference),
    "a subclass": _lying(_subclass, _subclass),
    "three dimensions": _batches(2, 3, TERMS),
    "four dimensions": _batches(1, 2, 3, TERMS),
    "an empty batch": _batches(2, 0, TERMS),
    "permuted batches": _batched_columns,
    "with itself": _with_itself,
    "not a number": _filled(float("nan")),
    "infinite": _filled(float("inf")),
    "subnormal": _filled(1e-42),
    "large": _filled(3e38),
    "float64": _typed(torch.float64),
    "float16": _typed(torch.float16),
    "bfloat16": _typed(torch.bfloat16),
    "int8": _typed(torch.int8),
    "uint8": _typed(torch.uint8),
    "int16": _typed(torch.int16),
    "int32": _typed(torch.int32),
    "int64": _typed(torch.int64),
    "bool": _typed(torch.bool),
    "complex64": _typed(torch.complex64),
    "float8_e4m3fn": _typed(torch.float8_e4m3fn),
    "float8_e5m2": _typed(torch.float8_e5m2),
    "bfloat16 by float32": _typed(torch.bfloat16, torch.float32),
    "float32 by bfloat16": _typed(torch.float32, torch.bfloat16),
    "float32 by int32": _typed(torch.float32, torch.int32),
    "other terms": _weight_of(TERMS + 1, COLUMNS),
    "weight of one dimension": _weight_of(TERMS),
    "weight of three dimensions": _weight_of(2, TERMS, COLUMNS),
    "weight without dimensions": _weight_of(),
    "rows of one dimension": _rows_of(TERMS),
    "rows without dimensions": _rows_of(),
    "rows that cannot be shared": _rows_of(1 + 4 * ROWS, TERMS),
    "rows elsewhere": _lying(lambda x: x.to("meta"), _same),
    "weight elsewhere": _lying(_same, lambda x: x.to("meta")),
    "sparse rows": _lying(lambda x: x.to_sparse(), _same),
    "sparse weight": _lying(_same, lambda x: x.to_sparse()),
    "compressed weight": _lying(_same, lambda x: x.to_sparse_csr()),
}


# ---------------------------------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------------------------------


def _name() -> str:
    return str(dist.group.WORLD.group_name)


def _gathered(x: torch.Tensor) -> torch.Tensor:
    given = x.contiguous()
    parts = [torch.empty_like(given) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, given)
    return torch.cat(parts)


def _summed(x: torch.Tensor) -> torch.Tensor:
    return _gathered(x[None]).sum(0)


def _exchanged(x: torch.Tensor) -> torch.Tensor:
    rank, size = dist.get_rank(), dist.get_world_size()
    parts: list[torch.Tensor] = [part.chunk(size)[rank] for part in _gathered(x[None])]
    return torch.cat(parts)


def _wide(x: torch.Tensor) -> torch.Tensor:
    """In the type in which results are compared."""
    if x.is_complex():
        return x
    return x.double() if x.is_floating_point() else x.long()


def _share(x: torch.Tensor) -> torch.Tensor:
    parts = x.chunk(dist.get_world_size())
    return parts[int(dist.get_rank())]


#: Each op, and what it is by torch's own matmul and collectives, in float64.
CALLS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "all_gather_matmul": (
        lambda a, b: _OPS.commsir.all_gather_matmul(a, [b], [None], False, _name())[0],
        lambda a, b: _gathered(_wide(a)) @ _wide(b),
    ),
    "all_to_all_matmul": (
        lambda a, b: _OPS.commsir.all_to_all_matmul(a, [b], [None], False, _name())[0],
        lambda a, b: _exchanged(_wide(a)) @ _wide(b),
    ),
    "matmul_all_reduce": (
        lambda a, b: _OPS.commsir.matmul_all_reduce(a, b, _name()),
        lambda a, b: _summed(_wide(a) @ _wide(b)),
    ),
    "matmul_reduce_scatter": (
        lambda a, b: _OPS.commsir.matmul_reduce_scatter(a, b, _name()),
        lambda a, b: _share(_summed(_wide(a) @ _wide(b))),
    ),
    "matmul_all_to_all": (
        lambda a, b: _OPS.commsir.matmul_all_to_all(a, b, _name()),
        lambda a, b: _exchanged(_wide(a) @ _wide(b)),
    ),
}


def _difference(got: torch.Tensor, want: torch.Tensor, k: int, ranks: int) -> str:
    if got.shape != want.shape:
        return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
    if not got.is_floating_point():
        return "" if torch.equal(got, want.to(got.dtype)) else f"{got} is not {want}"
    near = 4 * torch.finfo(got.dtype).eps * (k + ranks) ** 0.5
    most = want[want.isfinite()].abs().max().item() if want.isfinite().any() else 0.0
    is_close = torch.allclose(got.double(), want.to(got.dtype).double(), near, near * max(most, 1.0), equal_nan=True)
    return "" if is_close else f"off by {(got.double() - want).abs().max().item()}"


def _error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def outcomes(rank: int, size: int, op: str) -> dict[str, str]:
    """What becomes of each pair of operands: "" for the right result, else what is wrong, or the error."""
    call, plain = CALLS[op]
    said = {}
    for name, make in OPERANDS.items():
        a, b = make(rank, size)
        try:
            got = call(a, b)
        except Exception as error:
            said[name] = _error(error)
            continue
        of = "" if got.dtype is a.dtype else f"of {got.dtype} "
        said[name] = of + _difference(got, plain(a, b), a.shape[-1], size)
    return said


# ---------------------------------------------------------------------------------------------------------------------
# Scales, groups and derivatives
# ---------------------------------------------------------------------------------------------------------------------


class _Given:
    """Operands by the kind, and the calls of them."""

    def __init__(self, rank: int, size: int, dtype: torch.dtype = torch.float32) -> None:
        self.rows, self.dtype = 4 * size, dtype
        self.a = _tensor(rank, self.rows, 16, dtype=dtype)
        self.b = _tensor(0, 16, 16, dtype=dtype, seed=1)
        self.groups = _tensor(0, 3, 16, 16, dtype=dtype, seed=2)
        # GPUs multiply fp8 by columns.
        self.a8, self.b8 = (one.to(torch.float8_e4m3fn) for one in (self.a, self.b.t().contiguous().t()))
        self.one, self.of_rows, self.of_columns = torch.tensor(0.5), torch.rand(self.rows, 1) + 0.1, torch.rand(1, 16)
        self.ends = torch.tensor([2, 2, self.rows], dtype=torch.int32)

    def scaled(self, row_scale: Any, scale: Any, *dtype: torch.dtype | None, **more: Any) -> Any:
        """Into `self.dtype`, or `dtype`."""
        a, b, (into, *_) = more.pop("a", self.a8), more.pop("b", self.b8), (*dtype, self.dtype)
        return _OPS.commsir.matmul_all_reduce(a, b, _name(), row_scale=row_scale, scale=scale, dtype=into, **more)

    def summed(self, a: Any, b: Any, **more: Any) -> Any:
        return _OPS.commsir.matmul_all_reduce(a, b, _name(), **more)

    def gathered(self, weights: Any, biases: Any, a: Any = None, **more: Any) -> Any:
        return _OPS.commsir.all_gather_matmul(self.a if a is None else a, weights, biases, False, _name(), **more)


def _dual(call: Callable[[torch.Tensor], Any], x: torch.Tensor) -> Any:
    with _forward_ad.dual_level():
        return call(_forward_ad.make_dual(x, x))


_STRANGE = "meta"

#: Calls that are refused, and what is said.
MISTAKES: dict[str, tuple[Callable[[_Given], Any], str]] = {
    "scales of one dimension": (lambda g: g.scaled(g.of_rows.view(-1), g.of_columns), "scales of (8,) and (1, 16)"),
    "scales of rows turned": (lambda g: g.scaled(g.of_rows.t(), g.of_columns), "scales of (1, 8) and (1, 16)"),
    "scales of columns turned": (lambda g: g.scaled(g.of_rows, g.of_columns.t()), "scales of (8, 1) and (16, 1)"),
    "no numbers as scales": (lambda g: g.scaled(torch.empty(0), torch.empty(0)), "0 scales of rows for a matmul of 8"),
    "scales in float64": (lambda g: g.scaled(g.one.double(), g.one.double()), "torch.float64; give float32"),
    "scales in bfloat16": (lambda g: g.scaled(g.one, g.one.bfloat16()), "torch.bfloat16; give float32"),
    "whole scales": (lambda g: g.scaled(torch.tensor(1), torch.tensor(1)), "torch.int64; give float32"),
    "a scale elsewhere": (lambda g: g.scaled(g.one.to(_STRANGE), g.one), "with one on meta"),
    "scales of rows alone": (lambda g: g.scaled(g.of_rows, None), "float8_e4m3fn has scales"),
    "scales of columns alone": (lambda g: g.scaled(None, g.of_columns), "float8_e4m3fn has scales"),
    "scales of float32": (lambda g: g.scaled(g.one, g.one, a=g.a, b=g.b), "torch.float32 has no scales"),
    "one scale of float32": (lambda g: g.scaled(g.one, None, a=g.a, b=g.b), "torch.float32 has no scales"),
    "fp8 as whole numbers": (lambda g: g.scaled(g.one, g.one, torch.int32), "with a result of torch.int32"),
    "fp8 as float64": (lambda g: g.scaled(g.one, g.one, torch.float64), "with a result of torch.float64"),
    "float32 as bfloat16": (lambda g: g.summed(g.a, g.b, dtype=torch.bfloat16), "one of torch.float32 is made"),
    "fp8 in groups of one size": (
        lambda g: g.scaled(g.one, g.one, b=g.groups.to(torch.float8_e4m3fn), group_rows=4),
        "give where they end (`ends`)",
    ),
    "ends in int64": (lambda g: g.summed(g.a, g.groups, ends=g.ends.long()), "give the ends as int32[3]"),
    "ends in float32": (lambda g: g.summed(g.a, g.groups, ends=g.ends.float()), "give the ends as int32[3]"),
    "too few ends": (lambda g: g.summed(g.a, g.groups, ends=g.ends[1:]), "torch.int32[2]"),
    "ends of two dimensions": (lambda g: g.summed(g.a, g.groups, ends=g.ends[None]), "torch.int32[1, 3]"),
    "ends elsewhere": (lambda g: g.summed(g.a, g.groups, ends=g.ends.to(_STRANGE)), "with one on meta"),
    "ends and a size": (lambda g: g.summed(g.a, g.groups, ends=g.ends, group_rows=2), "no group_rows"),
    "ends of one matrix": (lambda g: g.summed(g.a, g.b, ends=g.ends), "has a matrix for each group"),
    "groups without a size": (lambda g: g.summed(g.a, g.groups), "has a matrix for each group"),
    "groups of a negative size": (lambda g: g.summed(g.a, g.groups, group_rows=-1), "3 groups of -1 rows"),
    "a size of one matrix": (lambda g: g.summed(g.a, g.b, group_rows=3), "has a matrix for each group"),
    "no groups": (lambda g: g.summed(g.a, g.groups[:0], group_rows=3), "0 groups of 3 rows"),
    "groups with a bias": (lambda g: g.gathered([g.groups], [g.b[0]], group_rows=4), "add it to the result"),
    "no weights": (lambda g: g.gathered([], []), "without weights"),
    "too few biases": (lambda g: g.gathered([g.b, g.b], [None]), "2 weights have 1 biases"),
    "too few scales": (
        lambda g: g.gathered([g.b8, g.b8], [None, None], g.a8, row_scale=g.one, scales=[g.one], dtype=torch.float32),
        "2 weights have 1 scales",
    ),
    "too many scales": (
        lambda g: g.gathered([g.b8], [None], g.a8, row_scale=g.one, scales=[g.one] * 2, dtype=torch.float32),
        "1 weights have 2 scales",
    ),
    "too few scales of rows": (
        lambda g: g.gathered([g.b8], [None], g.a8, row_scale=g.of_rows[1:], scales=[g.one], dtype=torch.float32),
        "7 scales of rows for a matmul of 16 rows",
    ),
    "a bias of two dimensions": (lambda g: g.gathered([g.b], [g.b[:1]]), "a bias of (1, 16)"),
    "a bias without dimensions": (lambda g: g.gathered([g.b], [g.one]), "a bias of ()"),
    "a bias elsewhere": (lambda g: g.gathered([g.b], [g.b[0].to(_STRANGE)]), "with one on meta"),
    "a bias in float64": (lambda g: g.gathered([g.b], [g.b[0].double()]), "a bias of torch.float64"),
    "weights of two types": (lambda g: g.gathered([g.b, g.b.double()], [None, None]), "torch.float64; give"),
    "no tensor": (lambda g: commsir.torch.matmul_all_reduce(g.a, None), "Tensor by NoneType"),  # type: ignore[arg-type]
    "a weight in place of a list": (lambda g: commsir.torch.all_gather_matmul(g.a, g.b), "takes a list of weights"),
    "no list of weights": (lambda g: commsir.torch.all_gather_matmul(g.a, None), "but got NoneType"),  # type: ignore[arg-type]
    "a bias in place of a list": (
        lambda g: commsir.torch.all_gather_matmul(g.a, [g.b], g.b[:1]),
        "takes a list of biases",
    ),
    "scales of one row for many": (
        lambda g: g.gathered(
            [torch.zeros(256, 16, dtype=torch.float8_e4m3fn)],
            [None],
            torch.zeros(8, 256, dtype=torch.float8_e4m3fn),
            row_scale=torch.ones(1, 2),
            scales=[torch.ones(2, 16)],
            dtype=torch.float32,
        ),
        "scales of (1, 2) and (2, 16) for a matmul of 16 rows",
    ),
    "a number as group": (lambda g: commsir.torch.matmul_all_reduce(g.a, g.b, group=3), "int is no process group"),
    "a group of others": (
        lambda g: commsir.torch.matmul_all_reduce(g.a, g.b, group=dist.GroupMember.NON_GROUP_MEMBER),
        "this rank is not in the group",
    ),
    "an unknown group": (lambda g: commsir.torch.matmul_all_reduce(g.a, g.b, group="nobody"), "the name nobody"),
    "a bias with a gradient": (lambda g: g.gathered([g.b], [g.b[0].clone().requires_grad_()]), "has no derivative"),
    "a weight with a gradient": (lambda g: g.gathered([g.b.clone().requires_grad_()], [None]), "has no derivative"),
    "a transformed function": (
        lambda g: torch.func.grad(lambda x: g.summed(x, g.b).sum())(g.a),
        "has no derivative",
    ),
    "a tangent": (lambda g: _dual(lambda x: g.summed(x, g.b), g.a), "no derivative in forward mode"),
    "a tangent of a weight": (lambda g: _dual(lambda x: g.gathered([x], [None]), g.b), "no derivative in forward mode"),
    "a tangent of a collective": (
        lambda g: _dual(lambda x: _OPS.commsir.all_reduce(x, "sum", _name()), g.a),
        "no derivative in forward mode",
    ),
    "a transformed collective": (
        lambda g: torch.func.jvp(lambda x: _OPS.commsir.all_gather(x, _name()), (g.a,), (g.a,)),
        "no derivative in forward mode",
    ),
}


def mistakes(rank: int, size: int) -> dict[str, str]:
    """What is said of calls that are wrong; "nothing" if they give a result."""
    said, given = {}, _Given(rank, size)
    for name, (call, _) in MISTAKES.items():
        try:
            call(given)
            said[name] = "nothing"
        except Exception as error:
            said[name] = _error(error)
    return said


def _mapped(given: _Given) -> tuple[Any, Any]:
    both = torch.stack((given.a, 2 * given.a))
    return torch.vmap(lambda x: given.summed(x, given.b))(both)[1], 2 * given.summed(given.a, given.b)


def _without_gradients(given: _Given) -> tuple[Any, Any]:
    with torch.no_grad():
        return given.summed(given.a.clone().requires_grad_(), given.b), given.summed(given.a, given.b)


def _in_inference(given: _Given) -> tuple[Any, Any]:
    with torch.inference_mode():
        return given.summed(given.a.clone(), given.b), given.summed(given.a, given.b)


def _under_autocast(given: _Given) -> tuple[Any, Any]:
    """The type is that of the operands."""
    with torch.autocast(DEVICE, torch.bfloat16):
        return given.summed(given.a, given.b), given.summed(given.a, given.b)


#: Calls that are right, and what else gives the same.
EQUALS: dict[str, Callable[[_Given], tuple[Any, Any]]] = {
    "mapped over a batch": _mapped,
    "without gradients": _without_gradients,
    "inference": _in_inference,
    "autocast": _under_autocast,
    "scales that are views": lambda g: (
        g.scaled(g.one.view(1, 1).expand(g.rows, 1), torch.stack((g.of_columns, g.of_columns), 1)[:, 0]),
        g.scaled(g.one, g.of_columns),
    ),
    "scales of rows by one": lambda g: (
        g.scaled(g.of_rows, g.one),
        g.scaled(g.of_rows, g.one.expand(1, 16).contiguous()),
    ),
    "terms that are no multiple of 16": lambda g: (
        g.scaled(g.one, g.one, a=g.a8[:, :13], b=g.b8[:13]),
        g.summed(g.a8[:, :13].float() * 0.5, g.b8[:13].float() * 0.5),
    ),
    "fp8 without terms": lambda g: (
        g.scaled(g.one, g.one, a=g.a8[:, :0], b=g.b8[:0]),
        torch.zeros(g.rows, 16, dtype=g.dtype),
    ),
    "ends that are a view": lambda g: (
        g.summed(g.a, g.groups, ends=torch.stack((g.ends, g.ends), 1)[:, 0]),
        g.summed(g.a, g.groups, ends=g.ends),
    ),
    "a group of all rows": lambda g: (
        g.summed(g.a, g.groups, group_rows=1000),
        g.summed(g.a, g.groups[0]),
    ),
    "a bias that is repeated": lambda g: (
        g.gathered([g.b], [g.one.to(g.dtype).expand(16)])[0],
        g.gathered([g.b], [None])[0] + 0.5,
    ),
}


def equals(rank: int, size: int) -> dict[str, str]:
    """What is wrong with each pair of results; "": they are equal."""
    # GPUs multiply groups, and fp8 with scales of rows, into bfloat16.
    given = _Given(rank, size, torch.bfloat16 if DEVICE == "cuda" else torch.float32)
    # torch multiplies fp8 of any number of terms on the CPU alone.
    left = {"terms that are no multiple of 16"} if DEVICE == "cuda" else set()
    return {name: _difference(*make(given), 16, size) for name, make in EQUALS.items() if name not in left}


# ---------------------------------------------------------------------------------------------------------------------
# The overlapped ways, with threads for ranks
# ---------------------------------------------------------------------------------------------------------------------


def overlap(monkeypatch: Any, run: Any, ranks: int, op: str, blocks: int) -> dict[str, str]:
    """What becomes of operands by the overlapped way of an op; "" for the right result, or if there is nothing to
    overlap."""
    own = threading.local()
    monkeypatch.setattr(matmuls, "_ranks", lambda name: ranks)
    monkeypatch.setattr(matmuls, "_may_overlap", lambda *given: True)
    monkeypatch.setattr(matmuls, "_are_alike", lambda *given: True)
    monkeypatch.setattr(matmuls, "_space", lambda name, device, size: own.space)
    monkeypatch.setattr(matmuls, "_choose", lambda *given: model.Choice(blocks, 2.0, 1.0))

    def call(name: str, space: Any) -> torch.Tensor:
        own.space = space
        a, b = OPERANDS[name](space.rank, ranks)
        if not op.endswith(("gather", "before")):
            return matmuls._send_products(op, a, b, "group")
        return matmuls._multiply_arrivals(op.removesuffix("_before"), a, [b], [None], False, "group")[0]

    said = {}
    for name, make in OPERANDS.items():
        given = [make(rank, ranks) for rank in range(ranks)]
        if any(one.layout is not torch.strided for one in given[0]):
            continue
        # The model chooses no blocks that do not divide the rows, and none where there is nothing to multiply.
        rows = math.prod(given[0][0].shape[:-1])
        is_known = given[0][0].is_floating_point() and all(one.numel() for one in given[0])
        if not is_known or rows % (ranks * blocks):
            continue
        try:
            made = run(lambda space, name=name: call(name, space))
        except Exception as error:
            said[name] = _error(error)
            continue
        wide = [(_wide(a), _wide(b)) for a, b in given]
        wants = _wanted(op, wide, ranks)
        k = given[0][0].shape[-1]
        differences = [_difference(got, want, k, ranks) for got, want in zip(made, wants, strict=True)]
        said[name] = "; ".join(filter(None, differences))
    return said


def _wanted(op: str, given: list[tuple[Any, Any]], ranks: int) -> list[torch.Tensor]:
    """The results of all ranks."""
    if op == "all_gather":
        return [torch.cat([a for a, _ in given]) @ b for _, b in given]
    if op == "all_to_all_before":
        arrived = [torch.cat([a.chunk(ranks)[rank] for a, _ in given]) for rank in range(ranks)]
        return [a @ b for a, (_, b) in zip(arrived, given, strict=True)]
    products = [a @ b for a, b in given]
    if op == "all_to_all":
        return [torch.cat([one.chunk(ranks)[rank] for one in products]) for rank in range(ranks)]
    total = torch.stack(products).sum(0)
    return [total] * ranks if op == "all_reduce" else list(total.chunk(ranks))
