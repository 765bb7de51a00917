"""Rules of operations that put the elements of rows into an order, add them up in it, or gather or scatter some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from commsir.torch.part_rules import known_number, size_along
from commsir.torch.reduction_rules import MOST_PLACES
from commsir.torch.region_builder import FLOATS, Region, Tile
from commsir.torch.region_nodes import Unsupported, aten, cut_of, cuts_last_dim, same_size, same_sizes
from commsir.torch.reporting import described

__all__ = []

#: How many elements of a row are scattered, gathered or put into an order, each by comparisons with the whole row.
_MOST_SCATTERED = 16


def _check_places(region: Region, node: Node, whole: Sequence[Any], places: Sequence[Any], what: str) -> None:
    """Raises where the places are not some of the last dimension of `whole`, the same number in each row."""
    if not whole or node.args[1] % len(whole) != len(whole) - 1:  # type: ignore[operator]
        raise Unsupported(f"{described(node)} {what} along another dimension than rows")
    if not same_sizes(whole[:-1], places[:-1]) or not isinstance(places[-1], int) or places[-1] > _MOST_SCATTERED:
        raise Unsupported(
            f"{described(node)} {what} {list(places)} elements: up to {_MOST_SCATTERED} of each row are taken"
        )


@cut_of(aten.gather.default)
def _gather(region: Region, node: Node) -> Tile:
    """Compares each place with all places of the row. The largest of what is there and of -inf is what is there, NaN
    and -0.0 among it."""
    source, _, index = node.args
    assert isinstance(source, Node) and isinstance(index, Node)
    if source not in region.tiles:
        raise Unsupported(f"{described(node)} is of elements of a tensor from outside")
    whole = source.meta["val"].shape
    _check_places(region, node, whole, index.meta["val"].shape, "gathers")
    tile = region.numbers_of(region.operand(source))
    if not same_size(tile.width, whole[-1]):
        raise Unsupported(f"{described(node)} gathers elements of rows of {whole[-1]}, not of {tile.width}")
    places = region.across(region.numbers_of(region.operand(index)), region.width)
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    least, found = region.constant(-math.inf, tile.width), []
    for number in range(places.width):
        is_there = region.compare("oeq", columns, region.part(places, number, 1))
        found.append(region.reduce("max", region.select(is_there, tile, least)))
    return found[0] if len(found) == 1 else region.joined(found)


def _row_of(region: Region, node: Node, what: str) -> Tile:
    """The operand: floats of whole rows along the last dimension."""
    source = node.args[0]
    assert isinstance(source, Node)
    value = source.meta["val"]
    if source not in region.tiles:
        raise Unsupported(f"{described(node)} {what} elements of a tensor from outside")
    tile = region.operand(source)
    if not isinstance(tile, Tile) or value.dtype not in FLOATS:
        raise Unsupported(f"{described(node)} {what} elements of {value.dtype}")
    if not cuts_last_dim(node):
        raise Unsupported(f"{described(node)} {what} elements of another dimension than rows")
    if not same_size(tile.width, value.shape[-1]):
        raise Unsupported(f"{described(node)} {what} elements of rows of {value.shape[-1]}, not of {tile.width}")
    return tile


def _next_in_order(region: Region, tile: Tile, left: Tile | None, is_falling: bool) -> tuple[Tile, Tile]:
    """The largest (smallest) of the elements that are left, the first of equal ones, and its place as a float. NaN is
    larger than all numbers."""
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    behind, end = (region.constant(value, tile.width) for value in (tile.width, -math.inf if is_falling else math.inf))
    odd, keys = region.compare("uno", tile, tile), tile
    if not is_falling:  # A number of that size comes first.
        keys = region.select(odd, end, tile)
        columns = region.select(odd, region.binary("arith.addf", columns, behind), columns)
    given = keys if left is None else region.select(left, keys, end)
    found = region.reduce("max" if is_falling else "min", given)
    is_there = region.compare("oeq", keys, found)
    if is_falling:
        is_there = region.logical("arith.ori", is_there, odd)
    if left is not None:
        is_there = region.logical("arith.andi", is_there, left)
    place = region.reduce("min", region.select(is_there, columns, region.constant(2.0 * tile.width, tile.width)))
    if is_falling:
        return found, place
    is_odd = region.compare("oge", place, region.constant(tile.width, 1))
    place = region.select(is_odd, region.binary("arith.subf", place, region.constant(tile.width, 1)), place)
    return region.select(is_odd, region.constant(math.nan, 1), found), place


def _in_order(region: Region, node: Node, count: int, is_falling: bool) -> tuple[Tile, Tile]:
    """The first `count` elements of each row, and their places: one after the other is taken out."""
    tile = _row_of(region, node, "orders")
    if count > _MOST_SCATTERED:
        raise Unsupported(f"{described(node)} orders {count} elements: up to {_MOST_SCATTERED} of each row are taken")
    if tile.width > MOST_PLACES:
        raise Unsupported(f"places in rows of {tile.width} elements: up to {MOST_PLACES} are taken")
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    left, found, places = None, list[Tile](), list[Tile]()
    for _ in range(count):
        one, place = _next_in_order(region, tile, left, is_falling)
        found.append(one)
        places.append(place)
        others = region.compare("une", columns, place)
        left = others if left is None else region.logical("arith.andi", left, others)
    elements, at = (one[0] if count == 1 else region.joined(one) for one in (found, places))
    return elements, region.integers_of(at, "i64")


def _flag(node: Node, at: int, name: str, default: bool) -> bool:
    return bool(node.args[at] if len(node.args) > at else node.kwargs.get(name, default))


@cut_of(aten.topk.default)
def _topk(region: Region, node: Node) -> tuple[Tile, Tile]:
    count = known_number(node, node.args[1])
    if count < 1:
        raise Unsupported(f"{described(node)} takes no elements")
    return _in_order(region, node, count, _flag(node, 3, "largest", True))


@cut_of(aten.sort.default, aten.sort.stable)
def _sort(region: Region, node: Node) -> tuple[Tile, Tile]:
    at = 2 if node.target is aten.sort.default else 3
    return _in_order(region, node, size_along(node), _flag(node, at, "descending", False))


@cut_of(aten.cumsum.default)
def _cumsum(region: Region, node: Node) -> Tile:
    """Adds each element to those 1, 2, 4, … places behind it."""
    tile, dtype = _row_of(region, node, "adds up"), node.kwargs.get("dtype")
    if dtype not in (None, torch.float32):
        raise Unsupported(f"{described(node)} adds up in {dtype}")
    step = 1
    while step < tile.width:
        before = region.part(tile, 0, tile.width - step)
        moved = region.joined([region.constant(0.0, step), before])
        tile, step = region.binary("arith.addf", tile, moved), 2 * step
    return tile


def _scatter_operands(region: Region, node: Node) -> tuple[Tile, Tile, Tile]:
    """What elements are scattered into, their places and the elements: rows of the last dimension."""
    whole, dim, index, source = node.args
    assert isinstance(whole, Node) and isinstance(dim, int) and isinstance(index, Node)
    shape, places = node.meta["val"].shape, index.meta["val"].shape
    base = region._constant_of(whole)
    if base is None:
        raise Unsupported(f"{described(node)} writes into {described(whole)}, which is not one known number")
    _check_places(region, node, shape, places, "scatters")
    if not same_size(region.width, shape[-1]):
        raise Unsupported(f"{described(node)} scatters into rows of {shape[-1]}, not of {region.width}")
    if isinstance(source, Node) and not same_sizes(source.meta["val"].shape, places):
        raise Unsupported(f"{described(node)} scatters some of the elements of {described(source)}")
    saved = region.shape, region.width
    region.begin_node(places)  # Arguments are read as tensors of that shape.
    at = region.across(region.numbers_of(region.operand(index)), region.width)
    elements = region.across(region.numbers_of(region.operand(source, region.width)), region.width)
    region.shape, region.width = saved
    return region.across(base, region.width), at, elements


def _scattered(region: Region, node: Node, adds: bool) -> Tile:
    """Compares each place with all elements of the result's rows."""
    made, places, elements = _scatter_operands(region, node)
    columns = region.emit(f"comms.iota : {region.tensor(made.width)}", made.width)
    for number in range(places.width):
        place, element = (region.part(tile, number, 1) for tile in (places, elements))
        is_there = region.compare("oeq", columns, place)
        wanted = region.binary("arith.addf", made, element) if adds else element
        made = region.select(is_there, wanted, made)
    return made


@cut_of(aten.scatter.src, aten.scatter.value)
def _scatter(region: Region, node: Node) -> Tile:
    return _scattered(region, node, adds=False)


@cut_of(aten.scatter_add.default)
def _scatter_add(region: Region, node: Node) -> Tile:
    return _scattered(region, node, adds=True)
