"""Tiles: how they are made, reduced, chosen from and converted."""

from __future__ import annotations

import builtins

import numpy as np

from .. import functions as f
from ..compiler import Compiler
from ..compiler.registry import Handler, lowers, lowers_method
from ..compiler.values import Const, Scalar, Tile, Value
from ..contracts import KINDS
from ..dtypes import BOOL, F32, I32, I64, INDEX
from .operands import a_length, a_tile, reduce_tile


@lowers(f.row_reduce)
def _row_reduce(c: Compiler, op: Value, tile: Value) -> Value:
    return reduce_tile(c, c.choice(op, "the reduction", KINDS), tile)


def _check_axis(c: Compiler, axis: Value, keepdims: Value) -> None:
    """Checks NumPy's `axis` and `keepdims`, which change nothing for a tile, because it has one dimension."""
    if axis not in (Const(None), Const(0), Const(-1)):
        c.fail(f"the axis is {axis.describe()}", "a tile has one dimension, which is reduced: leave the axis out")
    c.known(keepdims, "keepdims", bool)


def _reduction(kind: str) -> Handler:
    def handler(c: Compiler, tile: Value, axis: Value = Const(None), keepdims: Value = Const(False)) -> Value:  # noqa: B008
        _check_axis(c, axis, keepdims)
        return reduce_tile(c, kind, tile)

    return handler


for _name in ("sum", "prod", "min", "max"):
    lowers_method(Tile, name=_name)(lowers(getattr(np, _name))(_reduction(_name)))


@lowers_method(Tile, name="mean")
@lowers(np.mean)
def _mean(c: Compiler, tile: Value, axis: Value = Const(None), keepdims: Value = Const(False)) -> Value:  # noqa: B008
    _check_axis(c, axis, keepdims)
    t = a_tile(c, tile)
    return reduce_tile(c, "avg", t if t.dtype.is_float else c.convert(t, F32))


def _quantifier(which: str) -> Handler:
    """Evaluates `any` or `all` of the elements of a tile, or of several conditions."""
    kind = "max" if which == "any" else "min"

    def handler(c: Compiler, values: Value) -> Value:
        values = c.load_view(values)
        items = c.items_if_known(values)
        if items is None:
            return reduce_tile(c, kind, c.convert(a_tile(c, values), BOOL))
        result: Value = Const(which == "all")
        for condition in map(c.condition, items):
            result = c.logical(which == "all", result, condition)
        return result

    return handler


for _name in ("any", "all"):
    lowers_method(Tile, name=_name)(lowers(getattr(builtins, _name), getattr(np, _name))(_quantifier(_name)))


@lowers(f.splat)
def _splat(c: Compiler, value: Value, length: Value, dtype: Value) -> Value:
    wanted = None if dtype == Const(None) else c.element_type(dtype)
    n = c.number(value, "the value")
    if wanted is None and isinstance(n, Const):
        wanted = I64 if c.default_dtype(n) is INDEX else c.default_dtype(n)
    return c.tile(n, a_length(c, length), wanted, "the value")


@lowers(f.full)
def _full(c: Compiler, length: Value, value: Value, dtype: Value) -> Value:
    return _splat(c, value, length, dtype)


def _constant_tile(c: Compiler, number: int, length: Value, dtype: Value) -> Tile:
    return c.tile(Const(number), a_length(c, length), F32 if dtype == Const(None) else c.element_type(dtype))


@lowers(f.zeros)
def _zeros(c: Compiler, length: Value, dtype: Value) -> Value:
    return _constant_tile(c, 0, length, dtype)


@lowers(np.zeros)
def _np_zeros(c: Compiler, shape: Value, dtype: Value = Const(None)) -> Value:  # noqa: B008
    return _constant_tile(c, 0, shape, dtype)


@lowers(np.ones)
def _np_ones(c: Compiler, shape: Value, dtype: Value = Const(None)) -> Value:  # noqa: B008
    return _constant_tile(c, 1, shape, dtype)


@lowers(np.full)
def _np_full(c: Compiler, shape: Value, fill_value: Value, dtype: Value = Const(None)) -> Value:  # noqa: B008
    return _splat(c, fill_value, shape, dtype)


@lowers(f.broadcast_row)
def _broadcast_row(c: Compiler, tile: Value, length: Value) -> Value:
    t = a_tile(c, tile)
    if t.length != 1:
        c.fail(f"broadcast_row of {t.describe()}", "it repeats a tile of one; t.sum() and t.max() make such")
    return c.tile(t, a_length(c, length))


@lowers(f.concatenate, np.concatenate)
def _concatenate(c: Compiler, tiles: Value, axis: Value = Const(0)) -> Value:  # noqa: B008
    _check_axis(c, axis, Const(False))
    parts = [a_tile(c, one) for one in c.items(tiles)]
    if not parts:
        c.fail("concatenate of no tiles", "give a tuple of tiles: concatenate((a, b))")
    dtype = parts[0].dtype
    for one in parts[1:]:
        dtype = c.dtype_of_both(Tile("", dtype, 1), one)
    return c.joined([c.tile(one, one.length, dtype) for one in parts])


@lowers(f.iota)
def _iota(c: Compiler, length: Value, dtype: Value) -> Value:
    d = I32 if dtype == Const(None) else c.element_type(dtype)
    n = a_length(c, length)
    made = d if d.kind == "int" or d.width >= 32 else F32
    made = I64 if made is INDEX else made
    tile = Tile(c.result(f"comms.iota : tensor<{n}x{made.mlir}>"), made, n)
    return c.convert(tile, d) if d is not INDEX else tile


@lowers(np.arange)
def _arange(
    c: Compiler,
    start: Value,
    stop: Value = Const(None),  # noqa: B008
    step: Value = Const(None),  # noqa: B008
    dtype: Value = Const(None),  # noqa: B008
) -> Value:
    if stop == Const(None):
        start, stop = Const(0), start
    given = (start, "start"), (stop, "end"), (Const(1) if step == Const(None) else step, "step")
    first, end, by = (c.known(v, f"the {what} of arange", int) for v, what in given)
    if by == 0:
        c.fail("the step of arange is 0")
    counted = _iota(c, Const(len(range(first, end, by))), dtype)
    spread = counted if by == 1 else c.multiply(counted, Const(by))
    return spread if first == 0 else c.add(spread, Const(first))


@lowers(f.where, np.where)
def _where(c: Compiler, condition: Value, a: Value, b: Value) -> Value:
    return c.select(condition, a, b)


def _extremes(which: str) -> Handler:
    def handler(c: Compiler, a: Value, b: Value) -> Value:
        return c.extremum(which, c.load_view(a), c.load_view(b))

    return handler


lowers(f.minimum, np.minimum)(_extremes("min"))
lowers(f.maximum, np.maximum)(_extremes("max"))


@lowers(f.clip, np.clip)
def _clip(c: Compiler, a: Value, low: Value, high: Value) -> Value:
    value = c.load_view(a)
    for which, bound in (("max", low), ("min", high)):
        if bound != Const(None):  # NumPy's word for a side that stays open.
            value = c.extremum(which, value, c.load_view(bound))
    return value


@lowers(f.fma)
def _fma(comp: Compiler, a: Value, b: Value, c: Value) -> Value:
    x, y = comp.both(a, b, "fma")
    x, z = comp.both(x, c, "fma")
    x, y = comp.both(x, y, "fma")
    y, z = comp.both(y, z, "fma")
    if not x.dtype.is_float:
        comp.fail("fma of integers", "write a * b + c")
    return comp.like(x, f"math.fma {x.name}, {y.name}, {z.name} : {x.type}", x.dtype)


@lowers_method(Tile, Scalar, name="astype", of=f.cast)
@lowers(f.cast)
def _cast(c: Compiler, value: Value, dtype: Value) -> Value:
    d, n = c.element_type(dtype), c.number(value)
    if isinstance(n, Tile):
        return c.tile(n, n.length, I64 if d is INDEX else d)
    return c.scalar(n, d)


@lowers_method(Tile, Scalar, name="item")
def _item(c: Compiler, value: Tile | Scalar) -> Value:
    return c.scalar(value)


@lowers(f.bitcast)
def _bitcast(c: Compiler, value: Value, dtype: Value) -> Value:
    d, n = c.element_type(dtype), c.number(value)
    if isinstance(n, Const) or n.dtype.width != d.width or INDEX in (d, n.dtype):
        c.fail(f"bitcast of {n.describe()} to {d.name}", "both have the same number of bits")
    return c.cast("arith.bitcast", n, d)
