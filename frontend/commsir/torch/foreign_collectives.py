"""Operations of other libraries that the pass treats as torch's collectives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.errors import UsageError
from commsir.torch.collectives import named_argument, set_value
from commsir.torch.regions import same_sizes

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

    #: All nodes in order; the last is the result. Others than the collective and its wait rearrange dimensions.
    made: tuple[Node, ...]
    begun: Node
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def is_whole(self) -> bool:
        """Whether nothing has been fused with it: each node still feeds only the next ones."""
        if any(one._erased for one in self.made):
            return False
        users = (user for one in self.made[:-1] for user in one.users)
        return all(user in self.made or _is_skip(user) for user in users)


def _is_skip(node: Node) -> bool:
    """Whether it only tells other ranks that nothing is fused."""
    return node.target is torch.ops.commsir._unfused.default


_meanings: dict[Any, _Registration] = {}


def group_of(group: Any) -> str:
    """Returns the name of a process group that is given as an object or by name."""
    return group if isinstance(group, str) else str(group.group_name)


def register_collective(operation: Any, op: str, *, reduce_op: str = "sum", groups: Groups | None = None) -> None:
    """Registers an operation as a collective, so that `torch.compile` fuses it with adjacent arithmetic.

    `operation` is a custom op without effects, one of `torch.ops`, or its name, "library::name". Its first argument is
    the input, and its result that of `op`: "all_reduce", or "all_gather" or "reduce_scatter" along the dimension whose
    size differs from the input's.
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


def _dim_of(op: str, given: torch.Tensor, made: torch.Tensor, ranks: int) -> int | None:
    """Returns the dimension that `op` gathers or scatters along, 0 if none; None: `made` is not its result."""
    if given.dtype != made.dtype:
        return None
    if op == "all_reduce" or not given.dim():
        return 0 if op == "all_reduce" and same_sizes(given.shape, made.shape) else None
    part, whole = (given, made) if op == "all_gather" else (made, given)
    for dim in range(part.dim()):
        sizes = list(part.shape)
        sizes[dim] = sizes[dim] * ranks
        if same_sizes(sizes, whole.shape):
            return dim
    return None


def is_any_in(graph: Graph) -> bool:
    """Whether the graph has a registered operation."""
    return bool(_meanings) and any(node.target in _meanings for node in graph.nodes if node.op == "call_function")


def _pieces_joined(graph: Graph, whole: Node, ranks: int, cut: int, joined: int) -> list[Node]:
    """Cuts a tensor into `ranks` pieces along a dimension and joins them along another one; all nodes, that last."""
    size = whole.meta["val"].shape[cut] // ranks
    split = graph.call_function(torch.ops.aten.split.Tensor, (whole, size, *([cut] if cut else [])))
    pieces = [graph.call_function(operator.getitem, (split, number)) for number in range(ranks)]
    made = [split, *pieces, graph.call_function(torch.ops.aten.cat.default, (pieces, joined))]
    for one in made:
        set_value(one)
    return made


def _written(graph: Graph, given: Node, meaning: _Registration, ranks: int, group: str, dim: int) -> Iterator[Node]:
    """Writes torch's collective; along another dimension than 0, as torch writes that."""
    source = given
    if meaning.op == "reduce_scatter" and dim:
        pieces = _pieces_joined(graph, given, ranks, dim, 0)
        source = pieces[-1]
        yield from pieces
    target, names = _OWN[meaning.op]
    stands: dict[str, Any] = {"ranks": ranks, "reduce": meaning.reduce_op}
    begun = graph.call_function(target, (source, *(stands[name] for name in names), group))
    set_value(begun)
    yield begun
    wait = graph.call_function(_FUNCTIONAL.wait_tensor.default, (begun,))
    set_value(wait)
    yield wait
    if meaning.op == "all_gather" and dim:
        yield from _pieces_joined(graph, wait, ranks, 0, dim)


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
        dim = _dim_of(meaning.op, given.meta["val"], value, ranks)
        if dim is None:
            continue
        with graph.inserting_before(node):
            made = tuple(_written(graph, given, meaning, ranks, group, dim))
        for one in made:
            one.meta = {**node.meta, "val": one.meta["val"]}
        begun = next(one for one in made if one.target is _OWN[meaning.op][0])
        node.replace_all_uses_with(made[-1])
        written.append(Replacement(made, begun, node.target, node.args, dict(node.kwargs)))
        graph.erase_node(node)
    return written


def restore(graph: Graph, written: list[Replacement]) -> None:
    """Restores the operations whose collectives were not fused."""
    for one in written:
        if not one.is_whole():
            continue
        source, before = one.begun.args[0], one.made[: one.made.index(one.begun)]
        if before:
            if source is not before[-1]:  # It sends a sum of several.
                continue
            source = before[0].all_input_nodes[0]
            before[-1].replace_all_uses_with(source, delete_user_cb=_is_skip)
        with graph.inserting_before(one.begun):
            node = graph.call_function(one.target, (source, *one.args[1:]), one.kwargs)
        node.meta = {**one.begun.meta, "val": one.made[-1].meta["val"]}
        one.made[-1].replace_all_uses_with(node)
        for made in reversed(one.made):
            graph.erase_node(made)
