"""The call forms of a process group's methods: with options objects, or with their fields as arguments.

Groups in C++ take both, `group.allreduce([x], options)` and `group.allreduce(x, op=ReduceOp.MAX)`, by the names that
torch has for arguments. Those in Python are written for the first form alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

dist: Any = torch.distributed

__all__ = ["accept_all_forms"]

_LISTS, _SPLITS = "output_tensors input_tensors opts", "output input output_split_sizes input_split_sizes"
_UNEVEN = (dist.AllToAllOptions, f"{_SPLITS} opts", f"{_SPLITS} timeout")
_BASE = (dist.ReduceScatterOptions, "outputTensor inputTensor opts")
#: Of each method its options, and torch's names for its arguments in each form, that with options first.
_FORMS: dict[str, tuple[Any, ...]] = {
    "allreduce": (dist.AllreduceOptions, "tensors opts", "tensors op timeout", "tensor op timeout"),
    "allreduce_coalesced": (dist.AllreduceCoalescedOptions, "tensors opts"),
    "broadcast": (dist.BroadcastOptions, "tensors opts", "tensor root timeout"),
    "reduce": (dist.ReduceOptions, "tensors opts", "tensor root op timeout"),
    "allgather": (dist.distributed_c10d.AllgatherOptions, _LISTS, "output_tensors input_tensor timeout"),
    "allgather_coalesced": (dist.distributed_c10d.AllgatherOptions, "output_lists input_list opts"),
    "gather": (dist.GatherOptions, _LISTS, "output_tensors input_tensor root timeout"),
    "scatter": (dist.ScatterOptions, _LISTS, "output_tensor input_tensors root timeout"),
    "reduce_scatter": (dist.ReduceScatterOptions, _LISTS, "output input op timeout"),
    "_reduce_scatter_base": _BASE,
    "reduce_scatter_single": _BASE,
    "alltoall": (dist.AllToAllOptions, _LISTS),
    "alltoall_base": _UNEVEN,
    "all_to_all_single": _UNEVEN,
    "barrier": (dist.BarrierOptions, "opts", "timeout"),
    "send": (None, "tensors dstRank tag"),
    "recv": (None, "tensors srcRank tag"),
}
_OPTIONS = tuple({options for options, *_ in _FORMS.values() if options})
_KINDS: dict[str, Any] = {
    "opts": _OPTIONS,
    "op": (dist.ReduceOp, dist.ReduceOp.RedOpType),
    "root": int,
    "timeout": timedelta,
    **dict.fromkeys(("tensors", "output_tensors", "input_tensors"), (list, tuple)),
    **dict.fromkeys(("tensor", "output_tensor", "input_tensor"), torch.Tensor),
}
#: What options call it.
_HELD = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def accept_all_forms(cls: type[Any]) -> None:
    """Makes the methods that a class defines accept every call form."""
    for name in _FORMS.keys() & vars(cls).keys():
        setattr(cls, name, _accepting_all_forms(vars(cls)[name], *_FORMS[name]))


def _accepting_all_forms(method: Callable[..., Any], options: Any, first: str, *others: str) -> Callable[..., Any]:
    count = len(first.split())

    @functools.wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        # torch itself has the first, and is not to wait.
        has_options = len(given) == count and (given[-1] is None or isinstance(given[-1], _OPTIONS))
        if named or (options and not has_options):
            for form in (first, *others):
                if (held := _bound(form.split(), given, named)) is not None:
                    return method(self, *(held.values() if form == first else _with_options(held, options())))
        # What is in no form is the method's to refuse.
        return method(self, *given, **named)

    return call


def _bound(names: list[str], given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the arguments in the order of a form, or None if they do not match it."""
    held = dict(zip(names, given, strict=False)) | named
    if len(held) != len(given) + len(named) or not held.keys() <= set(names):
        return None
    lacks = set(names) - held.keys() - {"opts", "op", "timeout", "tag"}
    fits = not lacks and all(_fits(name, value) for name, value in held.items())
    return {name: held[name] for name in names if name in held} if fits else None


def _fits(name: str, value: Any) -> bool:
    kinds = _KINDS.get(name, object)
    return isinstance(value, kinds) or (value is None and name in ("opts", "timeout"))


def _with_options(held: dict[str, Any], options: Any) -> list[Any]:
    """Returns the arguments in the form with options, which takes lists, or lists of lists, of tensors."""
    for name in [name for name in held if name in _HELD]:
        if (value := held.pop(name)) is not None:
            setattr(options, _HELD[name], value)
    alone = "tensors" not in held and "input_split_sizes" not in held
    return [*([value] if alone else value for value in held.values()), options]
