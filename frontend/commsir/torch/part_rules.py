"""Rules of operations that take parts of rows, or join them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from torch.fx import Node

from commsir.torch.elementwise_rules import sigmoid_of
from commsir.torch.region_builder import Region, Tile
from commsir.torch.region_nodes import Unsupported, aten, cut_dim, cut_of, slice_of
from commsir.torch.reporting import described

__all__ = ["known_number", "size_along"]


def known_number(node: Node, value: Any) -> int:
    """Returns a place or size that is known when the graph is compiled, and raises where it is not."""
    if not isinstance(value, int):
        raise Unsupported(f"{described(node)} takes a part whose place or size is not known when it is compiled")
    return value


def _stride_in_row(region: Region, node: Node, shape: Sequence[Any], width: int, dim: int) -> int:
    """How many elements of a row one step along the dimension is. Parts along it have to lie in one piece."""
    dims = region.row_dims(shape, width)
    inside = dim % max(len(shape), 1) - (len(shape) - dims)
    if dims == 0 or inside < 0:
        raise Unsupported(f"{described(node)} takes some rows, or joins rows of several tensors")
    last = [known_number(node, size) for size in shape[len(shape) - dims :]]
    if prod(last[:inside]) != 1:
        raise Unsupported(f"{described(node)} takes parts of rows of {width} elements that do not lie in one piece")
    return prod(last[inside + 1 :])


def _parts(region: Region, node: Node, pieces: Sequence[tuple[int, int]]) -> tuple[Tile, ...]:
    """`pieces` of the operand along the dimension: where each begins, and its size."""
    source = node.args[0]
    assert isinstance(source, Node)
    if source not in region.tiles:
        raise Unsupported(f"{described(node)} is a view of a tensor from outside")
    tile, shape = region.operand(source), source.meta["val"].shape
    step = _stride_in_row(region, node, shape, tile.width, cut_dim(node))
    return tuple(region.part(tile, begin * step, size * step) for begin, size in pieces)


def size_along(node: Node) -> int:
    """Returns the size of the dimension that the node takes parts of."""
    shape = node.all_input_nodes[0].meta["val"].shape
    return known_number(node, shape[cut_dim(node)])


@cut_of(aten.slice.Tensor)
def _slice(region: Region, node: Node) -> Tile:
    size = size_along(node)
    begin, end, step = slice_of(node)
    if step not in (None, 1):
        raise Unsupported(f"{described(node)} takes elements that do not lie side by side")
    first, last, _ = slice(*(None if one is None else known_number(node, one) for one in (begin, end))).indices(size)
    return _parts(region, node, [(first, max(last - first, 0))])[0]


@cut_of(aten.select.int)
def _select(region: Region, node: Node) -> Tile:
    return _parts(region, node, [(known_number(node, node.args[2]) % size_along(node), 1)])[0]


def _pieces(sizes: Sequence[int]) -> list[tuple[int, int]]:
    return [(sum(sizes[:number]), size) for number, size in enumerate(sizes)]


@cut_of(aten.split_with_sizes.default)
def _split_with_sizes(region: Region, node: Node) -> tuple[Tile, ...]:
    sizes: Any = node.args[1]
    return _parts(region, node, _pieces([known_number(node, size) for size in sizes]))


@cut_of(aten.split.Tensor)
def _split(region: Region, node: Node) -> tuple[Tile, ...]:
    size, each = size_along(node), known_number(node, node.args[1])
    return _parts(region, node, [(begin, min(each, size - begin)) for begin in range(0, size, max(each, 1))])


@cut_of(aten.unbind.int)
def _unbind(region: Region, node: Node) -> tuple[Tile, ...]:
    return _parts(region, node, [(begin, 1) for begin in range(size_along(node))])


@cut_of(aten.glu.default)
def _glu(region: Region, node: Node) -> Tile:
    """The first half of each row, by the sigmoid of the second."""
    half = size_along(node) // 2
    value, gate = _parts(region, node, [(0, half), (half, half)])
    return region.binary("arith.mulf", value, sigmoid_of(region, gate))


@cut_of(aten.constant_pad_nd.default)
def _pad(region: Region, node: Node) -> Tile:
    """Constants on both sides of rows."""
    source, sizes = node.args[0], node.args[1]
    assert isinstance(source, Node) and isinstance(sizes, (list, tuple))
    value: Any = node.args[2] if len(node.args) > 2 else node.kwargs.get("value", 0)
    before, after = (known_number(node, size) for size in sizes[:2])
    if any(sizes[2:]) or min(before, after) < 0:
        raise Unsupported(f"{described(node)} pads other dimensions than the last, or takes parts away")
    tile, shape = region.numbers_of(region.operand(source)), source.meta["val"].shape
    if source not in region.tiles or _stride_in_row(region, node, shape, tile.width, -1) != 1:
        raise Unsupported(f"{described(node)} is no row of what is computed here")
    sides = [region.constant(float(value), size) for size in (before, after) if size]
    return region.joined([*sides[: before > 0], tile, *sides[before > 0 :]])


@cut_of(aten.cat.default)
def _cat(region: Region, node: Node) -> Tile:
    sources: Any = node.args[0]
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    whole, width = region.shape, region.width
    tiles = []
    for source in sources:
        shape = source.meta["val"].shape
        region.begin_node(shape)  # An argument is read as a tensor of that shape.
        tile = region.across(region.operand(source), region.width)
        _stride_in_row(region, node, shape, tile.width, dim)  # type: ignore[arg-type]
        tiles.append(tile)
    region.shape, region.width = whole, width
    _stride_in_row(region, node, whole, width, dim)  # type: ignore[arg-type]
    return region.joined(tiles)
