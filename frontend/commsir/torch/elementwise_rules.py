"""Rules of operations that work element by element, of casts, and of views."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from commsir.torch.capi import element_type
from commsir.torch.region_builder import FLOATS, INTEGERS, SMALL_FLOATS, Region, Tile
from commsir.torch.region_nodes import CASTS, RULES, VIEWS, Rule, Unsupported, aten, rule_of
from commsir.torch.reporting import described

__all__ = ["sigmoid_of"]

#: The largest number that rounds to the largest of e4m3fn, 448: half of the way to what would be the next.
_MOST_E4M3FN = 464.0
#: Up to this whole exponent a power is made by multiplications, as Inductor makes it.
_MOST_MULTIPLIED = 31


def _unary(op: str) -> Rule:
    return lambda region, node: region.unary(op, region.operand(node.args[0]))


#: What arithmetic is on masks.
_ON_MASKS = {
    "arith.mulf": "arith.andi",
    "arith.addf": "arith.ori",
    "arith.maximumf": "arith.ori",
    "arith.minimumf": "arith.andi",
}


def _binary(op: str) -> Rule:
    def rule(region: Region, node: Node) -> Tile:
        if node.meta["val"].dtype is torch.bool and op in _ON_MASKS:
            return region.logical(_ON_MASKS[op], *_pair(region, node.args[0], node.args[1]))
        left, right = _pair(region, node.args[0], node.args[1])
        if (alpha := node.kwargs.get("alpha", 1)) != 1:
            right = region.binary("arith.mulf", right, region.constant(float(alpha), right.width))  # type: ignore[arg-type]
        return region.binary(op, left, right)

    return rule


def _pair(region: Region, a: Any, b: Any) -> tuple[Tile, Tile]:
    """Two operands, of which one may be a number: it is as wide as the other."""
    if isinstance(a, Node):
        left = region.operand(a)
        return left, region.operand(b, left.width)
    right = region.operand(b)
    return region.operand(a, right.width), right


def _compared(region: Region, a: Node, b: Any) -> tuple[Tile, Tile]:
    """The operands of a comparison. A whole number is an integer of the type of those that it is compared with."""
    left = region.operand(a)
    return left, region.operand(b, left.width, left.kind)


_UNARY = {
    "neg": "arith.negf",
    "abs": "math.absf",
    "round": "math.roundeven",
    **{
        name: f"math.{name}"
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2"),
            *("expm1", "floor", "log", "log1p", "log2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
        )
    },
}
for _name, _op in _UNARY.items():
    RULES[getattr(aten, _name).default] = _unary(_op)
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
    aten.atan2.default: "math.atan2",
    aten.copysign.Tensor: "math.copysign",
    aten.pow.Tensor_Tensor: "math.powf",
    aten.pow.Scalar: "math.powf",
}.items():
    RULES[_target] = _binary(_op)


@rule_of(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _rounded_division(region: Region, node: Node) -> Tile:
    left, right = _pair(region, node.args[0], node.args[1])
    divided = region.binary("arith.divf", left, right)
    mode = node.kwargs.get("rounding_mode")
    return region.unary(f"math.{mode}", divided) if mode else divided


def _comparison(how: str) -> Rule:
    return lambda region, node: region.compare(how, *_compared(region, node.args[0], node.args[1]))  # type: ignore[arg-type]


for _name, _how in {"gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}.items():
    _packet: Any = getattr(aten, _name)
    RULES[_packet.Tensor] = RULES[_packet.Scalar] = _comparison(_how)


def _masks(op: str) -> Rule:
    def rule(region: Region, node: Node) -> Tile:
        if any(getattr(one.meta.get("val"), "dtype", None) is not torch.bool for one in node.all_input_nodes):
            raise Unsupported(f"{described(node)} is of bits: masks alone are translated")
        return region.logical(op, *_pair(region, node.args[0], node.args[1]))

    return rule


for _name, _op in {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}.items():
    RULES[getattr(aten, f"logical_{_name}").default] = _masks(_op)
    RULES[getattr(aten, f"bitwise_{_name}").Tensor] = _masks(_op)


@rule_of(aten.logical_not.default)
def _logical_not(region: Region, node: Node) -> Tile:
    return region.negation(region.operand(node.args[0]))


@rule_of(aten.bitwise_not.default)
def _bitwise_not(region: Region, node: Node) -> Tile:
    if node.meta["val"].dtype is not torch.bool:
        raise Unsupported(f"{described(node)} is of bits: masks alone are translated")
    return region.negation(region.operand(node.args[0]))


@rule_of(aten.isnan.default)
def _isnan(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.compare("uno", tile, tile)


@rule_of(aten.isinf.default)
def _isinf(region: Region, node: Node) -> Tile:
    tile = region.unary("math.absf", region.operand(node.args[0]))
    return region.compare("oeq", tile, region.constant(math.inf, tile.width))


@rule_of(aten.where.self)
def _where(region: Region, node: Node) -> Tile:
    mask, *values = node.args
    tiles = [region.operand(one) for one in (mask, *values)]
    return region.select(*tiles)


@rule_of(aten.sign.default)
def _sign(region: Region, node: Node) -> Tile:
    tile = region.numbers_of(region.operand(node.args[0]))
    zero = region.constant(0.0, tile.width)
    up, down = (region.numbers_of(region.compare(how, tile, zero)) for how in ("ogt", "olt"))
    return region.binary("arith.subf", up, down)


@rule_of(aten.reciprocal.default)
def _reciprocal(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.binary("arith.divf", region.constant(1.0, tile.width), tile)


@rule_of(aten.sigmoid.default)
def _sigmoid(region: Region, node: Node) -> Tile:
    return sigmoid_of(region, region.operand(node.args[0]))


def sigmoid_of(region: Region, tile: Tile) -> Tile:
    """The logistic function of a tile."""
    one = region.constant(1.0, tile.width)
    power = region.unary("math.exp", region.unary("arith.negf", tile))
    return region.binary("arith.divf", one, region.binary("arith.addf", one, power))


@rule_of(aten.relu.default)
def _relu(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.binary("arith.maximumf", tile, region.constant(0.0, tile.width))


@rule_of(
    *(aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_min.Tensor),
    *(aten.clamp_max.default, aten.clamp_max.Tensor),
)
def _clamp(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    limits = list(node.args[1:]) + [None, None]
    if node.target in (aten.clamp_max.default, aten.clamp_max.Tensor):
        limits = [None, limits[0]]
    low, high = node.kwargs.get("min", limits[0]), node.kwargs.get("max", limits[1])
    if low is not None:
        tile = region.binary("arith.maximumf", tile, region.operand(low, tile.width))
    if high is not None:
        tile = region.binary("arith.minimumf", tile, region.operand(high, tile.width))
    return tile


@rule_of(aten.pow.Tensor_Scalar)
def _power(region: Region, node: Node) -> Tile:
    tile, exponent = region.numbers_of(region.operand(node.args[0])), node.args[1]
    if not isinstance(exponent, (int, float)):
        raise Unsupported(f"{described(node)} raises to {exponent}, which is not known when it is compiled")
    if exponent in (0.5, -0.5):
        return region.unary("math.sqrt" if exponent == 0.5 else "math.rsqrt", tile)
    if exponent == int(exponent) and abs(exponent) <= _MOST_MULTIPLIED:
        made = _multiplied(region, tile, abs(int(exponent)))
        return made if exponent >= 0 else region.binary("arith.divf", region.constant(1.0, tile.width), made)
    return region.binary("math.powf", tile, region.constant(float(exponent), tile.width))


def _multiplied(region: Region, tile: Tile, exponent: int) -> Tile:
    if exponent < 2:
        return tile if exponent else region.constant(1.0, tile.width)
    half = _multiplied(region, tile, exponent // 2)
    square = region.binary("arith.mulf", half, half)
    return region.binary("arith.mulf", square, tile) if exponent % 2 else square


@rule_of(*CASTS)
def _convert(region: Region, node: Node) -> Tile:
    tile, dtype = region.operand(node.args[0]), node.meta["val"].dtype
    kind = element_type(dtype)
    if dtype is torch.bool:
        return region.mask_of(tile)
    if dtype in INTEGERS:
        return region.integers_of(tile, kind)
    if dtype not in (*FLOATS, *SMALL_FLOATS):
        raise Unsupported(f"{described(node)} casts to {dtype}")
    tile = region.numbers_of(tile)
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
    return region.select(region.compare("ogt", size, most), region.constant(math.nan, tile.width), tile)


@rule_of(*VIEWS, aten.clone.default)
def _same_rows(region: Region, node: Node) -> Tile:
    return region.operand(node.args[0])


@rule_of(aten.expand.default)
def _expand(region: Region, node: Node) -> Tile:
    return region.across(region.operand(node.args[0]), region.width_of(node.meta["val"].shape))
