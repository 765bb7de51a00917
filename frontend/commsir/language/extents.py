"""Dimensions of parameters: numbers, names, and what an annotation calculates of them, as in `rows * ranks`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn, SupportsIndex

__all__ = ["RANKS", "DerivedDim", "Dim", "Extent", "evaluate", "names_in", "parse", "solve", "whole"]

#: The name that stands for the number of ranks that a kernel runs on.
RANKS = "ranks"

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}
_BINDS = {"+": 1, "-": 1, "*": 2, "//": 2}
_SYNTAX: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//"}
_ALLOWED = "annotations calculate dimensions with +, -, * and //, as in rows * ranks or rows // ranks"


class _DimArithmetic:
    """Arithmetic for annotations. Results have no value until the named dimensions do."""

    __slots__ = ()
    #: NumPy's numbers leave arithmetic to the dimension.
    __array_ufunc__ = None

    def __add__(self, other: object) -> DerivedDim:
        return _calculated("+", self, other)

    def __radd__(self, other: object) -> DerivedDim:
        return _calculated("+", other, self)

    def __sub__(self, other: object) -> DerivedDim:
        return _calculated("-", self, other)

    def __rsub__(self, other: object) -> DerivedDim:
        return _calculated("-", other, self)

    def __mul__(self, other: object) -> DerivedDim:
        return _calculated("*", self, other)

    def __rmul__(self, other: object) -> DerivedDim:
        return _calculated("*", other, self)

    def __floordiv__(self, other: object) -> DerivedDim:
        return _calculated("//", self, other)

    def __rfloordiv__(self, other: object) -> DerivedDim:
        return _calculated("//", other, self)

    def _refuse(self, *others: object) -> NoReturn:
        raise TypeError(_ALLOWED)

    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _refuse


class Dim(_DimArithmetic, str):  # type: ignore[misc]
    """The name of a dimension. In a kernel it is the number that the dimension has."""


@dataclass(frozen=True)
class DerivedDim(_DimArithmetic):
    """A dimension that is calculated from others."""

    symbol: str
    left: Extent
    right: Extent

    def __str__(self) -> str:
        return f"{_operand(self.left, self.symbol, False)} {self.symbol} {_operand(self.right, self.symbol, True)}"


Extent = int | str | DerivedDim


def _operand(extent: Extent, outer: str, is_right: bool) -> str:
    """Formats an operand, in parentheses if it needs them."""
    if not isinstance(extent, DerivedDim):
        return str(extent)
    inner = extent.symbol
    binds, around = _BINDS[inner], _BINDS[outer]
    same = outer == "+" or inner == outer == "*"
    needs = binds < around or (is_right and binds == around and not same)
    return f"({extent})" if needs else str(extent)


def whole(value: object) -> int | None:
    """Returns an integer of Python or NumPy as Python's; None for anything else, booleans among it."""
    return operator.index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None


def _calculated(symbol: str, left: object, right: object) -> DerivedDim:
    sides = [one if isinstance(one, str | DerivedDim) else whole(one) for one in (left, right)]
    for one, given in zip(sides, (left, right), strict=True):
        if one is None:
            raise TypeError(f"{given!r} is not a dimension: {_ALLOWED}")
    made = DerivedDim(symbol, *sides)  # type: ignore[arg-type]
    if symbol == "//" and right == 0:
        raise TypeError(f"the dimension {made} is divided by 0")
    return made


def names_in(extent: Extent) -> Iterator[str]:
    """Returns the names in a dimension, once per occurrence."""
    if isinstance(extent, DerivedDim):
        yield from names_in(extent.left)
        yield from names_in(extent.right)
    elif isinstance(extent, str) and extent != "?":
        yield str.__str__(extent)


def evaluate(extent: Extent, values: Mapping[str, int]) -> int | None:
    """Returns the number that a dimension stands for, or None if a name has no value yet."""
    if isinstance(extent, int):
        return extent
    if isinstance(extent, str):
        return values.get(extent)
    left, right = evaluate(extent.left, values), evaluate(extent.right, values)
    if left is None or right is None or (extent.symbol == "//" and right == 0):
        return None
    return _OPERATORS[extent.symbol](left, right)


def solve(extent: Extent, number: int, values: Mapping[str, int]) -> tuple[str, int] | None:
    """The one name without a value that `extent` has, and the value with which it is `number`; None: there is none."""
    if isinstance(extent, str):
        return None if extent in values or extent == "?" else (str.__str__(extent), number)
    if isinstance(extent, int):
        return None
    left, right = evaluate(extent.left, values), evaluate(extent.right, values)
    if (left is None) == (right is None):
        return None
    inner = extent.left if left is None else extent.right
    wanted = _inverse(extent.symbol, number, right if left is None else left, left is None)
    return None if wanted is None else solve(inner, wanted, values)


def _inverse(symbol: str, number: int, known: int | None, is_left: bool) -> int | None:
    """Returns the operand that yields `number` with the known one; `is_left` selects the left operand."""
    assert known is not None
    if symbol == "+":
        return number - known
    if symbol == "-":
        return number + known if is_left else known - number
    if symbol == "*":
        return number // known if known and number % known == 0 else None
    # Of the dividends that give it, the one without a rest; a divisor has no one value.
    return number * known if is_left else None


def parse(text: str) -> Extent:
    """A dimension that is written in a string: `"rows * ranks"`."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise TypeError(f"'{text.strip()}' is not a dimension: {_ALLOWED}") from None
    return _parsed(tree, text)


def _parsed(node: ast.expr, text: str) -> Extent:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name):
        return Dim(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _SYNTAX:
        return _calculated(_SYNTAX[type(node.op)], _parsed(node.left, text), _parsed(node.right, text))
    raise TypeError(f"'{text.strip()}' is not a dimension: {_ALLOWED}")
