"""Arithmetic of an FX graph as the `consume` region of a collective.

A value of a region is a tile: one row of a tensor whose last dimension has `columns` elements, or one element a row.
An element a row goes with the whole row only where the tensor's last dimension is 1: torch aligns shapes at their ends,
so that a mean without keepdim goes along the columns.
Everything is computed in f32, as Inductor does; a cast rounds where the program has one, and results are rounded where
they are stored.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from commsir.torch.capi import element_type

__all__ = ["Region", "Unsupported", "is_arithmetic", "moves_nothing"]

aten = torch.ops.aten
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: The largest number that rounds to the largest of e4m3fn, 448: half of the way to what would be the next.
_MOST_E4M3FN = 464.0


class Unsupported(Exception):
    """Why a node cannot be part of a region."""


@dataclass(frozen=True)
class Tile:
    """An SSA value of `width` f32 elements: the region's columns, or 1."""

    name: str
    width: int


@dataclass
class Region:
    """A region as it grows: text, and the tile that each node has become."""

    columns: int
    rows: int | torch.SymInt
    #: Types of the tiles that arrive, as MLIR writes them.
    arrives: list[str]
    tiles: dict[Node, Any] = field(default_factory=dict)
    arguments: list[Node] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    numbers: int = 0

    # --- text ---

    def tensor(self, width: int, kind: str = "f32") -> str:
        return f"tensor<{width}x{kind}>"

    def emit(self, text: str, width: int) -> Tile:
        """A line that makes a tile: `text` is the right-hand side."""
        name = f"%v{self.numbers}"
        self.numbers += 1
        self.lines.append(f"{name} = {text}")
        return Tile(name, width)

    def constant(self, value: float, width: int) -> Tile:
        if not math.isfinite(value):
            raise Unsupported(f"the constant {value} is not finite")
        return self.emit(f"arith.constant dense<{value:.17e}> : {self.tensor(width)}", width)

    def widen(self, tile: Tile, kind: str) -> Tile:
        if kind == "f32":
            return tile
        return self.emit(
            f"arith.extf {tile.name} : {self.tensor(tile.width, kind)} to {self.tensor(tile.width)}", tile.width
        )

    def narrow(self, tile: Tile, kind: str) -> Tile:
        if kind == "f32":
            return tile
        return self.emit(
            f"arith.truncf {tile.name} : {self.tensor(tile.width)} to {self.tensor(tile.width, kind)}", tile.width
        )

    def across(self, tile: Tile, width: int) -> Tile:
        """`tile` in that width: an element goes with the whole row."""
        if tile.width == width:
            return tile
        return self.emit(f"comms.broadcast_row {tile.name} : {self.tensor(1)} -> {self.tensor(width)}", width)

    def unary(self, op: str, a: Tile) -> Tile:
        return self.emit(f"{op} {a.name} : {self.tensor(a.width)}", a.width)

    def binary(self, op: str, a: Tile, b: Tile) -> Tile:
        width = max(a.width, b.width)
        left, right = self.across(a, width), self.across(b, width)
        return self.emit(f"{op} {left.name}, {right.name} : {self.tensor(width)}", width)

    def reduce(self, kind: str, a: Tile) -> Tile:
        if a.width == 1:
            return a
        return self.emit(f"comms.row_reduce {kind} {a.name} : {self.tensor(a.width)} -> {self.tensor(1)}", 1)

    # --- nodes ---

    def width_of(self, value: torch.Tensor) -> int:
        """How wide a tile of the tensor is: its elements are those of the rows, or one a row."""
        count = value.numel()
        if value.dim() and _same(value.shape[-1], self.columns) and _same(count, self.rows * self.columns):
            return self.columns
        if _same(count, self.rows):
            return 1
        raise Unsupported(f"a tensor of shape {list(value.shape)} has other rows than the collective's result")

    def begin(self, node: Node, tile: str, kind: str) -> None:
        """`node` is what arrives."""
        self.tiles[node] = self.widen(Tile(tile, self.columns), kind)

    def argument(self, node: Node) -> Tile:
        """A tensor from outside: read by the region."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"{node} is no tensor")
        kind = element_type(value.dtype)
        if value.dtype not in _FLOATS:
            raise Unsupported(f"{node} is of {value.dtype}")
        width = self._argument_width(node, value)
        if node not in self.arguments:
            self.arguments.append(node)
        number = self.arguments.index(node)
        tile = self.widen(Tile(f"%b{number}", width), kind)
        self.tiles[node] = tile
        return tile

    def _argument_width(self, node: Node, value: torch.Tensor) -> int:
        if value.dim() < 2:
            width = next((one for one in (1, self.columns) if value.dim() and _same(value.shape[0], one)), None)
            if width is None:
                raise Unsupported(f"{node} has shape {list(value.shape)}: neither a row for all nor a row for each")
            return width
        width = self.width_of(value)
        if not _same(value.shape[-1], width):
            raise Unsupported(f"{node} has an element for each row, but they are not its last dimension")
        return width

    def operand(self, value: Any, width: int = 1) -> Tile:
        """The tile of an operand: a node's, or a constant of that width."""
        if isinstance(value, Node):
            tile = self.tiles.get(value)
            if tile is None:
                return self.argument(value)
            if not isinstance(tile, Tile):
                raise Unsupported(f"{value} is several values")
            return tile
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.constant(float(value), width)
        raise Unsupported(f"the operand {value} is neither a tensor nor a number")

    def add(self, node: Node) -> None:
        """Makes the node part of the region; raises Unsupported, and changes nothing, where it cannot be."""
        state = (len(self.lines), self.numbers, len(self.arguments), dict(self.tiles))
        try:
            self.tiles[node] = self._translate(node)
        except Unsupported:
            lines, self.numbers, arguments, self.tiles = state
            del self.lines[lines:]
            del self.arguments[arguments:]
            raise

    def _translate(self, node: Node) -> Any:
        if node.target is operator.getitem:
            source, number = node.args
            parts = self.tiles.get(source) if isinstance(source, Node) else None
            if not isinstance(parts, tuple) or not isinstance(number, int):
                raise Unsupported(f"{node} takes a part of something else")
            return parts[number]
        rule = _RULES.get(node.target)
        if rule is None:
            raise Unsupported(f"{node.target} is not among the operations that regions hold")
        value = node.meta.get("val")
        results = value if isinstance(value, (tuple, list)) else (value,)
        for one in results:
            if not isinstance(one, torch.Tensor) or not one.dtype.is_floating_point:
                raise Unsupported(f"{node} is of {getattr(one, 'dtype', type(one).__name__)}")
            if one.dtype not in _FLOATS and node.target is not torch.ops.prims.convert_element_type.default:
                raise Unsupported(f"{node} is of {one.dtype}")
        widths = [self.width_of(one) for one in results]
        made = rule(self, node)
        if node.target not in _REDUCTIONS:
            self._check_elements(node, whole=widths != [1])
        if [tile.width for tile in (made if isinstance(made, tuple) else (made,))] != widths:
            raise Unsupported(f"{node} cuts rows, or joins them")
        return made

    def _check_elements(self, node: Node, whole: bool) -> None:
        """Raises where torch combines other elements for a row than the operands' tiles hold; `whole`: makes rows."""
        for source in node.all_input_nodes:
            if source not in self.tiles:
                continue
            value = source.meta["val"]
            for_all = source in self.arguments and value.dim() < 2
            ends = not value.dim() or _same(value.shape[-1], 1)
            if not (
                _same(value.numel(), 1)
                or (whole and (for_all or ends))
                # As many elements as the result has: each goes with its own.
                or (not for_all and _same(value.numel(), node.meta["val"].numel()))
            ):
                raise Unsupported(f"{node} has the elements of {source} along other dimensions than rows")

    def text(self, yields: list[tuple[Node, str]]) -> str:
        """The region's text; `yields` are nodes, and the types that they are stored in."""
        saved = (len(self.lines), self.numbers)
        stored = [(self.narrow(self.tiles[node], kind), kind) for node, kind in yields]
        heads = [f"%w{i}: {self.tensor(self.columns, kind)}" for i, kind in enumerate(self.arrives)]
        for i, node in enumerate(self.arguments):
            value = node.meta["val"]
            heads.append(f"%b{i}: {self.tensor(self.tiles[node].width, element_type(value.dtype))}")
        names = ", ".join(tile.name for tile, _ in stored)
        types = ", ".join(self.tensor(tile.width, kind) for tile, kind in stored)
        body = "".join(f"    {line}\n" for line in self.lines)
        del self.lines[saved[0] :]
        self.numbers = saved[1]
        return f"({', '.join(heads)}) {{\n{body}    comms.yield {names} : {types}\n  }}"


def _same(a: Any, b: Any) -> bool:
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(a == b))


# ---------------------------------------------------------------------------------------------------------------------
# One rule an operation
# ---------------------------------------------------------------------------------------------------------------------

_Rule = Callable[[Region, Node], Any]
_RULES: dict[Any, _Rule] = {}
#: The ones that do not work element by element.
_REDUCTIONS: set[Any] = set()
_WAIT = torch.ops._c10d_functional.wait_tensor.default
_VIEWS = {
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
    """Whether the node does nothing but make a value, of a kind that regions know."""
    return (node.target in _RULES or node.target is operator.getitem) and node.target is not _WAIT


def moves_nothing(node: Node) -> bool:
    """Whether what it makes is what it is given, seen in another way: outside of a region it costs nothing."""
    return node.target in _VIEWS


def _rule(*targets: Any) -> Callable[[_Rule], _Rule]:
    def enter(rule: _Rule) -> _Rule:
        for target in targets:
            _RULES[target] = rule
        return rule

    return enter


def _reduction(*targets: Any) -> Callable[[_Rule], _Rule]:
    _REDUCTIONS.update(targets)
    return _rule(*targets)


def _unary(op: str) -> _Rule:
    return lambda region, node: region.unary(op, region.operand(node.args[0]))


def _binary(op: str) -> _Rule:
    def rule(region: Region, node: Node) -> Tile:
        left, right = _pair(region, node.args[0], node.args[1])
        if (alpha := node.kwargs.get("alpha", 1)) != 1:
            right = region.binary("arith.mulf", right, region.constant(float(alpha), right.width))  # type: ignore[arg-type]
        if node.kwargs.get("rounding_mode"):
            raise Unsupported(f"{node} divides with rounding")
        return region.binary(op, left, right)

    return rule


def _pair(region: Region, a: Any, b: Any) -> tuple[Tile, Tile]:
    """Two operands, of which one may be a number: it is as wide as the other."""
    if isinstance(a, Node):
        left = region.operand(a)
        return left, region.operand(b, left.width)
    right = region.operand(b)
    return region.operand(a, right.width), right


for _target, _op in {
    aten.neg.default: "arith.negf",
    aten.abs.default: "math.absf",
    aten.sqrt.default: "math.sqrt",
    aten.rsqrt.default: "math.rsqrt",
    aten.exp.default: "math.exp",
    aten.log.default: "math.log",
    aten.tanh.default: "math.tanh",
    aten.erf.default: "math.erf",
}.items():
    _RULES[_target] = _unary(_op)
for _target, _op in {
    aten.add.Tensor: "arith.addf",
    aten.add.Scalar: "arith.addf",
    aten.sub.Tensor: "arith.subf",
    aten.sub.Scalar: "arith.subf",
    aten.mul.Tensor: "arith.mulf",
    aten.mul.Scalar: "arith.mulf",
    aten.div.Tensor: "arith.divf",
    aten.div.Scalar: "arith.divf",
    aten.maximum.default: "arith.maximumf",
    aten.minimum.default: "arith.minimumf",
}.items():
    _RULES[_target] = _binary(_op)


@_rule(aten.reciprocal.default)
def _reciprocal(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.binary("arith.divf", region.constant(1.0, tile.width), tile)


@_rule(aten.sigmoid.default)
def _sigmoid(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    one = region.constant(1.0, tile.width)
    power = region.unary("math.exp", region.unary("arith.negf", tile))
    return region.binary("arith.divf", one, region.binary("arith.addf", one, power))


@_rule(aten.relu.default)
def _relu(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.binary("arith.maximumf", tile, region.constant(0.0, tile.width))


@_rule(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default)
def _clamp(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    limits = list(node.args[1:]) + [None, None]
    if node.target is aten.clamp_max.default:
        limits = [None, limits[0]]
    low, high = node.kwargs.get("min", limits[0]), node.kwargs.get("max", limits[1])
    if low is not None:
        tile = region.binary("arith.maximumf", tile, region.operand(low, tile.width))
    if high is not None:
        tile = region.binary("arith.minimumf", tile, region.operand(high, tile.width))
    return tile


@_rule(aten.pow.Tensor_Scalar)
def _power(region: Region, node: Node) -> Tile:
    tile, exponent = region.operand(node.args[0]), node.args[1]
    if exponent == 2:
        return region.binary("arith.mulf", tile, tile)
    if exponent == 3:
        return region.binary("arith.mulf", tile, region.binary("arith.mulf", tile, tile))
    if exponent in (0.5, -0.5):
        return region.unary("math.sqrt" if exponent == 0.5 else "math.rsqrt", tile)
    raise Unsupported(f"{node} raises to {exponent}: 2, 3, 0.5 and -0.5 are translated")


@_rule(torch.ops.prims.convert_element_type.default, aten._to_copy.default)
def _convert(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    kind = element_type(node.meta["val"].dtype)
    if not kind.startswith(("f", "bf")) or kind == "f64":
        raise Unsupported(f"{node} casts to {node.meta['val'].dtype}")
    if kind == "f8E4M3FN" and not _torch_saturates():
        tile = _overflow(region, tile)
    return region.widen(region.narrow(tile, kind), kind)


@functools.cache
def _torch_saturates() -> bool:
    """Whether a cast to e4m3fn makes the largest number of what is larger, as `arith.truncf` does: that of torch 2.15;
    that of 2.11 makes NaN."""
    with unset_fake_temporarily():  # type: ignore[no-untyped-call, unused-ignore]
        return not bool(torch.tensor(1e9).to(torch.float8_e4m3fn).isnan())


def _overflow(region: Region, tile: Tile) -> Tile:
    """NaN in place of what rounds to more than e4m3fn holds, which `arith.truncf` saturates."""
    size, most = region.unary("math.absf", tile), region.constant(_MOST_E4M3FN, tile.width)
    kind = region.tensor(tile.width)
    over = region.emit(f"arith.cmpf ogt, {size.name}, {most.name} : {kind}", tile.width)
    nan = region.emit(f"arith.constant dense<0x7FC00000> : {kind}", tile.width)
    mask = region.tensor(tile.width, "i1")
    return region.emit(f"arith.select {over.name}, {nan.name}, {tile.name} : {mask}, {kind}", tile.width)


@_rule(*_VIEWS, aten.clone.default)
def _same_rows(region: Region, node: Node) -> Tile:
    return region.operand(node.args[0])


@_rule(aten.expand.default)
def _expand(region: Region, node: Node) -> Tile:
    return region.across(region.operand(node.args[0]), region.width_of(node.meta["val"]))


def _reduced(region: Region, node: Node) -> Tile:
    """The operand of a reduction over the last dimension."""
    source = node.args[0]
    assert isinstance(source, Node)
    tile = region.operand(source)
    if tile.width == 1:
        raise Unsupported(f"{node} reduces what has one element a row")
    rank = source.meta["val"].dim()
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if not isinstance(dims, (list, tuple)) or [d % rank for d in dims] != [rank - 1]:
        raise Unsupported(f"{node} reduces other dimensions than the last")
    if node.kwargs.get("dtype") not in (None, torch.float32):
        raise Unsupported(f"{node} reduces in {node.kwargs['dtype']}")
    return tile


@_reduction(aten.sum.dim_IntList)
def _sum(region: Region, node: Node) -> Tile:
    return region.reduce("sum", _reduced(region, node))


@_reduction(aten.amax.default)
def _amax(region: Region, node: Node) -> Tile:
    return region.reduce("max", _reduced(region, node))


@_reduction(aten.amin.default)
def _amin(region: Region, node: Node) -> Tile:
    return region.reduce("min", _reduced(region, node))


def _average(region: Region, tile: Tile, less: float = 0) -> Tile:
    total = region.reduce("sum", tile)
    return region.binary("arith.divf", total, region.constant(max(tile.width - less, 0), 1))


@_reduction(aten.mean.dim)
def _mean(region: Region, node: Node) -> Tile:
    return _average(region, _reduced(region, node))


@_reduction(aten.var_mean.correction)
def _var_mean(region: Region, node: Node) -> tuple[Tile, Tile]:
    tile = _reduced(region, node)
    correction = node.kwargs.get("correction", 1)
    mean = _average(region, tile)
    centered = region.binary("arith.subf", tile, mean)
    squares = region.binary("arith.mulf", centered, centered)
    return _average(region, squares, float(correction)), mean  # type: ignore[arg-type]
