"""Operators and mathematics on scalars and tiles: the ops of `arith` and `math` that they become."""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
from collections.abc import Callable
from typing import Any

from ..dtypes import BOOL, F8, F8E5M2, F16, F32, F64, I32, INDEX, DType
from .numbers import SYMBOLS, Numbers, instead_of_numbers
from .values import Const, Number, Scalar, Seq, Tile, Value

_PYTHON: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_PLAIN = {ast.Add: ("addi", "addf"), ast.Sub: ("subi", "subf"), ast.Mult: ("muli", "mulf")}
# Steps that reduce any quotient of two numbers of a type to less than 1 (see _float_rest). Of f64, two leave what is
# exact where it is less than 2^53.
_REST_STEPS = {F64: 2, F16: 1, F8: 1, F8E5M2: 1}
# Of tuples, which the compiler holds value by value.
_MOST_ITEMS = 2**20
_BITS = {ast.BitAnd: "andi", ast.BitOr: "ori", ast.BitXor: "xori", ast.LShift: "shli", ast.RShift: "shrsi"}


class Arithmetic(Numbers):
    """The layer that knows operators."""

    def _apply(self, op: str, a: Number, b: Number, nonneg: bool = False) -> Number:
        return self.like(a, f"{op} {a.name}, {b.name} : {a.type}", a.dtype, nonneg)

    # Operators.

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        kind = type(op)
        symbol = SYMBOLS[kind]
        if (joined := self._sequence(kind, a, b)) is not None:
            return joined
        if isinstance(a, Const) and isinstance(b, Const):
            return self._fold(kind, a, b)
        if kind is ast.MatMult:
            return self.product(a, b)
        if kind is ast.Add and (added := self.add_to_product(a, b)) is not None:
            return added
        if kind is ast.Div:
            return self._divide(a, b)
        if kind is ast.Pow:
            return self._power(a, b)
        if (kept := self._neutral(kind, a, b)) is not None:
            return kept
        if kind in (ast.FloorDiv, ast.Mod) and isinstance(b, Const) and b.is_number and b.py == 0:
            self.fail(f"'{symbol}' by zero")
        if kind in _BITS:
            a, b = self.load_view(a), self.load_view(b)
            if kind not in (ast.LShift, ast.RShift):
                a, b = self._pattern(a, b), self._pattern(b, a)
            elif kind is ast.RShift and isinstance(b, Const) and type(b.py) is int and isinstance(a, Scalar | Tile):
                # More than all bits are as good as all, also where the type has no such number.
                b = Const(min(b.py, max(a.dtype.width, 32) - 1))
        x, y = self.both(a, b, symbol)
        if x.dtype is BOOL and kind not in (ast.BitAnd, ast.BitOr, ast.BitXor):
            x, y = self.both(x, y, symbol, INDEX if isinstance(x, Scalar) else I32)
        if kind in (ast.LShift, ast.RShift) and isinstance(b, Const) and x.dtype.is_integer:
            y = self._shift(x, b, kind)
        nonneg = x.nonneg and y.nonneg
        if kind in _PLAIN:
            stays = nonneg and self._stays_nonnegative(kind, x.dtype, a, b)
            return self._apply("arith." + _PLAIN[kind][x.dtype.is_float], x, y, stays)
        if kind is ast.FloorDiv:
            return self._floor_divide(x, y, nonneg)
        if kind is ast.Mod:
            return self._modulo(x, y, nonneg)
        if x.dtype.is_float:
            self.fail(
                f"'{symbol}' of {x.dtype.name}", "bits are those of integers: convert with int(…) or .astype(i32)"
            )
        return self._apply("arith." + _BITS[kind], x, y, nonneg and kind is not ast.LShift)

    @staticmethod
    def _pattern(value: Value, meets: Value) -> Value:
        """Reads a number that stands for bits, as in `x & 0xFFFFFFFF`, as the integer with those bits."""
        if not isinstance(value, Const) or type(value.py) is not int or not isinstance(meets, Scalar | Tile):
            return value
        bits = meets.dtype.width
        above = meets.dtype.is_integer and 2 ** (bits - 1) <= value.py < 2**bits
        return Const(value.py - 2**bits) if above else value

    @staticmethod
    def _stays_nonnegative(kind: type[ast.operator], dtype: DType, a: Value, b: Value) -> bool:
        """Whether a result of nonnegative operands is nonnegative, because it cannot wrap around.

        Counts of elements and ranks, and small multiples of them, do not wrap.
        """
        if kind is ast.Sub or dtype.width < 64:
            return False
        most = 2**62 if kind is ast.Add else 2**24
        return all(not isinstance(v, Const) or v.py <= most for v in (a, b)) and (dtype is INDEX or kind is ast.Add)

    def add(self, a: Value, b: Value) -> Value:
        return self.binary(ast.Add(), a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        return self.binary(ast.Sub(), a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        return self.binary(ast.Mult(), a, b)

    def _sequence(self, kind: type[ast.operator], a: Value, b: Value) -> Value | None:
        """Concatenates or repeats tuples."""
        if isinstance(a, Seq) and isinstance(b, Seq) and kind is ast.Add:
            return dataclasses.replace(a, items=a.items + b.items)
        for items, times in ((a, b), (b, a)):
            if kind is ast.Mult and isinstance(items, Seq) and isinstance(times, Const) and isinstance(times.py, int):
                if len(items.items) * times.py > _MOST_ITEMS:
                    self.fail(
                        f"a tuple of {Const(len(items.items) * times.py)} values",
                        "a tile of one value is full(n, value)",
                    )
                return dataclasses.replace(items, items=items.items * times.py)
        return None

    def _shift(self, x: Number, by: Const, kind: type[ast.operator]) -> Number:
        """Limits a shift count to less than the width, because the op's result is undefined otherwise."""
        if by.py < 0:
            self.fail(f"'{SYMBOLS[kind]}' by {by.py}", "shift the other way")
        if by.py >= x.dtype.width and kind is ast.LShift:
            self.fail(f"'<<' by {by.py} leaves nothing of {x.dtype.name}, which has {x.dtype.width} bits")
        bits = Const(min(int(by.py), x.dtype.width - 1))
        return self.tile(bits, x.length, x.dtype) if isinstance(x, Tile) else self.scalar(bits, x.dtype)

    @staticmethod
    def _neutral(kind: type[ast.operator], a: Value, b: Value) -> Value | None:
        """Returns the other operand of integer `0 + x`, `x - 0`, `1 * x` and similar expressions."""
        neutral = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.FloorDiv: 1}.get(kind)
        for value, other in ((a, b), (b, a)):
            is_neutral = isinstance(other, Const) and type(other.py) is int and other.py == neutral
            if not is_neutral or not isinstance(value, Scalar) or not value.dtype.is_integer:
                continue
            if other is b or kind in (ast.Add, ast.Mult):
                return value
        return None

    def _fold(self, kind: type[ast.operator], a: Const, b: Const) -> Value:
        for value, side in ((a, "left"), (b, "right")):
            if callable(value.py):
                self.number(value, f"the {side} side of '{SYMBOLS[kind]}'")
        try:
            return Const(_PYTHON[kind](a.py, b.py))
        except (TypeError, KeyError):
            self.fail(f"'{SYMBOLS[kind]}' of {a.describe()} and {b.describe()}", instead_of_numbers(a, b))
        except (ArithmeticError, ValueError, MemoryError) as error:
            self.fail(f"'{SYMBOLS[kind]}' of {a.describe()} and {b.describe()}: {str(error) or 'out of memory'}")

    def _divide(self, a: Value, b: Value) -> Value:
        x, y = self.both(a, b, "/")
        if not x.dtype.is_float:
            x, y = self.convert(x, F32), self.convert(y, F32)
        return self._apply("arith.divf", x, y)

    def _floor_divide(self, x: Number, y: Number, nonneg: bool) -> Value:
        if x.dtype.is_float:
            return self._float_divide(x, y)[0]
        return self._apply("arith.divui" if nonneg else "arith.floordivsi", x, y, nonneg)

    def _modulo(self, x: Number, y: Number, nonneg: bool) -> Value:
        """Computes the remainder with the sign of the divisor, as Python and NumPy do."""
        if x.dtype.is_float:
            return self._float_divide(x, y)[1]
        if nonneg:
            return self._apply("arith.remui", x, y, True)
        rest = self._apply("arith.remsi", x, y)
        if y.nonneg:
            wrong = self.compare(ast.Lt(), rest, Const(0))
        else:
            wrong = self.compare(ast.Lt(), self.binary(ast.BitXor(), rest, y), Const(0))
            inexact = self.compare(ast.NotEq(), rest, Const(0))
            wrong = self.binary(ast.BitAnd(), wrong, inexact)
        chosen = self.select(wrong, self.add(rest, y), rest)
        return dataclasses.replace(chosen, nonneg=y.nonneg) if isinstance(chosen, Scalar) else chosen

    def _float_divide(self, x: Number, y: Number) -> tuple[Value, Value]:
        """`//` and `%` of floats, as Python and NumPy define them."""
        dtype = x.dtype
        x, y = self.convert(x, F64), self.convert(y, F64)
        rest = self._float_rest(x, y, _REST_STEPS.get(dtype, 6))
        zero, below = Const(0.0), ast.Lt()
        signs_differ = self.binary(ast.BitXor(), self.compare(below, rest, zero), self.compare(below, y, zero))
        wrong = self.logical(True, self.compare(ast.NotEq(), rest, zero), signs_differ)
        modulo = self.select(wrong, self.add(rest, y), rest)
        modulo = self.select(self.compare(ast.Eq(), modulo, zero), self.binary_math("copysign", zero, y), modulo)
        exact = self._divide(self.subtract(x, rest), y)
        exact = self.select(wrong, self.subtract(exact, Const(1.0)), exact)
        floor = self.unary_math("floor", exact)
        rounded = self.compare(ast.Gt(), self.subtract(exact, floor), Const(0.5))
        quotient = self.select(rounded, self.add(floor, Const(1.0)), floor)
        ratio = self._divide(x, y)
        none = self.compare(ast.Eq(), quotient, zero)
        quotient = self.select(none, self.binary_math("copysign", zero, ratio), quotient)
        quotient = self.select(self.compare(ast.Eq(), y, zero), ratio, quotient)
        return self.convert(quotient, dtype), self.convert(modulo, dtype)

    def _float_rest(self, x: Number, y: Number, steps: int) -> Number:
        """Computes the remainder of the division of two f64, with the sign of x.

        If the quotient was rounded up, y less. Each step takes 52 bits off the quotient, and its fma is exact.
        """
        rest: Number = x
        for _ in range(steps):
            quotient = self.unary_math("trunc", self._apply("arith.divf", rest, y))
            n = self.number(self.negate(quotient))
            rest = self.like(x, f"math.fma {n.name}, {y.name}, {rest.name} : {x.type}", x.dtype)  # type: ignore[union-attr]
        return self.select(self.logical(True, self._is_finite(x), self._is_infinite(y)), x, rest)

    def _is_infinite(self, x: Number) -> Value:
        return self.compare(ast.Eq(), self.absolute(x), Const(math.inf))

    def _is_finite(self, x: Number) -> Value:
        return self.compare(ast.Lt(), self.absolute(x), Const(math.inf))

    def _power(self, a: Value, b: Value) -> Value:
        base = self.number(a, "the left side of '**'")
        exponent = b.py if isinstance(b, Const) else None
        if isinstance(exponent, int) and 0 <= exponent <= 64:
            return self._repeat(base, exponent)
        if exponent in (0.5, -0.5):
            return self.unary_math("sqrt" if exponent == 0.5 else "rsqrt", base)
        if exponent == -1:
            return self._divide(Const(1.0), base)
        x, y = self.both(base, b, "**")
        if not x.dtype.is_float:
            self.fail("'**' of integers needs an exponent that is known, from 0 to 64", "convert to float first")
        if isinstance(exponent, int | float) and abs(exponent) <= 64 and exponent == int(exponent):
            power = self._repeat(x, abs(int(exponent)))
            return power if exponent >= 0 else self._divide(Const(1.0), power)
        return self.binary_math("powf", x, y)

    def _repeat(self, base: Const | Number, exponent: int) -> Value:
        """Computes a power by repeated squaring."""
        if exponent == 0:
            return self.tile(Const(1), base.length, base.dtype) if isinstance(base, Tile) else Const(1)
        result: Value | None = None
        power: Value = base
        while exponent:
            if exponent & 1:
                result = power if result is None else self.multiply(result, power)
            exponent >>= 1
            if exponent:
                power = self.multiply(power, power)
        assert result is not None
        return result

    def negate(self, value: Value) -> Value:
        n = self.number(value, "what '-' is applied to")
        if isinstance(n, Const):
            return Const(-n.py)
        if n.dtype.is_float:
            return self.like(n, f"arith.negf {n.name} : {n.type}", n.dtype)
        return self.subtract(Const(0), n)

    def invert(self, value: Value) -> Value:
        n = self.number(value, "what '~' is applied to")
        if isinstance(n, Const):
            return Const(not n.py if isinstance(n.py, bool) else ~int(n.py))
        if n.dtype.is_float:
            self.fail(f"'~' of {n.dtype.name}", "bits are those of integers: convert with int(…) or .astype(i32)")
        return self.binary(ast.BitXor(), n, Const(True) if n.dtype is BOOL else Const(-1))

    def logical_not(self, value: Value) -> Value:
        c = self.condition(value, "what 'not' is applied to")
        if isinstance(c, Const):
            return Const(not c.py)
        return self._apply("arith.xori", c, self.constant(True, BOOL))

    def logical(self, conjunction: bool, a: Value, b: Value) -> Value:
        """Combines two evaluated conditions by `and` or `or`; for tiles, element by element."""
        for known, other in ((a, b), (b, a)):
            if isinstance(known, Const):
                return other if bool(known.py) == conjunction else Const(not conjunction)
        return self.binary(ast.BitAnd() if conjunction else ast.BitOr(), a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Number:
        """Evaluates both values; the condition selects one."""
        c = self.number(condition, "the condition")
        x, y = self.both(a, b, "where")
        if isinstance(c, Const):
            return x if c.py else y
        if isinstance(c, Tile) and not isinstance(x, Tile):
            x, y = self.tile(x, c.length), self.tile(y, c.length)
        if isinstance(x, Tile):
            length = max(x.length, c.length) if isinstance(c, Tile) else x.length
            x, y, c = self.tile(x, length), self.tile(y, length), self.tile(c, length, BOOL, "the condition")
        else:
            c = self.scalar(c, BOOL)
        nonneg = x.nonneg and y.nonneg
        text = f"arith.select {c.name}, {x.name}, {y.name} : " + (f"{c.type}, " if isinstance(c, Tile) else "") + x.type
        return self.like(x, text, x.dtype, nonneg)

    def extremum(self, which: str, a: Value, b: Value) -> Value:
        """Computes the minimum or maximum of two values like NumPy: NaN if either is NaN."""
        a, b = self.number(a, f"the first of {which}imum"), self.number(b, f"the second of {which}imum")
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(min(a.py, b.py) if which == "min" else max(a.py, b.py))
        x, y = self.both(a, b, which)
        nonneg = x.nonneg and y.nonneg
        if x.dtype is BOOL:
            return self._apply("arith.andi" if which == "min" else "arith.ori", x, y)
        op = f"arith.{which}imumf" if x.dtype.is_float else f"arith.{which}si"
        return self._apply(op, x, y, nonneg)

    # Functions of `math`.

    def _float(self, value: Value, what: str) -> Number:
        n = self.number(value, what)
        if isinstance(n, Const):
            return self.constant(float(n.py), F32)
        return n if n.dtype.is_float else self.convert(n, F32)

    def unary_math(self, name: str, value: Value) -> Value:
        n = self._float(value, f"the argument of {name}")
        return self.like(n, f"math.{name} {n.name} : {n.type}", n.dtype)

    def binary_math(self, name: str, a: Value, b: Value) -> Value:
        x, y = self.both(a, b, name)
        if not x.dtype.is_float:
            x, y = self.convert(x, F32), self.convert(y, F32)
        return self.like(x, f"math.{name} {x.name}, {y.name} : {x.type}", x.dtype)

    def absolute(self, value: Value) -> Value:
        n = self.number(value, "the argument of abs")
        if isinstance(n, Const):
            return Const(abs(n.py))
        if n.dtype.is_float:
            return self.unary_math("absf", n)
        return self.extremum("max", n, self.negate(n))

    def predicate(self, name: str, value: Value) -> Value:
        n = self._float(value, f"the argument of {name}")
        if n.dtype is not F64:
            return self.like(n, f"math.{name} {n.name} : {n.type}", BOOL)
        # MLIR lowers these of f32 and less.
        if name == "isnan":
            return self.compare(ast.NotEq(), n, n)
        return self._is_finite(n) if name == "isfinite" else self._is_infinite(n)
