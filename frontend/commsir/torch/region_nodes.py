"""Which nodes of an FX graph regions hold, and how these reduce, cut or join rows.

An operation has one rule. A module of rules (regions.py imports them all) enters it here by `rule_of`, or by
`reduction_of` or `cut_of` if it does not work element by element. A rule is called as `rule(region, node)`, and returns
the tile of the node's result, or a tuple of those of its results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node

__all__ = [
    "CASTS",
    "CUTS",
    "PLACES",
    "REDUCTIONS",
    "RULES",
    "VIEWS",
    "Misfit",
    "Rule",
    "Unsupported",
    "aten",
    "cut_dim",
    "cut_of",
    "cut_sizes",
    "cuts_last_dim",
    "is_arithmetic",
    "is_elementwise",
    "is_part",
    "is_row_statistic",
    "moves_nothing",
    "parts_alone",
    "reduced_dims",
    "reduction_of",
    "row_sizes",
    "rule_of",
    "same_size",
    "same_sizes",
    "slice_of",
    "strided_alone",
]

aten = torch.ops.aten


class Unsupported(Exception):
    """The reason why a node cannot be part of a region."""


class Misfit(Unsupported):
    """The same of a tensor or a tile alone, which does not name the node."""


def same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are known to be the same."""
    return len(a) == len(b) and all(map(same_size, a, b))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are known to be the same."""
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(a == b))


#: Of a region that is under construction, and a node.
Rule = Callable[[Any, Node], Any]
RULES: dict[Any, Rule] = {}
#: The ones that do not work element by element: they reduce rows, or take parts of them and join them.
REDUCTIONS: set[Any] = set()
CUTS: set[Any] = set()
#: Of those, the ones that make longer rows.
_JOINS = (
    aten.cat.default,
    aten.constant_pad_nd.default,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
)
#: What puts the elements of rows into an order, all of them or the first.
_ORDERED = (aten.topk.default, aten.sort.default, aten.sort.stable)
#: And the ones that compute what they cut out.
_COMPUTED = (aten.glu.default, aten.gather.default, aten.cumsum.default, *_ORDERED)
#: What makes places in rows.
PLACES = (aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim, *_ORDERED)
CASTS = (torch.ops.prims.convert_element_type.default, aten._to_copy.default)
_WAIT = torch.ops._c10d_functional.wait_tensor.default
VIEWS = {
    aten.view.default,
    aten.reshape.default,
    aten._unsafe_view.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.alias.default,
    aten.detach.default,
    _WAIT,
}


def is_arithmetic(node: Node) -> bool:
    """Whether the node only computes a value, with an operation that regions support."""
    return (node.target in RULES or node.target is operator.getitem) and node.target is not _WAIT


def moves_nothing(node: Node) -> bool:
    """Whether the node only changes the view of its operand; outside of a region, that costs nothing."""
    if node.target is aten.expand.default:  # To the shape that it has, as before a bmm.
        return same_size(node.meta["val"].numel(), node.all_input_nodes[0].meta["val"].numel())
    return node.target in VIEWS


def is_elementwise(node: Node) -> bool:
    """Whether each element of the result depends only on the elements at the same position of aligned tensors."""
    known = node.target in RULES and node.target not in REDUCTIONS and node.target not in CUTS
    return known and not moves_nothing(node) and node.target is not aten.expand.default


def is_part(node: Node) -> bool:
    """Whether the node is one or several parts of another tensor: views outside a region, which cost nothing."""
    source = node.args[0] if node.target is operator.getitem else node
    return isinstance(source, Node) and source.target in CUTS and source.target not in (*_JOINS, *_COMPUTED)


def parts_alone(graph: Graph, node: Node) -> list[Node]:
    """Replaces a split by one slice for each part, and returns the slices. Does nothing if the sizes are not known."""
    if node.target not in (aten.split.Tensor, aten.split_with_sizes.default):
        return []
    dim = cut_dim(node)
    sizes = [one.shape[dim] for one in node.meta["val"]]
    if not all(isinstance(size, int) for size in sizes):
        return []
    slices = []
    for part in list(node.users):
        number: Any = part.args[1]
        begin = sum(sizes[:number])
        with graph.inserting_before(part):
            made = graph.call_function(aten.slice.Tensor, (node.args[0], dim, begin, begin + sizes[number]))
        made.meta = {**part.meta}
        part.replace_all_uses_with(made)
        graph.erase_node(part)
        slices.append(made)
    graph.erase_node(node)
    return slices


def strided_alone(graph: Graph, node: Node) -> None:
    """Replaces every n-th element of the last dimension, which a region has no part for, by one of each n."""
    if node.target is not aten.slice.Tensor or not cuts_last_dim(node):
        return
    source: Any = node.args[0]
    *shape, size = source.meta["val"].shape
    begin, end, step = given = slice_of(node)
    if not isinstance(size, int) or not all(one is None or isinstance(one, int) for one in given):
        return
    taken = range(size)[slice(begin, end, step)]
    first = taken.start
    if taken.step < 2 or size % taken.step or first >= taken.step or taken != range(first, size, taken.step):
        return
    step = taken.step
    with graph.inserting_before(node):
        groups = graph.call_function(aten.reshape.default, (source, [*shape, size // step, step]))
        groups.meta["val"] = source.meta["val"].unflatten(-1, (size // step, step))
        one = graph.call_function(aten.select.int, (groups, len(shape) + 1, first))
    one.meta = {**node.meta}
    node.replace_all_uses_with(one)
    graph.erase_node(node)


def slice_of(node: Node) -> list[Any]:
    """Begin, end and step of a slice; None: the program has none."""
    given = [*node.args[2:], None, None, None][:3]
    names = ("start", "end", "step")
    return [node.kwargs.get(name) if one is None else one for one, name in zip(given, names, strict=True)]


def cuts_last_dim(node: Node) -> bool:
    """Whether the node cuts the last dimension, or joins tensors along it."""
    if node.target not in CUTS:
        return False
    rank = int(node.all_input_nodes[0].meta["val"].dim())
    return rank > 0 and cut_dim(node) % rank == rank - 1


def cut_sizes(node: Node) -> int | None:
    """Returns the size of the last dimension if the node cuts it, or of the first of those that it joins; None if it
    does neither, or the size is not known."""
    if not cuts_last_dim(node) or (node.target in _JOINS and node.target is not aten.cat.default):
        return None
    size = node.all_input_nodes[0].meta["val"].shape[-1]
    return size if isinstance(size, int) else None


def is_row_statistic(node: Node) -> bool:
    """Whether the node reduces only the last dimension, and keeps it."""
    if node.target not in REDUCTIONS or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    source = node.all_input_nodes[0].meta["val"]
    kept = node.meta["val"].dim() == source.dim()
    return kept and reduced_dims(node, source.dim()) == [source.dim() - 1]


def row_sizes(node: Node) -> int | None:
    """Returns how many elements a reduction of the last dimensions combines, or None if that is not known."""
    if node.target not in REDUCTIONS:
        return None
    value = node.all_input_nodes[0].meta["val"]
    dims = reduced_dims(node, value.dim())
    if not dims or dims != list(range(value.dim() - len(dims), value.dim())):
        return None
    sizes = value.shape[dims[0] :]
    return prod(sizes) if all(isinstance(size, int) for size in sizes) else None


def reduced_dims(node: Node, rank: int) -> list[int]:
    """The dimensions that a reduction of a tensor of `rank` dimensions reduces, in order."""
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if dims is None or dims == []:
        return list(range(rank))
    given: Any = dims if isinstance(dims, (list, tuple)) else [dims]
    return sorted(int(d) % rank for d in given) if rank else []


def rule_of(*targets: Any) -> Callable[[Rule], Rule]:
    """Enters the rule of operations that work element by element."""

    def enter(rule: Rule) -> Rule:
        for target in targets:
            RULES[target] = rule
        return rule

    return enter


def reduction_of(*targets: Any) -> Callable[[Rule], Rule]:
    """Enters the rule of operations that reduce rows."""
    REDUCTIONS.update(targets)
    return rule_of(*targets)


def cut_of(*targets: Any) -> Callable[[Rule], Rule]:
    """Enters the rule of operations that take parts of rows, or join them."""
    CUTS.update(targets)
    return rule_of(*targets)


def cut_dim(node: Node) -> int:
    """The dimension that parts are taken along."""
    if node.target is aten.constant_pad_nd.default:
        return -1
    if node.target is aten.glu.default and len(node.args) < 2:
        return int(node.kwargs.get("dim", -1))  # type: ignore[arg-type]
    at = 2 if node.target in (aten.split.Tensor, aten.split_with_sizes.default, aten.topk.default) else 1
    dim: Any = node.args[at] if len(node.args) > at else node.kwargs.get("dim", -1 if node.target in _ORDERED else 0)
    return int(dim)
