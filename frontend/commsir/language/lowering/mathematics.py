"""Mathematics. Python's `math` and NumPy's functions are the same ops."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import functions as f
from ..compiler import Compiler
from ..compiler.registry import Handler, lowers
from ..compiler.values import Const, FoldedMath, Scalar, Tile, Value
from ..dtypes import BOOL

_MATH = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log1p": "log1p", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "cbrt": "cbrt", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "erf": "erf", "erfc": "erfc", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "rint": "roundeven",
}  # fmt: skip
# What leaves integers as they are.
_ROUNDING = ("floor", "ceil", "trunc", "rint")
_FOLDED: dict[str, Callable[[float], float]] = {"rsqrt": lambda x: 1 / math.sqrt(x), "rint": round}


def _at_an_end(name: str, x: Any) -> float | None:
    """Returns what the function gives of data where Python's raises, as log of 0; None for what no float holds."""
    names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
    try:
        with np.errstate(all="ignore"):
            number = np.float64(x)
            return float(1 / np.sqrt(number) if name == "rsqrt" else getattr(np, names.get(name, name))(number))
    except OverflowError:
        return None


def _unary(name: str) -> Handler:
    fold = _FOLDED.get(name) or getattr(math, name, None) or (lambda x: float(getattr(np, name)(x)))

    def handler(c: Compiler, x: Value) -> Value:
        if isinstance(x, Const) and x.is_number:
            try:
                value = fold(x.py)
            except (ValueError, ArithmeticError) as error:
                value = _at_an_end(name, x.py)
                if value is None:
                    c.fail(f"{name} of {x}: {error}")
            return Const(value) if name in _ROUNDING else FoldedMath(value, _MATH[name], x)
        x = c.load_view(x)
        if name in _ROUNDING and isinstance(x, Scalar | Tile) and x.dtype.is_integer:
            return x
        return c.unary_math(_MATH[name], x)

    return handler


def _elsewhere(name: str) -> list[Any]:
    return [g for library in (math, np) if (g := getattr(library, name, None)) is not None]


for _name in _MATH:
    lowers(getattr(f, _name), *_elsewhere(_name))(_unary(_name))


def _predicate(name: str) -> Handler:
    def handler(c: Compiler, x: Value) -> Value:
        return Const(getattr(math, name)(x.py)) if isinstance(x, Const) and x.is_number else c.predicate(name, x)

    return handler


for _name in ("isnan", "isinf", "isfinite"):
    lowers(getattr(f, _name), *_elsewhere(_name))(_predicate(_name))


@lowers(abs, np.abs, np.fabs, math.fabs, operator.abs)
def _abs(c: Compiler, x: Value) -> Value:
    return c.absolute(x)


@lowers(pow, math.pow, np.power)
def _pow(c: Compiler, x: Value, y: Value) -> Value:
    return c.binary(ast.Pow(), c.load_view(x), c.load_view(y))


@lowers(math.copysign, np.copysign)
def _copysign(c: Compiler, x: Value, y: Value) -> Value:
    return c.binary_math("copysign", x, y)


@lowers(math.atan2, np.arctan2)
def _atan2(c: Compiler, x: Value, y: Value) -> Value:
    return c.binary_math("atan2", x, y)


# NumPy's operators, by name.
_OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div, "true_divide": ast.Div,
    "floor_divide": ast.FloorDiv, "mod": ast.Mod, "remainder": ast.Mod, "bitwise_and": ast.BitAnd,
    "bitwise_or": ast.BitOr, "bitwise_xor": ast.BitXor, "left_shift": ast.LShift, "right_shift": ast.RShift,
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "equal": ast.Eq, "not_equal": ast.NotEq, "less": ast.Lt, "less_equal": ast.LtE, "greater": ast.Gt,
    "greater_equal": ast.GtE,
}  # fmt: skip


def _operator(kind: type[ast.operator]) -> Handler:
    def handler(c: Compiler, x: Value, y: Value) -> Value:
        return c.binary(kind(), c.load_view(x), c.load_view(y))

    return handler


def _comparison(kind: type[ast.cmpop]) -> Handler:
    def handler(c: Compiler, x: Value, y: Value) -> Value:
        return c.compare(kind(), c.load_view(x), c.load_view(y))

    return handler


for _name, _kind in _OPERATORS.items():
    lowers(getattr(np, _name))(_operator(_kind))
for _name, _test in _COMPARISONS.items():
    lowers(getattr(np, _name))(_comparison(_test))


def _logical(kind: type[ast.operator]) -> Handler:
    def handler(c: Compiler, x: Value, y: Value) -> Value:
        return c.binary(kind(), _truths(c, x), _truths(c, y))

    return handler


def _truths(c: Compiler, value: Value) -> Value:
    n = c.number(value, "a condition")
    return Const(bool(n.py)) if isinstance(n, Const) else c.convert(n, BOOL)


for _name, _kind in {"logical_and": ast.BitAnd, "logical_or": ast.BitOr, "logical_xor": ast.BitXor}.items():
    lowers(getattr(np, _name))(_logical(_kind))


@lowers(np.logical_not)
def _logical_not(c: Compiler, x: Value) -> Value:
    return c.invert(_truths(c, x))


@lowers(np.negative)
def _negative(c: Compiler, x: Value) -> Value:
    return c.negate(c.load_view(x))


@lowers(np.square)
def _square(c: Compiler, x: Value) -> Value:
    x = c.load_view(x)
    return c.multiply(x, x)
