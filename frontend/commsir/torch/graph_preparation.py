"""Rewrites a graph so that regions can hold more of what follows its collectives."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from commsir.torch.collectives import Collective, set_value
from commsir.torch.regions import cuts_last_dim, is_arithmetic, moves_nothing, parts_alone, same_sizes, strided_alone

__all__ = [
    "descendants",
    "drop_places",
    "free_sizes",
    "masks_as_where",
    "remove_dead_arithmetic",
    "split_parts",
    "split_products",
    "split_reductions",
]


def free_sizes(graph: Graph, collective: Collective) -> None:
    """Takes sizes from the collective's input instead of its result, so that they do not depend on the result."""
    source, value = collective.node.args[0], collective.node.meta["val"]
    assert isinstance(source, Node)
    size_of = torch.ops.aten.sym_size.int
    later = False
    for node in list(graph.nodes):
        later = later or node is collective.node
        if not later or node.target is not size_of:
            continue
        same = [d for d, size in enumerate(value.shape) if statically_known_true(size == node.meta["val"])]
        if not same or isinstance(value.shape[same[0]], int):
            continue
        with graph.inserting_before(collective.node):
            size = graph.call_function(size_of, (source, same[0]))
            size.meta["val"] = source.meta["val"].shape[same[0]]
            if same[0] == 0 and collective.op in ("all_gather", "reduce_scatter"):
                scale = operator.mul if collective.op == "all_gather" else operator.floordiv
                ranks = collective.node.args[1 if collective.op == "all_gather" else 2]
                size = graph.call_function(scale, (size, ranks))
                size.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(size)
        graph.erase_node(node)


def descendants(starts: Iterable[Node], most: int) -> list[Node]:
    """Returns the arithmetic that follows, with the first nodes that are not arithmetic; not many more than `most`."""
    begun = list(starts)
    found = dict.fromkeys(begun)
    for node in begun:
        if len(found) > most:
            break
        if node in found and (found[node] is None or is_arithmetic(node) or moves_nothing(node)):
            for user in node.users:
                if user not in found:
                    found[user] = user
                    begun.append(user)
    return [node for node, is_start in found.items() if is_start]


def drop_places(graph: Graph, everything: Iterable[Collective]) -> None:
    """Largest and smallest elements after a collective whose places nobody reads become reductions without places."""
    for node in descendants((one.node for one in everything if one.whole), len(graph.nodes)):
        to = _WITH_PLACES.get(node.target)
        if to is None or any(user.target is not operator.getitem or user.args[1] != 0 for user in node.users):
            continue
        source, dim, *keeps = node.args
        with graph.inserting_before(node):
            values = graph.call_function(to, (source, [dim], *keeps), dict(node.kwargs))
            set_value(values)
        for user in list(node.users):
            user.replace_all_uses_with(values)
            graph.erase_node(user)
        graph.erase_node(node)


def split_reductions(graph: Graph, everything: Iterable[Collective]) -> None:
    """Splits reductions of a whole tensor after a collective into one per row, which a region can hold, and one of
    those.
    """
    for node in descendants((one.node for one in everything if one.whole), len(graph.nodes)):
        to: Any = _WHOLE_REDUCTIONS.get(node.target)
        if to is None or not _is_whole_reduction(node, node.all_input_nodes[0]):
            continue
        source = node.all_input_nodes[0]
        with graph.inserting_before(node):
            rows = graph.call_function(to, (source, [-1], True))
            set_value(rows)
            whole = graph.call_function(to, (rows, list(range(rows.meta["val"].dim()))))
            whole.meta = {**node.meta}
            if whole.meta["val"].dim():  # It keeps dimensions.
                whole.args = (*whole.args, True)
            if node.target in _MEANS:
                total, whole = whole, graph.call_function(_aten.div.Scalar, (whole, source.meta["val"].numel()))
                whole.meta, total.meta = total.meta, {**node.meta}
        node.replace_all_uses_with(whole)
        graph.erase_node(node)


def split_parts(graph: Graph, everything: Iterable[Collective]) -> None:
    """Parts of rows behind a collective, each by itself: a kernel may hold some of them."""
    for node in descendants((one.node for one in everything if one.whole), len(graph.nodes)):
        if cuts_last_dim(node):
            parts_alone(graph, node)
            strided_alone(graph, node)


def masks_as_where(graph: Graph) -> None:
    """Writes numbers that are put where a mask is set as a choice, which a region holds: a vocabulary that is shared
    out zeroes the rows of other ranks' tokens so."""
    for node in graph.find_nodes(op="call_function", target=_aten.index_put.default):
        whole, indices, number, *adds = node.args
        (mask, *others) = indices
        if others or any(adds) or node.kwargs or getattr(mask, "target", None) is None:
            continue
        value, known = whole.meta["val"], mask.meta["val"]
        if known.dtype is not torch.bool or number.meta["val"].numel() != 1:
            continue
        with graph.inserting_before(node):
            for _ in range(value.dim() - known.dim()):
                mask = graph.call_function(_aten.unsqueeze.default, (mask, -1))
                set_value(mask)
            if number.meta["val"].dim():
                number = graph.call_function(_aten.reshape.default, (number, []))
                set_value(number)
            chosen = graph.call_function(_aten.where.self, (mask, number, whole))
        chosen.meta = {**node.meta}
        node.replace_all_uses_with(chosen)
        graph.erase_node(node)


def _comes_from(node: Any, collectives: set[Node]) -> bool:
    """Whether it is a collective's result, past views, and one that is read once."""
    while isinstance(node, Node) and moves_nothing(node) and len(node.users) == 1:
        node = node.args[0]
    return node in collectives


def split_products(graph: Graph, everything: Iterable[Collective]) -> None:
    """A matmul that is added to a collective's result is added by itself again, which a region holds: Inductor has put
    the two together."""
    begun = {one.node for one in everything if one.whole}
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.addmm.default) if begun else ():
        bias, *operands = node.args
        if node.kwargs or not same_sizes(bias.meta["val"].shape, node.meta["val"].shape):
            continue
        if not _comes_from(bias, begun):
            continue
        with graph.inserting_before(node):
            product = graph.call_function(torch.ops.aten.mm.default, tuple(operands))
            set_value(product)
            total = graph.call_function(torch.ops.aten.add.Tensor, (bias, product))
        total.meta = {**node.meta}
        node.replace_all_uses_with(total)
        graph.erase_node(node)


_aten: Any = torch.ops.aten
#: What gives the places of the elements as well, and what does not.
_WITH_PLACES: dict[Any, Any] = {_aten.max.dim: _aten.amax.default, _aten.min.dim: _aten.amin.default}
#: What reduces a whole tensor, and the form of it that reduces some dimensions.
_WHOLE_REDUCTIONS: dict[Any, Any] = {
    _aten.amax.default: _aten.amax.default,
    _aten.amin.default: _aten.amin.default,
    _aten.max.default: _aten.amax.default,
    _aten.min.default: _aten.amin.default,
    _aten.sum.dim_IntList: _aten.sum.dim_IntList,
    _aten.sum.default: _aten.sum.dim_IntList,
    _aten.mean.default: _aten.sum.dim_IntList,
    _aten.mean.dim: _aten.sum.dim_IntList,
}
#: Of those, the sums that are divided.
_MEANS = (_aten.mean.default, _aten.mean.dim)
#: And all that add up, in float32 alone: a sum of rows is rounded once more.
_SUMS = (_aten.sum.dim_IntList, _aten.sum.default, *_MEANS)


def _is_whole_reduction(node: Node, source: Node) -> bool:
    value = source.meta["val"]
    if value.dim() < 2 or node.kwargs.get("dtype") is not None:
        return False
    if node.target in _SUMS and value.dtype is not torch.float32:
        return False
    if node.target in _MEANS and not isinstance(value.numel(), int):
        return False
    if node.target in (_aten.max.default, _aten.min.default, _aten.sum.default, _aten.mean.default):
        return True
    dims: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", [])
    return not dims or len({d % value.dim() for d in dims}) == value.dim()


def remove_dead_arithmetic(graph: Graph) -> None:
    """Removes arithmetic without users, which Inductor leaves when it folds; a region of it would have no results."""
    for node in reversed(graph.nodes):
        if not node.users and is_arithmetic(node):
            graph.erase_node(node)
