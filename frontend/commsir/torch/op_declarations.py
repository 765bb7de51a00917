"""What torch.compile and autograd have to know of torch.ops.commsir: shapes of results, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.autograd.forward_ad
from torch.distributed import distributed_c10d as c10d

from commsir.torch import backend
from commsir.torch.op_groups import size_of

__all__ = [
    "DTYPES",
    "empty_like",
    "extension_module",
    "implementations",
    "is_direct",
    "is_grad_enabled",
    "refuse_gradients",
    "rows_of",
]

# torch's own types say less than we know.
_OPS: Any = torch.ops
_C10D: Any = c10d
_LIBRARY: Any = torch.library
_check: Any = torch._check


def rows_of(x: torch.Tensor, numerator: int, denominator: int) -> torch.Tensor:
    """Returns a new tensor like `x`, with that fraction of its rows."""
    shape = list(x.shape) or [1]
    _check(
        shape[0] % denominator == 0,
        lambda: f"commsir: {shape[0]} rows cannot be shared out to {denominator} ranks",
    )
    shape[0] = shape[0] // denominator * numerator
    return x.new_empty(shape)


def empty_like(x: torch.Tensor) -> torch.Tensor:
    """Returns a new contiguous tensor like `x`."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _fake_all_reduce(input: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:  # noqa: A002
    return empty_like(input)


def _fake_all_gather(input: torch.Tensor, group_name: str) -> torch.Tensor:  # noqa: A002
    return rows_of(input, size_of(group_name.encode()), 1)


def _fake_reduce_scatter(input: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:  # noqa: A002
    return rows_of(input, 1, size_of(group_name.encode()))


def _fake_all_to_all(input: torch.Tensor, group_name: str) -> torch.Tensor:  # noqa: A002
    rows_of(input, 1, size_of(group_name.encode()))
    return empty_like(input)


def _fake_broadcast(input: torch.Tensor, root: int, group_name: str) -> torch.Tensor:  # noqa: A002
    return empty_like(input)


DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


def _fake_fused_collective(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    consume: str,
    out_types: str,
    out_columns: list[int],
    symmetric: bool,
    group_name: str,
    site: str = "",
    parts: list[torch.Tensor] | None = None,
    produce: str = "",
    sources: int = 0,
) -> list[torch.Tensor]:
    ranks = size_of(group_name.encode())
    for arg in args:
        _check_device("an argument", arg, input)
    shape = list(input.shape) if input.dim() > 1 else [1, *input.shape]
    if op == "all_gather":
        shape[0] *= ranks
    elif op == "reduce_scatter":
        shape[0] //= ranks
    return [
        input.new_empty([*shape[:-1], columns], dtype=DTYPES[kind])
        for kind, columns in zip(out_types.split(","), out_columns, strict=True)
    ]


def _check_device(what: str, tensor: torch.Tensor, input: torch.Tensor) -> None:  # noqa: A002
    _check(
        tensor.device == input.device,
        lambda: f"commsir: {what} is on {tensor.device}, but the input on {input.device}; move them to one device",
    )


def _check_contiguous(out: torch.Tensor) -> None:
    _check(
        out.is_contiguous(),
        lambda: "commsir: an output must be contiguous: pass a contiguous tensor, and copy it from there",
    )


def _check_result(out: torch.Tensor, input: torch.Tensor, result: torch.Tensor) -> None:  # noqa: A002
    """As Tensors.cpp has it: `out` is what `result` would be."""
    _check_device("the output", out, input)
    _check(
        out.dtype == input.dtype,
        lambda: f"commsir: the output is {out.dtype}, but the input {input.dtype}; give tensors of one type",
    )
    _check(
        out.shape == result.shape,
        lambda: (
            f"commsir: the output has the shape {tuple(out.shape)}, but the result of an input of shape "
            f"{tuple(input.shape)} has {tuple(result.shape)}"
        ),
    )
    _check_contiguous(out)


def _fake_out(fake: Any) -> Any:
    def call(input: torch.Tensor, *others: Any, out: torch.Tensor) -> None:  # noqa: A002
        _check_result(out, input, fake(input, *others))

    return call


def _fake_fused_collective_out(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    consume: str,
    symmetric: bool,
    group_name: str,
    *,
    outs: list[torch.Tensor],
) -> None:
    for arg in args:
        _check_device("an argument", arg, input)
    for out in outs:
        _check_device("an output", out, input)
        _check_contiguous(out)


_FAKES = {
    "all_reduce": _fake_all_reduce,
    "all_gather": _fake_all_gather,
    "reduce_scatter": _fake_reduce_scatter,
    "all_to_all": _fake_all_to_all,
    "broadcast": _fake_broadcast,
}
for _name, _fake in _FAKES.items():
    _LIBRARY.register_fake(f"commsir::{_name}", _fake)
    _LIBRARY.register_fake(f"commsir::{_name}.out", _fake_out(_fake))
_LIBRARY.register_fake("commsir::fused_collective", _fake_fused_collective)
_LIBRARY.register_fake("commsir::fused_collective.out", _fake_fused_collective_out)
_LIBRARY.register_fake("commsir::_unfused", lambda input, group_name, operation="": None)
#: By which compiled code keeps the order of calls, and those whose results nobody reads: other ranks wait for them.
#: It is torch's own, and not public yet: None where a torch has no such thing.
_ordered: Any = getattr(getattr(torch._library, "effects", None), "EffectType", None)
for _name in (*_FAKES, "fused_collective") if hasattr(_LIBRARY, "_register_effectful_op") and _ordered else ():
    _LIBRARY._register_effectful_op(f"commsir::{_name}", _ordered.ORDERED)


def _linear(name: str, op: str) -> None:
    if op not in ("sum", "avg"):
        raise RuntimeError(f'torch.ops.commsir.{name} has a derivative for "sum" and "avg", not for "{op}"')


def _all_reduce_backward(grad: torch.Tensor, op: str, group: str) -> torch.Tensor:
    _linear("all_reduce", op)
    return cast(torch.Tensor, _OPS.commsir.all_reduce(grad.contiguous(), op, group))


def _all_gather_backward(grad: torch.Tensor, group: str) -> torch.Tensor:
    return cast(torch.Tensor, _OPS.commsir.reduce_scatter(grad.contiguous(), "sum", group))


def _reduce_scatter_backward(grad: torch.Tensor, op: str, group: str) -> torch.Tensor:
    _linear("reduce_scatter", op)
    part = grad / size_of(group.encode()) if op == "avg" else grad
    return cast(torch.Tensor, _OPS.commsir.all_gather(part.contiguous(), group))


def _all_to_all_backward(grad: torch.Tensor, group: str) -> torch.Tensor:
    return cast(torch.Tensor, _OPS.commsir.all_to_all(grad.contiguous(), group))


def _broadcast_backward(grad: torch.Tensor, root: int, group: str) -> torch.Tensor:
    # The root's input reaches every rank: its derivative is the sum of theirs.
    total = cast(torch.Tensor, _OPS.commsir.all_reduce(grad.contiguous(), "sum", group))
    rank = _C10D._resolve_process_group(group).rank()
    if rank == root:
        return total
    # Zeros that depend on the sum: a second derivative needs every rank in the collective again.
    return torch.where(torch.ones((), dtype=torch.bool, device=total.device), torch.zeros_like(total), total)


implementations = _LIBRARY.Library("commsir", "FRAGMENT")
_below_autograd: Any = torch._C._AutoDispatchBelowAutograd
_after_autograd: Any = torch._C._after_autograd_keyset
is_grad_enabled = torch.is_grad_enabled
_forward_ad: Any = torch.autograd.forward_ad
#: The stable ABI has no autograd, and no way to go on below it: the backend's extension has, and calls Python for
#: derivatives alone. None: Python is asked by each call.
extension_module: Any = backend.module_at_hand()
is_direct = extension_module is not None


def _any_tensor(value: Any, holds: Callable[[torch.Tensor], bool]) -> bool:
    """Whether it holds for a tensor, or for one in a list."""
    if isinstance(value, list | tuple):
        return any(_any_tensor(one, holds) for one in value)
    return isinstance(value, torch.Tensor) and holds(value)


def _refuse_tangents(name: str, arguments: Any) -> None:
    """No op has a derivative in forward mode: it would drop the tangent."""
    if _forward_ad._current_level < 0:
        return
    if _any_tensor(arguments, lambda one: _forward_ad.unpack_dual(one).tangent is not None):
        raise RuntimeError(
            f"commsir::{name} has no derivative in forward mode, but an argument is a dual tensor: use torch.func.vjp"
            " or backward()"
        )


def _differentiate(name: str, backward: Any) -> None:
    """Gives an op of one tensor its derivative: `backward` gets the gradient and the op's other arguments.

    What torch.library.register_autograd does costs several times as much, since it is made for every kind of schema.
    """
    redispatch = getattr(_OPS.commsir, name).default.redispatch

    class Derivative(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keys: Any, input: torch.Tensor, *others: Any) -> Any:  # noqa: A002
            ctx.others = others
            with _below_autograd():
                return redispatch(keys & _after_autograd, input, *others)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return (None, backward(grad, *ctx.others), *(None,) * len(ctx.others))

    apply: Any = Derivative.apply

    def call(keys: Any, input: torch.Tensor, *others: Any) -> Any:  # noqa: A002
        _refuse_tangents(name, [input])
        if input.requires_grad and is_grad_enabled():
            return apply(keys, input, *others)
        with _below_autograd():
            return redispatch(keys & _after_autograd, input, *others)

    if is_direct:
        extension_module.differentiate(name, call)
    else:
        implementations.impl(name, call, "Autograd", with_keyset=True)


_differentiate("all_reduce", _all_reduce_backward)
_differentiate("all_gather", _all_gather_backward)
_differentiate("reduce_scatter", _reduce_scatter_backward)
_differentiate("all_to_all", _all_to_all_backward)
_differentiate("broadcast", _broadcast_backward)


def refuse_gradients(name: str, why: str) -> None:
    """Makes an op without a derivative raise an error if an argument requires a gradient."""
    if is_direct:
        extension_module.refuse_gradients(name, why)
        return
    base, _, overload = name.partition(".")
    redispatch = getattr(getattr(_OPS.commsir, base), overload or "default").redispatch

    def call(keys: Any, *given: Any, **named: Any) -> Any:
        arguments = [*given, *named.values()]
        _refuse_tangents(name, arguments)
        if is_grad_enabled() and _any_tensor(arguments, lambda one: one.requires_grad):
            raise RuntimeError(why)
        with _below_autograd():
            return redispatch(keys & _after_autograd, *given, **named)

    implementations.impl(name, call, "Autograd", with_keyset=True)


for _name in (*_FAKES, "fused_collective"):
    refuse_gradients(
        f"{_name}.out",
        f"torch.ops.commsir.{_name}.out writes into memory and has no derivative, but an argument requires grad:"
        " call it under torch.no_grad(), or without an output",
    )
refuse_gradients(
    "fused_collective",
    "torch.ops.commsir.fused_collective has no derivative, but an argument requires grad: call it under"
    " torch.no_grad(), or write the collective and the arithmetic one by one, which torch.compile fuses",
)
