"""Python's own functions: `range`, `len`, `min`, `zip` and their like."""

from __future__ import annotations

import ast
from collections.abc import Sized

import numpy as np

from .. import functions as f
from ..compiler import Compiler
from ..compiler.registry import Handler, lowers
from ..compiler.values import Cells, Const, Memory, Peers, Range, Scalar, Seq, Tile, Value, Window
from ..dtypes import I64
from .operands import reduce_tile


@lowers(range, variadic=True)
def _range(c: Compiler, arguments: Seq) -> Value:
    a = [c.snapshot(v) for v in arguments.items]
    if not 1 <= len(a) <= 3:
        c.fail("range takes one to three numbers")
    start, stop = (Const(0), a[0]) if len(a) == 1 else (a[0], a[1])
    return Range(start, stop, a[2] if len(a) == 3 else Const(1))


@lowers(f.static_range)
def _static_range(c: Compiler, arguments: Seq) -> Value:
    numbers = [
        c.known(a, "an argument of static_range", int, "it needs numbers that are known; with ranks given, size() is")
        for a in arguments.items
    ]
    if not 1 <= len(numbers) <= 3:
        c.fail("static_range takes one to three numbers")
    if numbers[2:] == [0]:
        c.fail("the step of static_range is 0")
    return Seq(tuple(Const(i) for i in range(*numbers)))


@lowers(len)
def _len(c: Compiler, value: Value) -> Value:
    if isinstance(value, Memory | Window):
        return c.extent(value, 0)
    value = c.load_view(value)
    if isinstance(value, Tile):
        return Const(value.length)
    if isinstance(value, Const) and isinstance(value.py, Sized):
        return Const(len(value.py))
    return Const(value.count if isinstance(value, Cells) else len(c.items(value)))


def _extremes(which: str) -> Handler:
    def handler(c: Compiler, values: Seq) -> Value:
        items = [c.load_view(v) for v in values.items]
        if len(items) == 1:
            if isinstance(items[0], Tile):
                return reduce_tile(c, which, items[0])
            items = list(c.items(items[0]))
        if not items:
            c.fail(f"{which} of nothing")
        result = items[0]
        for item in items[1:]:
            result = c.extremum(which, result, item)
        return result

    return handler


lowers(min, variadic=True)(_extremes("min"))
lowers(max, variadic=True)(_extremes("max"))


@lowers(sum)
def _sum(c: Compiler, values: Value, start: Value = Const(0)) -> Value:  # noqa: B008
    values = c.load_view(values)
    if isinstance(values, Tile):
        return c.add(start, reduce_tile(c, "sum", values))
    result = start
    for value in c.items(values):
        result = c.add(result, value)
    return result


@lowers(divmod)
def _divmod(c: Compiler, x: Value, y: Value) -> Value:
    x, y = c.load_view(x), c.load_view(y)
    return Seq((c.binary(ast.FloorDiv(), x, y), c.binary(ast.Mod(), x, y)))


@lowers(round, np.round, np.around)
def _round(c: Compiler, x: Value, ndigits: Value = Const(None)) -> Value:  # noqa: B008
    """Python's: of a scalar an integer. Of a tile NumPy's, as `rint`: its type stays."""
    x = c.load_view(x)
    if ndigits not in (Const(None), Const(0)):
        c.fail("round takes no number of digits in a kernel", "write rint(x * 100.0) / 100.0 for two")
    if isinstance(x, Const) and x.is_number:
        return c.whole(x, round, "round")
    if isinstance(x, Scalar | Tile) and not x.dtype.is_float:
        return x if isinstance(x, Tile) else c.scalar(x, x.dtype if x.dtype.is_integer else I64)
    rounded = c.unary_math("roundeven", x)
    return rounded if isinstance(rounded, Tile) else c.scalar(rounded, I64)


@lowers(enumerate)
def _enumerate(c: Compiler, values: Value, start: Value = Const(0)) -> Value:  # noqa: B008
    first = c.known(start, "the start of enumerate", int)
    return Seq(tuple(Seq((Const(first + i), v)) for i, v in enumerate(c.items(values))))


@lowers(zip, variadic=True)
def _zip(c: Compiler, values: Seq) -> Value:
    return Seq(tuple(Seq(parts) for parts in zip(*(c.items(v) for v in values.items), strict=False)))


@lowers(reversed)
def _reversed(c: Compiler, values: Value) -> Value:
    if isinstance(values, Peers):
        return Peers(values.team, not values.reversed)
    if isinstance(values, Range) and values.step == Const(1):
        before = [c.subtract(v, Const(1)) for v in (values.stop, values.start)]
        return Range(before[0], before[1], Const(-1))
    return Seq(c.items(values)[::-1])


@lowers(tuple, list)
def _tuple(c: Compiler, values: Value = Seq(())) -> Value:  # noqa: B008
    return Seq(c.items(values))
