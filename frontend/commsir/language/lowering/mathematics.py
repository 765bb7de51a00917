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
from ..compiler.values import Const, Image, Scalar, Tile, Value

_MATH = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log1p": "log1p", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "cbrt": "cbrt", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "erf": "erf", "erfc": "erfc", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "rint": "roundeven",
}  # fmt: skip
# What leaves integers as they are.
_ROUNDING = ("floor", "ceil", "trunc", "rint")
_FOLDED: dict[str, Callable[[float], float]] = {"rsqrt": lambda x: 1 / math.sqrt(x), "rint": round}


def _unary(name: str) -> Handler:
    fold = _FOLDED.get(name) or getattr(math, name, None) or (lambda x: float(getattr(np, name)(x)))

    def handler(c: Compiler, x: Value) -> Value:
        if isinstance(x, Const) and x.is_number:
            try:
                value = fold(x.py)
            except (ValueError, ArithmeticError) as error:
                c.fail(f"{name} of {x.py}: {error}")
            return Const(value) if name in _ROUNDING else Image(value, _MATH[name], x)
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


@lowers(abs, np.abs, math.fabs, operator.abs)
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
