"""Operations of other libraries that the pass treats as torch's collectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.errors import UsageError
from commsir.torch.collectives import named_argument

__all__ = ["Replacement", "group_of", "is_any_in", "register_collective", "restore", "uuid", "write"]

_C10D: Any = torch.distributed.distributed_c10d
_FUNCTIONAL: Any = torch.ops._c10d_functional
#: How they are called: the collective, then its arguments behind the input; "ranks" and "reduce" stand for those.
_OWN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "all_reduce": (_FUNCTIONAL.all_reduce.default, ("reduce",)),
    "reduce_scatter": (_FUNCTIONAL.reduce_scatter_tensor.default, ("reduce", "ranks")),
    "all_gather": (_FUNCTIONAL.all_gather_into_tensor.default, ("ranks",)),
}
_GROUPS = ("group_name", "group", "process_group")

#: From the value of the operation's group argument to the process group, or its name.
Groups = Mapping[Any, Any] | Callable[[Any], Any]


@dataclass(frozen=True)
class _Registration:
    op: str
    reduce_op: str
    groups: Groups | None

    def key(self) -> Any:
        """Key for Inductor's cache; None: changes of the groups are not detectable."""
        if callable(self.groups):
            return None
        names = sorted((str(key), group_of(group)) for key, group in (self.groups or {}).items())
        return (self.op, self.reduce_op, tuple(names))


@dataclass(frozen=True)
class Replacement:
    """A collective that replaces an operation of another library."""

    wait: Node
    begun: Node
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


_meanings: dict[Any, _Registration] = {}


def group_of(group: Any) -> str:
    """Returns the name of a process group that is given as an object or by name."""
    return group if isinstance(group, str) else str(group.group_name)


def register_collective(operation: Any, op: str, *, reduce_op: str = "sum", groups: Groups | None = None) -> None:
    """Registers an operation as a collective, so that `torch.compile` fuses it with adjacent arithmetic.

    `operation` is a custom op without effects, one of `torch.ops`, or its name, "library::name". Its first argument is
    the input, and its result that of `op`: "all_reduce", or "all_gather" or "reduce_scatter" along dimension 0.
    `groups` gives the process group, or its name, for the value of the operation's argument `group_name`, `group` or
    `process_group`; without it, that value is the name, and an operation without such an argument is over the default
    group. All ranks register alike, before they compile. Where nothing is fused, the operation stays.
    """
    if op not in _OWN:
        raise UsageError(f'register_collective: there is no collective "{op}": it is one of {", ".join(_OWN)}')
    _meanings[_overload(operation)] = _Registration(op, "" if op == "all_gather" else reduce_op, groups)


def _overload(operation: Any) -> Any:
    found = operation
    if isinstance(found, str):
        library, _, name = found.partition("::")
        name, _, overload = name.partition(".")
        try:
            found = getattr(getattr(getattr(torch.ops, library), name), overload or "default")
        except AttributeError:
            raise UsageError(
                f'register_collective: there is no operation "{operation}" yet: import what defines it first'
            ) from None
    found = getattr(found, "_opoverload", found)
    if isinstance(found, torch._ops.OpOverloadPacket):
        found = found.default
    if not isinstance(found, torch._ops.OpOverload):
        raise UsageError(
            f"register_collective: {operation!r} is not an operation: give one of torch.ops, "
            "a torch.library.custom_op, or its name"
        )
    if found._schema.is_mutable:
        raise UsageError(f"register_collective: {found} writes into its arguments; only what makes its result is taken")
    return found


def uuid() -> Any:
    """Key of all registrations, for Inductor's cache; None: do not cache."""
    keys = {str(target): meaning.key() for target, meaning in _meanings.items()}
    return None if None in keys.values() else tuple(sorted(keys.items()))


def _group(node: Node, meaning: _Registration) -> str:
    given = named_argument(node, *_GROUPS)
    if meaning.groups is not None:
        found = meaning.groups(given) if callable(meaning.groups) else meaning.groups[given]
        return group_of(found)
    return group_of(_C10D._get_default_group() if given is None else given)


def _is_result(op: str, given: torch.Tensor, made: torch.Tensor, ranks: int) -> bool:
    rows = list(given.shape)
    if op != "all_reduce":
        if not rows:
            return False
        rows[0] = rows[0] * ranks if op == "all_gather" else rows[0] // ranks
    return given.dtype == made.dtype and list(made.shape) == rows


def is_any_in(graph: Graph) -> bool:
    """Whether the graph has a registered operation."""
    return bool(_meanings) and any(node.target in _meanings for node in graph.nodes if node.op == "call_function")


def write(graph: Graph) -> list[Replacement]:
    """Replaces registered operations by torch's own collectives. Returns the replaced nodes."""
    written = list[Replacement]()
    for node in list(graph.nodes):
        meaning = _meanings.get(node.target) if node.op == "call_function" else None
        value = node.meta.get("val")
        given = node.args[0] if node.args else None
        if meaning is None or not isinstance(given, Node) or not isinstance(value, torch.Tensor):
            continue
        if any(isinstance(one, Node) for one in (*node.args[1:], *node.kwargs.values())):
            continue
        group = _group(node, meaning)
        ranks = int(_C10D._resolve_process_group(group).size())
        if not _is_result(meaning.op, given.meta["val"], value, ranks):
            continue
        target, names = _OWN[meaning.op]
        stands: dict[str, Any] = {"ranks": ranks, "reduce": meaning.reduce_op}
        with graph.inserting_before(node):
            begun = graph.call_function(target, (given, *(stands[name] for name in names), group))
            wait = graph.call_function(_FUNCTIONAL.wait_tensor.default, (begun,))
        for one in (begun, wait):
            one.meta = dict(node.meta)
        node.replace_all_uses_with(wait)
        written.append(Replacement(wait, begun, node.target, node.args, dict(node.kwargs)))
        graph.erase_node(node)
    return written


def restore(graph: Graph, written: list[Replacement]) -> None:
    """Restores the operations whose collectives were not fused."""
    for one in written:
        if one.begun._erased or one.wait._erased or one.wait.args != (one.begun,):
            continue
        with graph.inserting_before(one.begun):
            node = graph.call_function(one.target, (one.begun.args[0], *one.args[1:]), one.kwargs)
        node.meta = dict(one.begun.meta)
        one.wait.replace_all_uses_with(node)
        graph.erase_node(one.wait)
        graph.erase_node(one.begun)
