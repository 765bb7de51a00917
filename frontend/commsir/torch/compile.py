"""torch.compile: a collective and the arithmetic around it become one kernel.

    torch.compile(model, options=commsir.torch.compile_options())

An Inductor pass looks for collectives of torch.distributed (functional ones, which compiled code has), takes the
arithmetic that follows as far as a region can hold it, residual additions and norms among it, and what is done before
to what is sent, such as casts, and puts
`torch.ops.commsir.fused_collective` in their place. `report()` says what was fused, what was not, and why.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from commsir import _native
from commsir.torch import (
    defects,
    foreign_collectives,
    gather_layouts,
    joined_collectives,
    lowerings,
    ops,
    reporting,
)
from commsir.torch.capi import element_type
from commsir.torch.collectives import Collective, collectives_of, is_communication, set_value, site_of
from commsir.torch.fusion_timing import Call, measure
from commsir.torch.joined_collectives import JoinedCollectives
from commsir.torch.matmul import graph as matmuls
from commsir.torch.matmul import model
from commsir.torch.prefetched_weights import emit, weights_behind
from commsir.torch.produce_regions import Produced, narrow, narrowed_type, produce
from commsir.torch.region_lines import join_lines
from commsir.torch.regions import (
    Argument,
    Region,
    Unsupported,
    cut_sizes,
    cuts_last_dim,
    is_arithmetic,
    is_part,
    moves_nothing,
    parts_alone,
    row_sizes,
    same_sizes,
    strided_alone,
)
from commsir.torch.reporting import Fusion, Report, clear_fusions, described, fusions, report

__all__ = [
    "CollectivePass",
    "Fusion",
    "Report",
    "clear_fusions",
    "compile_options",
    "disable",
    "enable",
    "fusions",
    "measure",
    "report",
]

_log = logging.getLogger("commsir.compile")
_WAIT = torch.ops._c10d_functional.wait_tensor.default

#: Largest number of results that a kernel writes.
_MOST_OUTPUTS = 16
#: How many other lengths of rows are tried behind a collective.
_MOST_SIZES = 2
#: How many nodes behind it are searched for them.
_MOST_LOOKED_AT = 256


# ---------------------------------------------------------------------------------------------------------------------
# Finding regions
# ---------------------------------------------------------------------------------------------------------------------


def _is_random(node: Node) -> bool:
    """Whether the node only draws random numbers."""
    schema = getattr(node.target, "_schema", None)
    is_mutable = schema is not None and schema.is_mutable
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not is_mutable


def _is_pinned(node: Node) -> bool:
    """Whether the node begins an operation that other ranks wait for, or has effects."""
    if node.op != "call_function":
        return False
    # Calls of ours in the program are effects.
    effect = node.target is torch.ops.higher_order.with_effects
    return effect or is_communication(node) or _is_random(node) or node.is_impure()


class _Hoister:
    """The nodes that come before a collective begins, or can be moved there.

    The kernel must be at that place: all ranks begin collectives in one order, but may wait for them, and use their
    results, in different orders.
    """

    def __init__(self, graph: Graph, start: Node) -> None:
        self._start = start
        self._places = {node: place for place, node in enumerate(graph.nodes)}
        #: What random numbers were drawn by, or may have been, right before a node draws some.
        self._drawn_before: dict[Node, Node] = {}
        drawn: Node | None = None
        for node in self._places:
            if _is_random(node) or (_is_pinned(node) and not is_communication(node)):
                if drawn is not None:
                    self._drawn_before[node] = drawn
                drawn = node
        #: What keeps a node behind that place; None: nothing.
        self._known: dict[Node, Node | None] = {start: start}

    def _is_later(self, node: Node) -> bool:
        return self._places[node] >= self._places[self._start]

    def __contains__(self, node: Node) -> bool:
        return self._appended(node) is None

    def why_not(self, node: Node) -> str:
        """Returns why a node cannot be moved before the collective."""
        last = self._appended(node)
        assert last is not None
        if last is self._start:
            return f"which needs {described(last)} itself"
        if last.target is torch.ops.higher_order.with_effects or is_communication(last):
            return "which is there once a later collective has begun"
        what = f"for which {described(last)} " if last is not node else "which "
        return f"{what}has an effect after the collective has begun"

    def _needed_by(self, node: Node) -> list[Node]:
        """What has to be there before it: what it reads, and of random numbers those that are drawn earlier."""
        earlier = self._drawn_before.get(node) if _is_random(node) else None
        return [*node.all_input_nodes, *([] if earlier is None else [earlier])]

    def _appended(self, node: Node) -> Node | None:
        waiting = [node]
        while waiting:
            last = waiting[-1]
            sources = [one for one in self._needed_by(last) if self._is_later(one)]
            unknown = [one for one in sources if one not in self._known]
            if unknown and last not in self._known:
                waiting += unknown
                continue
            waiting.pop()
            if last not in self._known:
                # To wait earlier than it is written changes nothing.
                stays = last.target is not _WAIT and _is_pinned(last) and not _is_random(last)
                blocks = [self._known[one] for one in sources if self._known[one] is not None]
                self._known[last] = (
                    None if not self._is_later(last) else last if stays else blocks[0] if blocks else None
                )
        return self._known[node]

    def move(self, nodes: list[Node]) -> None:
        """Puts what is needed for `nodes` before the collective."""
        needed: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if self._is_later(node) and node not in needed:
                needed.add(node)
                waiting += self._needed_by(node)
        for node in sorted(needed, key=self._places.__getitem__):
            self._start.prepend(node)


def _free_sizes(graph: Graph, collective: Collective) -> None:
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


def _grow(graph: Graph, start: Node, region: Region, before: _Hoister) -> tuple[list[Node], list[str]]:
    """Adds nodes to the region as long as it can hold them. Also returns why it could not hold others."""
    inside: dict[Node, None] = {start: None}
    # Nodes that stay outside but need something from inside: what they make cannot be an argument.
    after: set[Node] = set()
    because: list[str] = []
    for node in graph.nodes:
        if node is start or not any(source in inside or source in after for source in node.all_input_nodes):
            continue
        if node.op == "output":
            continue
        late = [source for source in node.all_input_nodes if source in after]
        later = [source for source in node.all_input_nodes if source not in inside and source not in before]
        try:
            if late:
                raise Unsupported(f"{described(node)} needs {described(late[0])}, which comes after the kernel")
            if later:
                raise Unsupported(f"{described(node)} needs {described(later[0])}, {before.why_not(later[0])}")
            region.add(node)
            inside[node] = None
        except Unsupported as why:
            after.add(node)
            if not late:
                because.append(str(why))
    return list(inside), because


def _descendants(starts: Iterable[Node], most: int) -> list[Node]:
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


def _drop_places(graph: Graph, everything: Iterable[Collective]) -> None:
    """Largest and smallest elements after a collective whose places nobody reads become reductions without places."""
    for node in _descendants((one.node for one in everything if one.whole), len(graph.nodes)):
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


def _split_reductions(graph: Graph, everything: Iterable[Collective]) -> None:
    """Splits reductions of a whole tensor after a collective into one per row, which a region can hold, and one of
    those.
    """
    for node in _descendants((one.node for one in everything if one.whole), len(graph.nodes)):
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


def _split_parts(graph: Graph, everything: Iterable[Collective]) -> None:
    """Parts of rows behind a collective, each by itself: a kernel may hold some of them."""
    for node in _descendants((one.node for one in everything if one.whole), len(graph.nodes)):
        if cuts_last_dim(node):
            parts_alone(graph, node)
            strided_alone(graph, node)


def _masks_as_where(graph: Graph) -> None:
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


def _split_products(graph: Graph, everything: Iterable[Collective]) -> None:
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


# ---------------------------------------------------------------------------------------------------------------------
# What fits into a kernel
# ---------------------------------------------------------------------------------------------------------------------


def _results(region: Region, inside: Iterable[Node]) -> list[Node]:
    """Returns the region's nodes that others use, without duplicates that differ only in shape."""
    members = dict.fromkeys(inside)
    needed = [node for node in members if any(user not in members for user in node.users)]
    return list({_stored(region, node): node for node in reversed(needed)}.values())[::-1]


def _stored(region: Region, node: Node) -> Any:
    """What a kernel writes for it: the same for nodes that are the same in another shape."""
    tile = region.tiles[node]
    value = node.meta["val"]
    return (tile, value.dtype) if isinstance(value, torch.Tensor) else node


def _excess_results(region: Region, inside: Iterable[Node]) -> int:
    """Returns how many results are too many; more if some cannot be stored at all."""
    results = _results(region, inside)
    values = [node.meta["val"] for node in results]
    lost = sum(not isinstance(value, torch.Tensor) or not element_type(value.dtype) for value in values)
    return max(len(results) - _MOST_OUTPUTS, 0) + lost * (len(results) + 1)


def _final_nodes(inside: Iterable[Node]) -> list[Node]:
    """Returns the nodes that no other node of the region uses, apart from the collective."""
    members = dict.fromkeys(inside)
    return [node for node in list(members)[1:] if not any(user in members for user in node.users)]


def _is_view_at_the_end(node: Node, members: dict[Node, None], ends: set[Node], all_parts: bool) -> bool:
    """Whether an end costs nothing outside. Parts of a tensor do not, if the kernel writes all of that anyway, or
    nothing but parts of it. `all_parts`: others do not either."""
    if moves_nothing(node) or not is_part(node):
        return moves_nothing(node)
    if not isinstance(node.meta["val"], torch.Tensor):
        return True
    if node.target is operator.getitem:  # A kernel writes none of several values, or all.
        return all(user in ends for user in node.all_input_nodes[0].users)
    users = node.all_input_nodes[0].users
    return all_parts or any(user not in members for user in users) or all(user in ends for user in users)


def _trim_views(inside: list[Node], all_parts: bool = False) -> list[Node]:
    """Drops views at the end of the region, which cost nothing outside."""
    kept = list(inside)
    while True:
        ends, members = set(_final_nodes(kept)), dict.fromkeys(kept)
        last = {node for node in ends if _is_view_at_the_end(node, members, ends, all_parts)}
        if not last:
            return kept
        kept = [node for node in kept if node not in last]


def _from_the_end(region: Region, inside: list[Node]) -> list[Node]:
    """Returns the longest prefix of the region, in graph order, whose results fit."""
    kept = list(inside)
    while len(kept) > 1 and _excess_results(region, kept):
        kept = _trim_views(kept[:-1], all_parts=True)
    return kept


def _from_all_ends(region: Region, inside: list[Node]) -> list[Node]:
    """Drops one final node after the other, those that leave the fewest results first, until the results fit."""
    kept = list(inside)
    while len(kept) > 1 and _excess_results(region, kept):
        drop = min(
            reversed(_final_nodes(kept)), key=lambda node: len(_results(region, [x for x in kept if x is not node]))
        )
        kept = _trim_views([node for node in kept if node is not drop], all_parts=True)
    return kept


def _count_arithmetic(inside: list[Node]) -> int:
    """Counts the arithmetic nodes."""
    return sum(not moves_nothing(node) and node.target is not torch.ops.aten.clone.default for node in inside[1:])


def _limit_results(region: Region, inside: list[Node]) -> tuple[list[Node], list[str]]:
    """Returns the part of a region whose results a kernel can write, and why not all of it."""
    kept = _trim_views(inside)
    if not _excess_results(region, kept):
        return kept, []
    count = len(_results(region, kept))
    ways = [_trim_views(way(region, kept)) for way in (_from_the_end, _from_all_ends)]
    best = max(ways, key=_count_arithmetic)
    if _excess_results(region, best):  # Views that were taken out can be results of several types.
        best = best[:1]
    first = next(node for node in kept if node not in best)
    return best, [
        f"{count} of its values are needed elsewhere, a kernel writes {_MOST_OUTPUTS}: it ends before "
        f"{described(first)}"
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Putting the kernel in their place
# ---------------------------------------------------------------------------------------------------------------------


def _replace(
    graph: Graph,
    collective: Collective,
    region: Region,
    inside: list[Node],
    before: _Hoister,
    everything: list[Any],
    stands: JoinedCollectives | None,
    produced: Produced | None,
    prefetches: bool,
) -> Call | None:
    """Replaces the nodes by the kernel's call, which is returned for measurement."""
    results = _results(region, inside)
    kinds = [element_type(node.meta["val"].dtype) for node in results]
    weights = weights_behind(results) if prefetches else []
    region.prefetched = [(one.dtype, one.count) for one in weights]
    consume = region.text(list(zip(results, kinds, strict=True)))
    widths = [region.tiles[node].width for node in results]
    start, members = collective.node, dict.fromkeys(inside)
    # Apart, the program's collectives run: of what is summed up, or of what is cast.
    parts = list(stands.parts) if stands else [produced.source] if produced and produced.is_cast else None
    sent = produced.text if produced else ""
    shown = (collective.op, collective.reduce_op, consume, kinds, widths, len(parts or ()), sent)
    site = site_of(collective, everything, *shown)
    if stands and stands.own_dim is not None:
        site = ops.own_part(site, stands.own_dim)
    before.move([given.node for given in region.arguments])
    with graph.inserting_before(start):
        call = (collective.reduce_op, consume, ",".join(kinds), widths, False, collective.group)
        rows, *sources = _kernel_input(graph, start, region, produced)
        given = [*sources, *(_kernel_argument(graph, one) for one in region.arguments)]
        given += [emit(graph, weight) for weight in weights]
        fused = graph.call_function(
            torch.ops.commsir.fused_collective.default,
            (collective.op, rows, given, *call, site, parts, sent, len(sources)),
        )
        set_value(fused)
        written = {_stored(region, node): number for number, node in enumerate(results)}
        made: dict[Node, Node] = {}
        for node in members:
            if any(user not in members for user in node.users):
                made[node] = _result_in_shape(graph, fused, written[_stored(region, node)], node)
    for node, part in made.items():
        node.replace_all_uses_with(part, delete_user_cb=lambda user: user not in members)
    for node in [*reversed(inside), *reversed(produced.inside if produced else ())]:
        graph.erase_node(node)
    return Call.of(fused.args)


def _replace_duplicates(graph: Graph, collective: Collective, everything: list[Any], others: tuple[Node, ...]) -> None:
    """One kernel gives the results of several collectives that are the same. It writes each of them: on other ranks
    they may not be the same."""
    nodes = (collective.node, *others)
    region = collective.begin()
    kind = element_type(collective.node.meta["val"].dtype)
    consume = region.text([(collective.node, kind)] * len(nodes))
    site = site_of(collective, everything, collective.op, collective.reduce_op, consume)
    source, call = nodes[0].args[0], (collective.reduce_op, consume, ",".join([kind] * len(nodes)))
    place = (collective.group, ops.repeated(site, len(nodes)))
    widths = [region.columns] * len(nodes)
    with graph.inserting_before(nodes[0]):
        fused = graph.call_function(
            torch.ops.commsir.fused_collective.default,
            (collective.op, source, [], *call, widths, False, *place, None, "", 0),
        )
        set_value(fused)
        results = [_result_in_shape(graph, fused, number, node) for number, node in enumerate(nodes)]
    for node, result in zip(nodes, results, strict=True):
        for wait in [user for user in node.users if user.target is _WAIT]:
            wait.replace_all_uses_with(result)
            graph.erase_node(wait)
        node.replace_all_uses_with(result)
        graph.erase_node(node)


def _reshaped(graph: Graph, node: Node, shape: list[Any]) -> Node:
    made = graph.call_function(torch.ops.aten.reshape.default, (node, shape))
    set_value(made)
    return made


def _rows_of(graph: Graph, start: Node, region: Region) -> Node:
    """The collective's input as rows of the region."""
    source = start.args[0]
    assert isinstance(source, Node)
    if source.meta["val"].shape[-1] == region.columns:
        return source
    return _reshaped(graph, source, [-1, region.columns])


def _kernel_input(graph: Graph, start: Node, region: Region, produced: Produced | None) -> list[Node]:
    """Returns the kernel's input, and the other tensors that `produce` reads."""
    if produced is None:
        return [_rows_of(graph, start, region)]
    first, *rest = (_kernel_argument(graph, one) for one in produced.arguments)
    source = produced.source
    if not same_sizes(first.meta["val"].shape, source.meta["val"].shape) or first.meta["val"].dim() < 2:
        first = _reshaped(graph, first, [-1, region.columns])
    return [first, *rest]


def _kernel_argument(graph: Graph, argument: Argument) -> Node:
    """Returns an argument in the shape that the kernel expects."""
    node = argument.node
    if node.meta["val"].dtype != argument.dtype:
        node = graph.call_function(torch.ops.prims.convert_element_type.default, (node, argument.dtype))
        set_value(node)
    if argument.copied is not None:
        node = graph.call_function(torch.ops.aten.expand.default, (node, list(argument.copied)))
        set_value(node)
        node = graph.call_function(torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format})
        set_value(node)
    shape = argument.shape()
    return node if shape is None else _reshaped(graph, node, shape)


def _result_in_shape(graph: Graph, fused: Node, number: int, node: Node) -> Node:
    """Returns a result of the kernel in the shape of `node`."""
    part = graph.call_function(operator.getitem, (fused, number))
    part.meta["val"] = fused.meta["val"][number]
    dtype = node.meta["val"].dtype
    if part.meta["val"].dtype != dtype:  # A kernel writes masks as int8.
        part = graph.call_function(torch.ops.prims.convert_element_type.default, (part, dtype))
        set_value(part)
    shape = list(node.meta["val"].shape)
    if list(part.meta["val"].shape) != shape:
        part = graph.call_function(torch.ops.aten.reshape.default, (part, shape))
        part.meta["val"] = node.meta["val"]
    return part


def _remove_dead_arithmetic(graph: Graph) -> None:
    """Removes arithmetic without users, which Inductor leaves when it folds; a region of it would have no results."""
    for node in reversed(graph.nodes):
        if not node.users and is_arithmetic(node):
            graph.erase_node(node)


@dataclass(frozen=True)
class _FusedRegion:
    """The largest region that a kernel can hold."""

    region: Region
    inside: list[Node]
    because: list[str]

    def weight(self) -> int:
        return _count_arithmetic(self.inside)


def _grow_region(graph: Graph, collective: Collective, before: _Hoister, columns: int | None) -> _FusedRegion:
    region = collective.begin(columns)
    grown, because = _grow(graph, collective.node, region, before)
    inside, cut = _limit_results(region, grown)
    if len(inside) < len(grown):
        region = collective.begin(columns)
        for node in inside[1:]:
            region.add(node)
    return _FusedRegion(region, inside, because + cut)


def _other_row_lengths(collective: Collective, columns: int) -> list[int]:
    """Returns the row lengths, other than `columns`, of reductions and splits after the collective."""
    behind = _descendants([collective.node], _MOST_LOOKED_AT)
    asked = dict.fromkeys(size(node) for node in behind for size in (row_sizes, cut_sizes))
    possible = set(collective.row_sizes()) if len(asked) > 1 else set()
    return [size for size in asked if size in possible and size != columns][:_MOST_SIZES]


def _largest_region(graph: Graph, collective: Collective, before: _Hoister) -> _FusedRegion:
    """Returns the region that holds the most arithmetic, over the possible row lengths."""
    best = _grow_region(graph, collective, before, None)
    for size in _other_row_lengths(collective, best.region.columns):
        other = _grow_region(graph, collective, before, size)
        best = other if other.weight() > best.weight() else best
    return best


def _rounds(region: Region, node: Node) -> bool:
    """Whether storing the value rounds what the region computes with."""
    value, tile = node.meta["val"], region.tiles[node]
    return isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16) and tile.kind == "f32"


def _with_stored_rounded(collective: Collective, made: _FusedRegion) -> _FusedRegion:
    """Has the region read what it stores as others read it. A statistic of rows that are not rounded would not be that
    of the rows which the backward pass reads."""
    region = made.region
    stored = {region.tiles[node] for node in _results(region, made.inside) if _rounds(region, node)}
    first = {region.tiles[node]: node for node in reversed(made.inside)}
    rounded = frozenset(first[tile] for tile in stored)
    if not rounded:
        return made
    again = collective.begin(region.columns, rounded)
    for node in made.inside[1:]:
        again.add(node)
    return replace(made, region=again)


def _identity_region(collective: Collective, grown: _FusedRegion) -> _FusedRegion:
    """Returns the region that only returns the received data."""
    region, node = collective.begin(), collective.node
    inside = [node]
    for user in [user for user in node.users if user.target is _WAIT]:
        region.add(user)
        inside.append(user)
    return _FusedRegion(region, inside, grown.because)


@dataclass(frozen=True)
class _FusionResult:
    """What a collective is fused with, why not with more, and the kernel's call."""

    names: tuple[str, ...] = ()
    produced: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    call: Call | None = None
    #: What the arithmetic before it gains, in µs.
    gain: float = 0.0


def _before(
    graph: Graph, collective: Collective, columns: int, stands: JoinedCollectives | None
) -> tuple[Produced | None, str]:
    """What the kernel does before it sends, or why it does nothing."""
    if stands:
        return None, ""
    return produce(graph, collective, columns) if collective.sent is None else (narrow(collective, columns), "")


def _fuse(
    graph: Graph, collective: Collective, everything: list[Any], stands: JoinedCollectives | None, prefetches: bool
) -> _FusionResult:
    """Replaces the collective and its region by a kernel. `stands` lists other collectives that the kernel replaces."""
    collective.begin()
    if stands and stands.others:
        _replace_duplicates(graph, collective, everything, stands.others)
        return _FusionResult(because=("it gives the results of several: what follows each of them stays",))
    _free_sizes(graph, collective)
    before = _Hoister(graph, collective.node)
    if not stands:
        collective = replace(collective, sent=narrowed_type(collective))
    made = _largest_region(graph, collective, before)
    if not made.weight():
        made = _identity_region(collective, made)
    if not _results(made.region, made.inside):
        raise Unsupported("nothing reads its result")
    made = _with_stored_rounded(collective, made)
    produced, why = _before(graph, collective, made.region.columns, stands)
    because = [*made.because, *([why] if why else [])]
    if not made.weight() and not stands and produced is None:
        raise Unsupported("; ".join(dict.fromkeys(because)) or "no arithmetic follows")
    names = reporting.operation_names(one for one in made.inside[1:] if one.target is not _WAIT)
    sent = produced.names if produced else ()
    call = _replace(graph, collective, made.region, made.inside, before, everything, stands, produced, prefetches)
    return _FusionResult(names, sent, tuple(because), call, (produced.gain or 0.0) if produced else 0.0)


def _skip(graph: Graph, collective: Collective) -> None:
    """Leaves a collective as it is. Other ranks may want a kernel there; on the CPU, each call tells them."""
    source = collective.node.args[0]
    if not collective.may_be_fused() or not isinstance(source, Node) or source.meta["val"].device.type != "cpu":
        return
    operation = (collective.foreign.operation,) if collective.foreign else ()
    with graph.inserting_before(collective.node):
        skip = graph.call_function(torch.ops.commsir._unfused.default, (source, collective.group, *operation))
        skip.meta["val"] = None


def _skip_all(graph: Graph, why: str) -> None:
    """Leaves all collectives of a graph as they are, after a defect of the pass."""
    name = reporting.graph_name(graph)
    for one in list(collectives_of(graph)):
        reporting.note(replace(_entry(one, name), because=(f"the pass has a defect: {why}",)))
        _skip(graph, one)
    foreign_collectives.announce(graph)


def fuse_collectives(graph: Graph, join_sums: bool = True, prefetch_weights: bool = False) -> int:
    """Fuses what it can; returns the number of kernels. `join_sums`: sums of collectives become one collective.
    `prefetch_weights`: kernels bring the weights of the matmuls behind them into L2."""
    _remove_dead_arithmetic(graph)
    name = reporting.graph_name(graph)
    _split_products(graph, collectives_of(graph))
    _masks_as_where(graph)
    whole = gather_layouts.sink(graph)
    joined, why_not = joined_collectives.join(graph, matmuls.why_apart, join_sums)
    why_not |= whole
    gone = {node for stands in joined.values() for node in stands.others}
    everything = [one for one in collectives_of(graph) if one.node not in gone]
    begun = [one.node for one in everything if one.whole]
    gather_layouts.sink_permutations(graph, {*begun, *_descendants(begun, len(graph.nodes))})
    _drop_places(graph, everything)
    _split_reductions(graph, everything)
    _split_parts(graph, everything)
    count = sum(
        _fuse_one(graph, one, everything, joined.get(one.node), why_not.get(one.node), name, prefetch_weights)
        for one in everything
    )
    if count:
        lint: Any = graph.lint
        lint()
    return count


def _entry(collective: Collective, name: str) -> Fusion:
    """Returns the report entry of a collective before fusion; `name` is the graph's."""
    value = collective.value
    source, module = reporting.source_of(collective.node)
    return Fusion(
        collective.op,
        str(collective.group),
        collective.shape,
        (),
        (),
        dtype="" if value is None else str(value.dtype).removeprefix("torch."),
        graph=name,
        source=source,
        module=module,
    )


def _fuse_one(
    graph: Graph,
    collective: Collective,
    everything: list[Any],
    stands: JoinedCollectives | None,
    why_not: str | None,
    name: str,
    prefetches: bool,
) -> bool:
    """Fuses one collective if possible, and records the result."""
    if collective.node._erased:
        return False
    entry = replace(_entry(collective, name), joined=stands.count if stands else 1)
    value = collective.value
    fused, because = _FusionResult(), [why_not] if why_not else []
    gain = None
    beside = None
    if not collective.foreign or collective.op != "all_gather":  # Scales of rows are gathered by torch's collective.
        beside = matmuls.fuse(graph, collective, everything, _Hoister(graph, collective.node), stands)
    if beside:
        if beside.names and collective.op == "all_gather":
            because.clear()  # What keeps arithmetic from moving before a concatenation: a matmul has moved.
        because.append(beside.because)
    try:
        if beside and beside.names:
            fused, gain = _FusionResult(beside.names), beside.gain
        else:
            fused = _fuse(graph, collective, everything, stands, prefetches)
            because += fused.because if fused.names or not why_not else ()
            gain = None if value is None else model.region_gain(value, entry.joined - 1, bool(fused.names))
            gain = None if gain is None else gain + fused.gain
        done = True
    except Unsupported as why:
        because += [] if why_not else [str(why)]
        _skip(graph, collective)
        done = False
    reasons = tuple(dict.fromkeys(because))
    moved = ("aten.sum.dim_IntList",) if stands and stands.sums_first else ()
    if stands and stands.own_dim is not None:
        moved, entry = ("aten.slice.Tensor",), replace(entry, collective="all_reduce")
    entry = replace(
        entry, fused=(*moved, *fused.names), produced=fused.produced, because=reasons, predicted=gain, call=fused.call
    )
    reporting.note(entry)
    _log.info("%s", entry)
    if beside and beside.other:
        gathered = f"its scales are gathered with the rows that {', '.join(beside.names)} multiplies"
        reporting.note(replace(_entry(beside.other, name), fused=beside.names, because=(gathered,)))
    return done


# ---------------------------------------------------------------------------------------------------------------------
# Inductor
# ---------------------------------------------------------------------------------------------------------------------

_Pass = torch._inductor.custom_graph_pass.CustomGraphPass


@functools.cache
def _sources() -> str:
    """Digests everything that determines the pass's results, apart from torch: this package and the library."""
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.rglob("*.py")))
    return hashlib.sha256(f"{texts}{_native.version()}".encode()).hexdigest()


def _is_of_a_library(node: Node) -> bool:
    """Whether it may be a collective: it is none of torch's own arithmetic."""
    return getattr(node.target, "namespace", "aten") not in ("aten", "prims")


class CollectivePass(_Pass):
    """The pass, for `torch._inductor.config.post_grad_custom_post_pass`; calls the one that was there first."""

    def __init__(self, before: Any = None, join_sums: bool = True, prefetch_weights: bool = False) -> None:
        self.before = before
        self.join_sums = join_sums
        self.prefetch_weights = prefetch_weights
        #: Whether Inductor knows the op that the pass inserts.
        self._is_ready = defects.run_guarded("preparing Inductor", lowerings.lower, "Nothing is fused")
        defects.run_guarded("preparing Dynamo", gather_layouts.let_trace, "It may trace less")

    def __call__(self, graph: Graph) -> None:
        if self.before is not None:
            self.before(graph)
        if not self._is_ready or not any(map(_is_of_a_library, graph.nodes)):
            return
        noted = len(reporting.fusions())
        settings = f"None, {self.join_sums}, {self.prefetch_weights}"
        if said := defects.run_contained(graph, lambda: self.change(graph), settings):
            reporting.drop(noted)
            defects.run_contained(graph, lambda: _skip_all(graph, said))

    def change(self, graph: Graph) -> None:
        """Fuses what it can in the graph."""
        if next(collectives_of(graph), None) is not None or foreign_collectives.is_any_in(graph):
            written = foreign_collectives.write(graph)
            fuse_collectives(graph, self.join_sums, self.prefetch_weights)
            foreign_collectives.restore(written)
        join_lines(graph)

    def uuid(self) -> Any:
        """For Inductor's cache: changes when what the pass does changes. None: nothing says when; nothing is cached."""
        found = list[Any]()
        defects.run_guarded("naming what it does", lambda: found.append(self._key()), "Graphs are not cached")
        return found[0] if found else None

    def _key(self) -> Any:
        if type(self) is not CollectivePass and type(self).uuid is CollectivePass.uuid:
            return None
        inner = self.before.uuid() if isinstance(self.before, _Pass) else None
        if self.before is not None and not inner:
            return None
        registered = foreign_collectives.uuid()
        if registered is None:
            return None
        settings = (self.join_sums, self.prefetch_weights)
        return (_sources(), lowerings.groups_with_symmetric_memory(), registered, settings, inner)


#: Passes that torch calls with more than the graph; () where it has no such kind, or takes one pass alone.
_AWARE: Any = getattr(torch._inductor.custom_graph_pass, "CustomInferenceAwareGraphPass", ())
if not hasattr(torch._inductor.custom_graph_pass, "get_custom_graph_passes"):
    _AWARE = ()


def _appended(before: Any, **settings: bool) -> Any:
    """Returns the existing pass, or passes in a newer torch, followed by this one."""
    if isinstance(before, (list, tuple)):
        return [*before, CollectivePass(None, **settings)]
    if isinstance(before, _AWARE):
        return [before, CollectivePass(None, **settings)]
    return CollectivePass(before, **settings)


def compile_options(*, join_sums: bool = True, prefetch_weights: bool = False, **options: Any) -> dict[str, Any]:
    """Options for torch.compile with the pass among them; `options` are Inductor's other ones.

    `join_sums`: a sum of all_reduces, or of reduce_scatters, becomes one of the sum of their inputs, which rounds in
    another order. All ranks give the same.
    `prefetch_weights`: on GPUs with bulk copies (sm_90 and newer) a kernel brings the weights of the matmuls that read
    its results, up to 32 MiB, into the L2 cache while ranks wait for each other. Results are the same.
    """
    before = options.pop("post_grad_custom_post_pass", None)
    made = _appended(before, join_sums=join_sums, prefetch_weights=prefetch_weights)
    return {**options, "post_grad_custom_post_pass": made}


def enable(*, join_sums: bool = True, prefetch_weights: bool = False) -> None:
    """Adds the pass to every torch.compile of this process from now on; both settings as in `compile_options`."""
    config: Any = torch._inductor.config
    there = config.post_grad_custom_post_pass
    if not any(isinstance(one, CollectivePass) for one in (there if isinstance(there, (list, tuple)) else [there])):
        made = _appended(there, join_sums=join_sums, prefetch_weights=prefetch_weights)
        config.post_grad_custom_post_pass = made


def disable() -> None:
    """Undoes `enable`."""
    config: Any = torch._inductor.config
    there = config.post_grad_custom_post_pass
    if isinstance(there, CollectivePass):
        config.post_grad_custom_post_pass = there.before
    elif isinstance(there, (list, tuple)):
        config.post_grad_custom_post_pass = [one for one in there if not isinstance(one, CollectivePass)]
