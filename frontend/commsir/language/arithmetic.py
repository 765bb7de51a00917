"""Arithmetic on scalars and tiles: promotion, conversion, and the ops of `arith` and `math` that it becomes."""

from __future__ import annotations

import ast
import math
import operator
import struct
from collections.abc import Callable
from typing import Any, NoReturn

from . import dtypes
from .dtypes import BOOL, F32, F64, I32, I64, INDEX, DType, promote
from .emit import Emitter, Place
from .values import Cell, Cells, Const, Memory, Method, Scalar, Seq, Tile, Value, View, Window

Number = Scalar | Tile

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
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_COMPARE: dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], str, str]] = {
    ast.Eq: (operator.eq, "eq", "oeq"),
    ast.NotEq: (operator.ne, "ne", "une"),
    ast.Lt: (operator.lt, "slt", "olt"),
    ast.LtE: (operator.le, "sle", "ole"),
    ast.Gt: (operator.gt, "sgt", "ogt"),
    ast.GtE: (operator.ge, "sge", "oge"),
}
_PLAIN = {ast.Add: ("addi", "addf"), ast.Sub: ("subi", "subf"), ast.Mult: ("muli", "mulf")}
_BITS = {ast.BitAnd: "andi", ast.BitOr: "ori", ast.BitXor: "xori", ast.LShift: "shli", ast.RShift: "shrsi"}


def literal(value: Any, dtype: DType) -> str:
    """A number as MLIR writes it."""
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype.is_float:
        value = float(value)
        rounded = float(dtype(value))
        if not math.isfinite(rounded) or dtype is dtypes.F8:
            value = rounded  # MLIR has no number for what is beyond those of the type
        if math.isfinite(value):
            text = repr(value)
            return text if "." in text or "e" not in text else text.replace("e", ".0e")
        if dtype is F64:
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        special = {F32: (0x7FC00000, 0x7F800000, 0xFF800000), dtypes.BF16: (0x7FC0, 0x7F80, 0xFF80)}
        special |= {dtypes.F16: (0x7E00, 0x7C00, 0xFC00), dtypes.F8: (0x7F, 0x7E, 0xFE)}
        special |= {dtypes.F8E5M2: (0x7E, 0x7C, 0xFC)}
        nan, plus, minus = special[dtype]
        bits = nan if math.isnan(value) else plus if value > 0 else minus
        return f"0x{bits:0{dtype.width // 4}X}"
    return str(int(value))


class Arithmetic:
    """The part of the compiler that knows numbers."""

    emitter: Emitter
    place: Place

    def fail(self, message: str, hint: str = "", node: ast.AST | None = None) -> NoReturn:
        raise NotImplementedError

    # Values of the IR.

    def result(self, text: str, type_: str) -> str:
        """Emits an op of one result, whose name is returned."""
        name = self.emitter.fresh()
        self.emitter.emit(f"{name} = {text}", self.place)
        return name

    def constant(self, value: Any, dtype: DType) -> Scalar:
        if dtype.is_integer and not isinstance(value, bool):
            bits = min(dtype.width, 64)
            if not isinstance(value, int):
                self.fail(f"{value!r} is no integer", f"write int({value!r})" if math.isfinite(value) else "")
            if not -(2 ** (bits - 1)) <= value < 2**bits:
                self.fail(f"{value} does not fit {dtype.name}")
            if value >= 2 ** (bits - 1):
                value -= 2**bits
        text = self.literal(value, dtype)
        hint = text if dtype is BOOL else (f"c{text}" if value >= 0 else f"cm{-value}") if dtype is INDEX else ""
        name = self.emitter.constant(text, dtype.mlir, self.place, hint)
        return Scalar(name, dtype, dtype.is_integer and value >= 0)

    def literal(self, value: Any, dtype: DType) -> str:
        try:
            return literal(value, dtype)
        except OverflowError:
            self.fail(f"{str(value)[:20]}…, an integer of {len(str(abs(value)))} digits, does not fit {dtype.name}")

    def load_view(self, value: Value) -> Value:
        raise NotImplementedError

    def number(self, value: Value, what: str = "this") -> Const | Scalar | Tile:
        """What can be computed with; an error for anything else."""
        if isinstance(value, View):
            value = self.load_view(value)
        if isinstance(value, Const) and value.is_number or isinstance(value, Scalar | Tile):
            return value
        hint = ""
        if isinstance(value, Memory | Window):
            hint = f"load it first: {value.label}[:] or {value.label}.load(offset, length)"
        elif isinstance(value, Method) or isinstance(value, Const) and callable(value.py):
            hint = "call it"
        elif value == Const(None):
            hint = "what gives no value cannot be computed with; collectives write their outs=…"
        elif isinstance(value, Const) and type(value.py).__module__ == "numpy":
            hint = "make tiles with zeros(n), full(n, value) or iota(n), and pass arrays as arguments"
        elif isinstance(value, Seq):
            hint = "a tile of one value is full(n, value); other values are stored in an array"
        elif isinstance(value, Cell | Cells):
            cell = f"{value.cells.label}[…]" if isinstance(value, Cell) else f"{value.label}[…]"
            signal = (value.cells if isinstance(value, Cell) else value).kind == "signal"
            hint = f"wait_signal({cell}, ge=…) waits, read_signal({cell}) reads" if signal else f"read_counter({cell})"
        self.fail(f"{what} is {value.describe()}, which is no number", hint)

    def scalar(self, value: Value, dtype: DType | None = None, what: str = "this") -> Scalar:
        """A scalar of the IR, converted to `dtype`. A tile of one counts as its element."""
        n = self.number(value, what)
        if isinstance(n, Tile):
            if n.length != 1:
                self.fail(f"{what} is {n.describe()}, not one number", "reduce it first, as with t.sum() or t.max()")
            zero = self.constant(0, INDEX).name
            n = Scalar(self.result(f"tensor.extract {n.name}[{zero}] : {n.type}", n.dtype.mlir), n.dtype)
        if isinstance(n, Const):
            return self.constant(n.py, dtype or self.default_dtype(n))
        return self.convert(n, dtype) if dtype else n  # type: ignore[return-value]

    @staticmethod
    def default_dtype(value: Const) -> DType:
        if isinstance(value.py, bool):
            return BOOL
        return INDEX if isinstance(value.py, int) else F32

    def index(self, value: Value, what: str) -> Scalar:
        """An offset, count, rank or cell."""
        n = self.number(value, what)
        if isinstance(n, Const):
            if isinstance(n.py, float):
                self.fail(f"{what} is {n.py}, not an integer", "use // to divide integers")
            return self.constant(int(n.py), INDEX)
        s = self.scalar(n, None, what)
        if s.dtype.is_float:
            self.fail(f"{what} is {s.describe()}, not an integer", "convert it: int(…)")
        return self.convert(s, INDEX)  # type: ignore[return-value]

    def integer(self, value: Value, what: str, dtype: DType = I64) -> Scalar:
        n = self.number(value, what)
        if isinstance(n, Const) and isinstance(n.py, float) or not isinstance(n, Const) and n.dtype.is_float:
            self.fail(f"{what} is {n.describe()}, not an integer", "convert it: int(…)")
        if isinstance(n, Const):
            return self.constant(int(n.py), dtype)
        return self.scalar(n, dtype, what)

    def condition(self, value: Value, what: str = "the condition") -> Const | Scalar:
        n = value
        if isinstance(n, View):
            n = self.load_view(n)
        if isinstance(n, Const) and (n.is_number or isinstance(n.py, str) or n.py is None):
            return Const(bool(n.py))
        if isinstance(n, Seq):
            return Const(bool(n.items))
        if isinstance(n, Tile) and n.length != 1:
            self.fail(
                f"{what} is {n.describe()}: a branch needs one truth value",
                "choose element by element with where(condition, a, b), or reduce it first",
            )
        return self.scalar(self.number(n, what), BOOL, what)

    def truth(self, value: Value) -> Scalar:
        c = self.condition(value)
        return self.constant(c.py, BOOL) if isinstance(c, Const) else c

    # Conversions.

    def _like(self, value: Number, name: str, dtype: DType, nonneg: bool = False) -> Number:
        return Tile(name, dtype, value.length) if isinstance(value, Tile) else Scalar(name, dtype, nonneg)

    def _typed(self, value: Number, dtype: DType) -> str:
        return f"tensor<{value.length}x{dtype.mlir}>" if isinstance(value, Tile) else dtype.mlir

    def _cast(self, op: str, value: Number, dtype: DType, nonneg: bool = False) -> Number:
        to = self._typed(value, dtype)
        return self._like(value, self.result(f"{op} {value.name} : {value.type} to {to}", to), dtype, nonneg)

    def convert(self, value: Number, dtype: DType) -> Number:
        source = value.dtype
        if source is dtype:
            return value
        nonneg = getattr(value, "nonneg", False)
        if dtype is BOOL:
            return self._to_bool(value)
        if source.is_float and dtype.is_float:
            if dtype.width > source.width:
                return self._cast("arith.extf", value, dtype)
            if source is F64 and dtype is not F32 or source.width == dtype.width:
                return self.convert(self.convert(value, F32), dtype)
            return self._cast("arith.truncf", value, dtype)
        if source.is_float:
            if dtype is INDEX:
                return self.convert(self.convert(value, I64), INDEX)
            return self._cast("arith.fptosi", value, dtype)
        if dtype.is_float:
            if source is BOOL:
                return self._cast("arith.uitofp", value, dtype)
            return self._cast("arith.sitofp", self.convert(value, I64) if source is INDEX else value, dtype)
        if source is BOOL:
            return self._cast("arith.index_castui" if dtype is INDEX else "arith.extui", value, dtype, True)
        if INDEX in (source, dtype):
            return self._cast("arith.index_cast", value, dtype, nonneg)
        op = "arith.extsi" if dtype.width > source.width else "arith.trunci"
        return self._cast(op, value, dtype, nonneg and op == "arith.extsi")

    def _to_bool(self, value: Number) -> Number:
        zero = Const(0.0 if value.dtype.is_float else 0)
        return self.compare(ast.NotEq(), value, zero)  # type: ignore[return-value]

    def tile(self, value: Value, length: int, dtype: DType | None = None, what: str = "this") -> Tile:
        """A tile of that length: scalars and tiles of one are repeated."""
        n = self.number(value, what)
        if isinstance(n, Const):
            dtype = dtype or self.default_dtype(n)
            self.constant(n.py, dtype) if dtype.is_integer else None  # refuses what does not fit
            text = self.literal(n.py, dtype)
            type_ = f"tensor<{length}x{dtype.mlir}>"
            return Tile(self.emitter.constant(f"dense<{text}>", type_, self.place), dtype, length)
        if isinstance(n, Scalar):
            wanted = dtype or n.dtype
            s = self.convert(n, I64 if wanted is INDEX else wanted)
            name = self.result(f"comms.splat {s.name} : {s.type} -> tensor<{length}x{s.dtype.mlir}>", "")
            return Tile(name, s.dtype, length)
        t = self.convert(n, dtype) if dtype else n
        assert isinstance(t, Tile)
        if t.length == length:
            return t
        if t.length != 1:
            self.fail(f"{what} is {t.describe()}, where {length} elements are needed")
        name = self.result(f"comms.broadcast_row {t.name} : {t.type} -> tensor<{length}x{t.dtype.mlir}>", "")
        return Tile(name, t.dtype, length)

    # Operands that meet.

    def _dtype_of_both(self, a: Const | Number, b: Const | Number) -> DType:
        """A Python number takes the type of what it meets, as in NumPy: `tile + 1.0` keeps the tile's type."""
        if isinstance(a, Const) and isinstance(b, Const):
            return promote(self.default_dtype(a), self.default_dtype(b))
        if isinstance(a, Const) or isinstance(b, Const):
            weak, strong = (a, b) if isinstance(a, Const) else (b, a)
            assert isinstance(weak, Const) and not isinstance(strong, Const)
            if isinstance(weak.py, float):
                return strong.dtype if strong.dtype.is_float else F32
            if strong.dtype is BOOL and not isinstance(weak.py, bool):
                return INDEX if isinstance(strong, Scalar) else I32
            return strong.dtype
        return promote(a.dtype, b.dtype)

    def both(self, a: Value, b: Value, symbol: str, dtype: DType | None = None) -> tuple[Number, Number]:
        """Two operands in one type and of one length."""
        x, y = self.number(a, f"the left side of '{symbol}'"), self.number(b, f"the right side of '{symbol}'")
        dtype = dtype or self._dtype_of_both(x, y)
        lengths = [v.length for v in (x, y) if isinstance(v, Tile)]
        if not lengths:
            return self.scalar(x, dtype), self.scalar(y, dtype)
        if len(lengths) == 2 and lengths[0] != lengths[1] and 1 not in lengths:
            self.fail(
                f"'{symbol}' of tiles of {lengths[0]} and {lengths[1]} elements",
                "their lengths must agree, or one be 1",
            )
        if dtype is INDEX:
            dtype = I64
        return self.tile(x, max(lengths), dtype), self.tile(y, max(lengths), dtype)

    def _apply(self, op: str, a: Number, b: Number, nonneg: bool = False) -> Number:
        return self._like(a, self.result(f"{op} {a.name}, {b.name} : {a.type}", a.type), a.dtype, nonneg)

    # Operators.

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        kind = type(op)
        symbol = SYMBOLS[kind]
        if isinstance(a, Seq) and isinstance(b, Seq) and kind is ast.Add:
            return Seq(a.items + b.items)
        if isinstance(a, Const) and isinstance(b, Const):
            return self._fold(kind, a, b)
        if kind is ast.MatMult:
            self.fail("'@' is not known to kernels", "multiply element by element and sum: (a * b).sum()")
        if kind is ast.Div:
            return self._divide(a, b)
        if kind is ast.Pow:
            return self._power(a, b)
        if (kept := self._neutral(kind, a, b)) is not None:
            return kept
        x, y = self.both(a, b, symbol)
        if x.dtype is BOOL and kind not in _BITS:
            x, y = self.both(x, y, symbol, INDEX if isinstance(x, Scalar) else I32)
        nonneg = getattr(x, "nonneg", False) and getattr(y, "nonneg", False)
        if kind in _PLAIN:
            return self._apply("arith." + _PLAIN[kind][x.dtype.is_float], x, y, nonneg and kind is not ast.Sub)
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
    def _neutral(kind: type[ast.operator], a: Value, b: Value) -> Value | None:
        """The other operand of integer `0 + x`, `x - 0`, `1 * x` and their like."""
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
            self.fail(f"'{SYMBOLS[kind]}' of {a.describe()} and {b.describe()}")
        except (ArithmeticError, ValueError) as error:
            self.fail(f"'{SYMBOLS[kind]}' of {a.describe()} and {b.describe()}: {error}")

    def _divide(self, a: Value, b: Value) -> Value:
        x, y = self.both(a, b, "/")
        if not x.dtype.is_float:
            x, y = self.convert(x, F32), self.convert(y, F32)
        return self._apply("arith.divf", x, y)

    def _floor_divide(self, x: Number, y: Number, nonneg: bool) -> Value:
        if x.dtype.is_float:
            return self.unary_math("floor", self._apply("arith.divf", x, y))
        return self._apply("arith.divui" if nonneg else "arith.floordivsi", x, y, nonneg)

    def _modulo(self, x: Number, y: Number, nonneg: bool) -> Value:
        """Python's and NumPy's: the sign is the divisor's."""
        if x.dtype.is_float:
            quotient = self.unary_math("floor", self._apply("arith.divf", x, y))
            return self.binary(ast.Sub(), x, self.binary(ast.Mult(), quotient, y))
        if nonneg:
            return self._apply("arith.remui", x, y, True)
        rest = self._apply("arith.remsi", x, y)
        wrong = self.compare(ast.Lt(), self.binary(ast.BitXor(), rest, y), Const(0))
        if getattr(y, "nonneg", False):
            wrong = self.compare(ast.Lt(), rest, Const(0))
        else:
            inexact = self.compare(ast.NotEq(), rest, Const(0))
            wrong = self.binary(ast.BitAnd(), wrong, inexact)
        fixed = self.binary(ast.Add(), rest, y)
        chosen = self.select(wrong, fixed, rest)
        return (
            Scalar(chosen.name, chosen.dtype, True)
            if getattr(y, "nonneg", False) and isinstance(chosen, Scalar)
            else chosen
        )

    def _power(self, a: Value, b: Value) -> Value:
        if isinstance(b, Const) and isinstance(b.py, int) and not isinstance(b.py, bool) and 0 < b.py <= 64:
            return self._repeat(a, b.py)
        if isinstance(b, Const) and b.py == 0.5:
            return self.unary_math("sqrt", a)
        if isinstance(b, Const) and b.py in (-0.5, -1):
            return self.unary_math("rsqrt", a) if b.py == -0.5 else self._divide(Const(1.0), a)
        x, y = self.both(a, b, "**")
        if not x.dtype.is_float:
            self.fail("'**' of integers needs an exponent that is known, from 1 to 64", "convert to float first")
        return self.binary_math("powf", x, y)

    def _repeat(self, base: Value, exponent: int) -> Value:
        """Square and multiply."""
        result: Value | None = None
        power: Value = self.number(base)
        while exponent:
            if exponent & 1:
                result = power if result is None else self.binary(ast.Mult(), result, power)
            exponent >>= 1
            if exponent:
                power = self.binary(ast.Mult(), power, power)
        assert result is not None
        return result

    def negate(self, value: Value) -> Value:
        n = self.number(value, "what '-' is applied to")
        if isinstance(n, Const):
            return Const(-n.py)
        if n.dtype.is_float:
            return self._like(n, self.result(f"arith.negf {n.name} : {n.type}", n.type), n.dtype)
        return self.binary(ast.Sub(), Const(0), n)

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

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        kind = type(op)
        if kind not in _COMPARE:
            self.fail("'in' and 'is' need values that are known when the kernel is compiled", "compare with ==")
        python, integer, floating = _COMPARE[kind]
        if isinstance(a, Const) and isinstance(b, Const):
            try:
                return Const(python(a.py, b.py))
            except TypeError:
                self.fail(f"'{SYMBOLS[kind]}' of {a.describe()} and {b.describe()}")
        x, y = self.both(a, b, SYMBOLS[kind])
        if x.dtype is BOOL and kind not in (ast.Eq, ast.NotEq):
            x, y = self.convert(x, I32), self.convert(y, I32)
        if x.dtype.is_float and x.dtype.width < 32:
            x, y = self.convert(x, F32), self.convert(y, F32)
        text = f"arith.cmpf {floating}" if x.dtype.is_float else f"arith.cmpi {integer}"
        return self._like(x, self.result(f"{text}, {x.name}, {y.name} : {x.type}", ""), BOOL)

    def select(self, condition: Value, a: Value, b: Value) -> Number:
        """Both are there; the condition says which is meant."""
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
        nonneg = getattr(x, "nonneg", False) and getattr(y, "nonneg", False)
        text = f"arith.select {c.name}, {x.name}, {y.name} : " + (f"{c.type}, " if isinstance(c, Tile) else "") + x.type
        return self._like(x, self.result(text, x.type), x.dtype, nonneg)

    def extremum(self, which: str, a: Value, b: Value) -> Value:
        """`min` and `max` of two, as NumPy's minimum and maximum: a NaN wins."""
        a, b = self.number(a, f"the first of {which}"), self.number(b, f"the second of {which}")
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(min(a.py, b.py) if which == "min" else max(a.py, b.py))
        x, y = self.both(a, b, which)
        nonneg = getattr(x, "nonneg", False) and getattr(y, "nonneg", False)
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
        return self._like(n, self.result(f"math.{name} {n.name} : {n.type}", n.type), n.dtype)

    def binary_math(self, name: str, a: Value, b: Value) -> Value:
        x, y = self.both(a, b, name)
        if not x.dtype.is_float:
            x, y = self.convert(x, F32), self.convert(y, F32)
        return self._like(x, self.result(f"math.{name} {x.name}, {y.name} : {x.type}", x.type), x.dtype)

    def absolute(self, value: Value) -> Value:
        n = self.number(value, "the argument of abs")
        if isinstance(n, Const):
            return Const(abs(n.py))
        if n.dtype.is_float:
            return self.unary_math("absf", n)
        return self.extremum("max", n, self.negate(n))

    def predicate(self, name: str, value: Value) -> Value:
        n = self._float(value, f"the argument of {name}")
        return self._like(n, self.result(f"math.{name} {n.name} : {n.type}", ""), BOOL)
