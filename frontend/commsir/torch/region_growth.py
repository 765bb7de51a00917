"""Finds the largest region behind a collective that a kernel can hold."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.capi import element_type
from commsir.torch.collectives import Collective
from commsir.torch.graph_preparation import descendants
from commsir.torch.movable_nodes import WAIT, Hoister
from commsir.torch.regions import Region, Unsupported, cut_sizes, is_part, moves_nothing, row_sizes
from commsir.torch.reporting import described
from commsir.torch.saved_extremes import compared_again

__all__ = ["identity_region", "largest_region", "results_of", "stored_as", "with_stored_rounded"]

#: Largest number of results that a kernel writes.
_MOST_OUTPUTS = 16
#: How many other lengths of rows are tried behind a collective.
_MOST_SIZES = 2
#: How many nodes behind it are searched for them.
_MOST_LOOKED_AT = 256


def _grow(graph: Graph, start: Node, region: Region, before: Hoister) -> tuple[list[Node], list[str]]:
    """Adds nodes to the region as long as it can hold them. Also returns why it could not hold others."""
    inside: dict[Node, None] = {start: None}
    # Nodes that stay outside but need something from inside: what they make cannot be an argument.
    after: set[Node] = set()
    because: list[str] = []
    refused = compared_again(graph)
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
            if node in refused:
                raise Unsupported(refused[node])
            region.add(node)
            inside[node] = None
        except Unsupported as why:
            after.add(node)
            if not late:
                because.append(str(why))
    return list(inside), because


def results_of(region: Region, inside: Iterable[Node]) -> list[Node]:
    """Returns the region's nodes that others use, without duplicates that differ only in shape."""
    members = dict.fromkeys(inside)
    needed = [node for node in members if any(user not in members for user in node.users)]
    return list({stored_as(region, node): node for node in reversed(needed)}.values())[::-1]


def stored_as(region: Region, node: Node) -> Any:
    """What a kernel writes for it: the same for nodes that are the same in another shape."""
    tile = region.tiles[node]
    value = node.meta["val"]
    return (tile, value.dtype) if isinstance(value, torch.Tensor) else node


def _excess_results(region: Region, inside: Iterable[Node]) -> int:
    """Returns how many results are too many; more if some cannot be stored at all."""
    results = results_of(region, inside)
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
            reversed(_final_nodes(kept)), key=lambda node: len(results_of(region, [x for x in kept if x is not node]))
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
    count = len(results_of(region, kept))
    ways = [_trim_views(way(region, kept)) for way in (_from_the_end, _from_all_ends)]
    best = max(ways, key=_count_arithmetic)
    if _excess_results(region, best):  # Views that were taken out can be results of several types.
        best = best[:1]
    first = next(node for node in kept if node not in best)
    return best, [
        f"{count} of its values are needed elsewhere, a kernel writes {_MOST_OUTPUTS}: it ends before "
        f"{described(first)}"
    ]


@dataclass(frozen=True)
class _FusedRegion:
    """The largest region that a kernel can hold."""

    region: Region
    inside: list[Node]
    because: list[str]

    def weight(self) -> int:
        return _count_arithmetic(self.inside)


def _grow_region(graph: Graph, collective: Collective, before: Hoister, columns: int | None) -> _FusedRegion:
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
    behind = descendants([collective.node], _MOST_LOOKED_AT)
    asked = dict.fromkeys(size(node) for node in behind for size in (row_sizes, cut_sizes))
    possible = set(collective.row_sizes()) if len(asked) > 1 else set()
    return [size for size in asked if size in possible and size != columns][:_MOST_SIZES]


def largest_region(graph: Graph, collective: Collective, before: Hoister) -> _FusedRegion:
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


def with_stored_rounded(collective: Collective, made: _FusedRegion) -> _FusedRegion:
    """Has the region read what it stores as others read it. A statistic of rows that are not rounded would not be that
    of the rows which the backward pass reads."""
    region = made.region
    stored = {region.tiles[node] for node in results_of(region, made.inside) if _rounds(region, node)}
    first = {region.tiles[node]: node for node in reversed(made.inside)}
    rounded = frozenset(first[tile] for tile in stored)
    if not rounded:
        return made
    again = collective.begin(region.columns, rounded)
    for node in made.inside[1:]:
        again.add(node)
    return replace(made, region=again)


def identity_region(collective: Collective, grown: _FusedRegion) -> _FusedRegion:
    """Returns the region that only returns the received data."""
    region, node = collective.begin(), collective.node
    inside = [node]
    for user in [user for user in node.users if user.target is WAIT]:
        region.add(user)
        inside.append(user)
    return _FusedRegion(region, inside, grown.because)
