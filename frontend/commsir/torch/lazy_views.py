"""Collectives that write to views which negate or conjugate lazily.

torch's dispatcher hands a kernel that knows nothing of such views copies of them. What a collective writes into a copy
is lost, or, where torch copies it back, copied before the collective has ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed
from torch.utils import _pytree as pytree

dist: Any = torch.distributed
_C: Any = torch._C
_Library: Any = torch.library.Library

__all__ = ["install", "install_outputs"]

_GROUP = "__torch__.torch.classes.c10d.ProcessGroup"
#: Whose tensors are those of the program, and nothing else.
_WAIT = "_c10d_functional::wait_tensor"
#: The registrations live as long as these.
_libraries: list[Any] = []

_Kernel = Callable[..., Any]


def _is_lazy(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_neg() or value.is_conj())


def _resolved(given: Any) -> Any:
    """The arguments with copies in place of lazy views."""
    return pytree.tree_map(lambda one: one.clone().resolve_neg().resolve_conj() if _is_lazy(one) else one, given)


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    return (one for one in pytree.tree_leaves(given) if isinstance(one, torch.Tensor))


def _is_ours(given: Any, ours: Callable[[Any], list[Any]]) -> bool:
    """Whether the process group of a call of c10d gives its tensors to CommsIR's backend."""
    for one in given:
        if isinstance(one, _C.ScriptObject) and one._type().qualified_name() == _GROUP:
            group = dist.ProcessGroup.unbox(one)
            tensor = next(_tensors(given), None)
            return bool(ours(group)) and (tensor is None or group._get_backend(tensor.device).name() == "commsir")
    return False


def _wrap_c10d(op: Any, after: Any, ours: Callable[[Any], list[Any]]) -> _Kernel:
    """Wrapper of a c10d function: CommsIR's backend gets the program's tensors, others get what they always got."""

    def call(keys: Any, *given: Any) -> Any:
        return op.redispatch(keys & after, *(given if _is_ours(given, ours) else _resolved(given)))

    return call


def _wrap_functional(op: Any, after: Any) -> _Kernel:
    """Wraps a collective that writes to an argument: it must end before the result is copied back."""
    written = [argument.name for argument in op._schema.arguments if argument.is_write]

    def call(keys: Any, *given: Any, **named: Any) -> Any:
        used, used_named = _resolved((given, named))
        names = [argument.name for argument in op._schema.arguments]
        all_given, all_used = (dict(zip(names, one, strict=False)) for one in (given, used))
        made = op.redispatch(keys & after, *used, **used_named)
        for name in written:
            targets, sources = ((all_of | more)[name] for all_of, more in ((all_given, named), (all_used, used_named)))
            for target, source in zip(_tensors(targets), _tensors(sources), strict=True):
                torch.ops._c10d_functional.wait_tensor(source)
                if target is not source:
                    target.copy_(source)
        return (all_given | named)[written[0]] if isinstance(made, (torch.Tensor, list, tuple)) else made

    return call


def _waiting(op: Any, after: Any) -> _Kernel:
    def call(keys: Any, *given: Any) -> Any:
        return op.redispatch(keys & after, *given)

    return call


def _kernel_of(name: str, op: Any, after: Any, ours: Callable[[Any], list[Any]]) -> _Kernel | None:
    """None: what torch does is right, as for what writes into tensors of its own."""
    if name == _WAIT:
        return _waiting(op, after)
    if name.startswith("c10d::"):
        return _wrap_c10d(op, after, ours) if any("Tensor" in str(one.type) for one in op._schema.arguments) else None
    return _wrap_functional(op, after) if any(one.is_write for one in op._schema.arguments) else None


@functools.cache
def install(ours: Callable[[Any], list[Any]]) -> None:
    """Once, for all process groups. `ours` returns the backends of a group that are CommsIR's."""
    for space in ("c10d", "_c10d_functional"):
        _register(space, ours)


@functools.cache
def install_outputs() -> None:
    """Once, for the ops of CommsIR that write to tensors of the program. torch ends the process in their place."""
    _register("commsir", lambda group: [])


def _register(space: str, ours: Callable[[Any], list[Any]]) -> None:
    library = _Library(space, "IMPL")
    _libraries.append(library)
    for full in _C._dispatch_get_all_op_names():
        of, _, name = full.partition("::")
        if of != space:
            continue
        base, _, overload = name.partition(".")
        op = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
        for key in ("Negative", "Conjugate"):
            after = _C._dispatch_keyset_full_after(getattr(_C.DispatchKey, key))
            if kernel := _kernel_of(full, op, after, ours):
                library.impl(name, kernel, key, with_keyset=True)
