"""Rules of operations that reduce rows."""

from __future__ import annotations

import torch
from torch._inductor import inductor_prims
from torch.fx import Node

from commsir.torch.region_builder import FLOATS, Region, Tile
from commsir.torch.region_nodes import Unsupported, aten, reduction_of, row_sizes, rule_of
from commsir.torch.reporting import described

__all__ = ["MOST_PLACES"]

#: How many places of a row a float32 tells apart.
MOST_PLACES = 1 << 24


def _check_reduced(node: Node, tile: Tile) -> None:
    """Raises where the node does not reduce whole rows, of which the tile is one."""
    if tile.width == 1:
        raise Unsupported(f"{described(node)} reduces what has one element a row")
    size = row_sizes(node)
    if size is None:
        raise Unsupported(f"{described(node)} reduces other dimensions than the last")
    if size != tile.width:
        raise Unsupported(f"{described(node)} reduces {size} elements, of rows of {tile.width}")


def _reduced(region: Region, node: Node) -> Tile:
    """The operand of a reduction over whole rows."""
    source = node.args[0]
    assert isinstance(source, Node)
    tile = region.numbers_of(region.operand(source))
    _check_reduced(node, tile)
    if node.kwargs.get("dtype") not in (None, torch.float32):
        raise Unsupported(f"{described(node)} reduces in {node.kwargs['dtype']}")
    return tile


@reduction_of(aten.sum.dim_IntList)
def _sum(region: Region, node: Node) -> Tile:
    return region.reduce("sum", _reduced(region, node))


@reduction_of(aten.amax.default)
def _amax(region: Region, node: Node) -> Tile:
    return region.reduce("max", _reduced(region, node))


@reduction_of(aten.amin.default)
def _amin(region: Region, node: Node) -> Tile:
    return region.reduce("min", _reduced(region, node))


def _place(region: Region, node: Node, how: str) -> tuple[Tile, Tile]:
    """The largest (smallest) element of each row, and the place of the first that is: NaN is both."""
    tile, dtype = _reduced(region, node), node.all_input_nodes[0].meta["val"].dtype
    if dtype not in FLOATS:
        raise Unsupported(f"{described(node)} compares {dtype}")
    if tile.width > MOST_PLACES:
        raise Unsupported(f"places in rows of {tile.width} elements: up to {MOST_PLACES} are taken")
    found = region.reduce(how, tile)
    is_there = region.logical("arith.ori", region.compare("oeq", tile, found), region.compare("uno", tile, tile))
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    behind = region.constant(float(tile.width), tile.width)
    return found, region.integers_of(region.reduce("min", region.select(is_there, columns, behind)), "i64")


@reduction_of(aten.argmax.default, aten.argmin.default)
def _place_of_one(region: Region, node: Node) -> Tile:
    how = "max" if node.target is aten.argmax.default else "min"
    return _place(region, node, how)[1]


@reduction_of(aten.max.dim, aten.min.dim)
def _one_and_its_place(region: Region, node: Node) -> tuple[Tile, Tile]:
    return _place(region, node, "max" if node.target is aten.max.dim else "min")


@reduction_of(aten.any.dim)
def _any(region: Region, node: Node) -> Tile:
    source = node.args[0]
    assert isinstance(source, Node)
    mask = region.mask_of(region.operand(source))
    _check_reduced(node, mask)
    return region.mask_of(region.reduce("max", region.numbers_of(mask)))


def _average(region: Region, tile: Tile, less: float = 0) -> Tile:
    total = region.reduce("sum", tile)
    return region.binary("arith.divf", total, region.constant(max(tile.width - less, 0), 1))


def _largest_and_total(region: Region, node: Node) -> tuple[Tile, Tile]:
    """Of a softmax: the largest element of each row, and the sum of the exponentials of what is left without it."""
    tile = _reduced(region, node)
    largest = region.reduce("max", tile)
    return largest, region.reduce("sum", region.unary("math.exp", region.binary("arith.subf", tile, largest)))


def _multiply_add(region: Region, node: Node) -> Tile:
    a, b, c = map(region.operand, node.args)
    return region.multiply_add(a, b, c)


# Inductor writes the forward pass of a softmax by the first, on GPUs alone, and the backward pass by the second. Older
# releases of torch lack them.
if _softmax := getattr(inductor_prims, "prepare_softmax_online", None):
    reduction_of(_softmax)(_largest_and_total)
if _fma := getattr(inductor_prims, "fma", None):
    rule_of(_fma)(_multiply_add)


@reduction_of(aten.mean.dim)
def _mean(region: Region, node: Node) -> Tile:
    return _average(region, _reduced(region, node))


def _variance(region: Region, node: Node) -> tuple[Tile, Tile]:
    tile = _reduced(region, node)
    correction = node.kwargs.get("correction", 1)
    mean = _average(region, tile)
    centered = region.binary("arith.subf", tile, mean)
    squares = region.binary("arith.mulf", centered, centered)
    return _average(region, squares, 1.0 if correction is None else float(correction)), mean  # type: ignore[arg-type]


@reduction_of(aten.var_mean.correction)
def _var_mean(region: Region, node: Node) -> tuple[Tile, Tile]:
    return _variance(region, node)


@reduction_of(aten.var.correction)
def _var(region: Region, node: Node) -> Tile:
    return _variance(region, node)[0]
