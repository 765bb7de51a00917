"""Numbers: constants, what counts as a number, conversions between types, operands that meet, comparisons."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import BF16, BOOL, F8, F8E5M2, F16, F32, F64, I32, I64, INDEX, DType, promote
from . import hints
from .base import Translation
from .values import Cell, Cells, Const, FoldedMath, Memory, Method, Number, Product, Scalar, Seq, Tile, Value, Window

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
# Constants that a branch may ask for their truth.
# Of tiles that do not fit in the function of a collective.
_ROWS_OF_ARGS = "; an array of args with one dimension is the same for all rows: [rows, 1] has one value for each row"
# The bits of NaN and of the infinities; f8 has none, and its greatest numbers instead.
_SPECIAL = {
    F64: (0x7FF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000),
    F32: (0x7FC00000, 0x7F800000, 0xFF800000),
    BF16: (0x7FC0, 0x7F80, 0xFF80),
    F16: (0x7E00, 0x7C00, 0xFC00),
    F8: (0x7F, 0x7E, 0xFE),
    F8E5M2: (0x7E, 0x7C, 0xFC),
}


def literal(value: Any, dtype: DType) -> str:
    """Formats a number as MLIR."""
    if dtype is BOOL:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    value = float(value)
    rounded = float(dtype(value))
    if not math.isfinite(rounded) or dtype is F8:
        value = rounded  # MLIR has no number for what is beyond those of the type
    if math.isfinite(value):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    nan, plus, minus = _SPECIAL[dtype]
    bits = nan if math.isnan(value) else plus if value > 0 else minus
    return f"0x{bits:0{dtype.width // 4}X}"


def _instead_of_wrapping(value: int, bits: int) -> str:
    if 0 <= value < 2**bits:
        return f"integers are signed: convert what it meets to a wider type, or write {value - 2**bits} for its bits"
    return ""


def _instead_of_number(value: Value) -> str:
    if isinstance(value, Memory | Window):
        return f"load it first: {value.label}[:] or {value.label}.load(offset, length)"
    if isinstance(value, Product):
        return hints.OF_PRODUCT
    if isinstance(value, Method) or isinstance(value, Const) and callable(value.py):
        return "call it"
    if isinstance(value, Const) and isinstance(value.py, str | bytes):
        return "kernels know no text: write a number"
    if value == Const(None):
        return "this gives no value to compute with; collectives write their outs=…"
    if value == Const(...):
        return "all of an array is [:]"
    if isinstance(value, Const) and type(value.py).__module__ in ("numpy", "torch"):
        return "make tiles with zeros(n), full(n, value) or iota(n), and pass arrays as arguments"
    if isinstance(value, Seq) or isinstance(value, Const) and isinstance(value.py, list | tuple):
        return "a tile of one value is full(n, value); other values are stored in an array"
    if isinstance(value, Cell | Cells):
        cells = value.cells if isinstance(value, Cell) else value
        cell = f"{cells.label}[…]"
        wait_or_read = f"wait_signal({cell}, ge=…) waits, read_signal({cell}) reads"
        return wait_or_read if cells.kind == "signal" else f"read_counter({cell})"
    return ""


def instead_of_numbers(*values: Value) -> str:
    """Returns what to write in place of the first value that is not a number."""
    return next(filter(None, map(_instead_of_number, values)), "")


class Numbers(Translation):
    """The layer that knows numbers."""

    def constant(self, value: Any, dtype: DType) -> Scalar:
        if dtype.is_integer and not isinstance(value, bool):
            bits = min(dtype.width, 64)
            if not isinstance(value, int):
                self.fail(f"{value!r} is not an integer", f"write int({value!r})" if math.isfinite(value) else "")
            if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                self.fail(f"{Const(value)} does not fit {dtype.name}", _instead_of_wrapping(value, bits))
        text = self.literal(value, dtype)
        hint = text if dtype is BOOL else (f"c{text}" if value >= 0 else f"cm{-value}") if dtype is INDEX else ""
        name = self.emitter.constant(text, dtype.mlir, self.place, hint)
        return Scalar(name, dtype, dtype.is_integer and value >= 0)

    def literal(self, value: Any, dtype: DType) -> str:
        try:
            return literal(value, dtype)
        except OverflowError:
            self.fail(f"{Const(value)} does not fit {dtype.name}")

    def whole(self, value: Const, to_int: Callable[[Any], int], name: str) -> Const:
        """Converts a constant to an integer as `int` or `round` does."""
        try:
            return Const(to_int(value.py))
        except (OverflowError, ValueError):
            self.fail(f"{name}({value.py}) has no value: no integer stands for it")

    def number(self, value: Value, what: str = "this") -> Const | Number:
        """Converts to a value for arithmetic; an error for anything else."""
        value = self.load_view(value)
        if isinstance(value, Const) and value.is_number or isinstance(value, Scalar | Tile):
            return value
        self.fail(f"{what} is {value.describe()}, which is not a number", _instead_of_number(value))

    def scalar(self, value: Value, dtype: DType | None = None, what: str = "this") -> Scalar:
        """A scalar of the IR, converted to `dtype`. A tile of one counts as its element."""
        n = self.number(value, what)
        if isinstance(n, Tile):
            if n.length != 1:
                self.fail(f"{what} is {n.describe()}, not one number", "reduce it first, as with t.sum() or t.max()")
            zero = self.constant(0, INDEX).name
            n = Scalar(self.result(f"tensor.extract {n.name}[{zero}] : {n.type}"), n.dtype)
        if isinstance(n, Const):
            dtype = dtype or self.default_dtype(n)
            if isinstance(n, FoldedMath) and dtype.is_float and dtype is not F64:
                return self._image(n, dtype)
            return self.constant(n.py, dtype)
        return self.convert(n, dtype) if dtype else n  # type: ignore[return-value]

    def _image(self, value: FoldedMath, dtype: DType) -> Scalar:
        argument = self.scalar(value.argument, F32)
        name = self.result(f"math.{value.function} {argument.name} : f32")
        return self.convert(Scalar(name, F32), dtype)  # type: ignore[return-value]

    @staticmethod
    def default_dtype(value: Const) -> DType:
        if isinstance(value.py, bool):
            return BOOL
        return INDEX if isinstance(value.py, int) else F32

    def index(self, value: Value, what: str) -> Scalar:
        """Converts an offset, count, rank or cell number to index."""
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
        n = self.load_view(value)
        if isinstance(n, Const) and isinstance(
            n.py, bool | int | float | str | tuple | list | dict | set | range | None
        ):
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

    def like(self, value: Number, text: str, dtype: DType, nonneg: bool = False) -> Number:
        """Wraps the result of an op: a tile if `value` is a tile, otherwise a scalar."""
        name = self.result(text)
        return Tile(name, dtype, value.length) if isinstance(value, Tile) else Scalar(name, dtype, nonneg)

    def cast(self, op: str, value: Number, dtype: DType, nonneg: bool = False) -> Number:
        to = f"tensor<{value.length}x{dtype.mlir}>" if isinstance(value, Tile) else dtype.mlir
        return self.like(value, f"{op} {value.name} : {value.type} to {to}", dtype, nonneg)

    def convert(self, value: Number, dtype: DType) -> Number:
        source = value.dtype
        if source is dtype:
            return value
        if dtype is BOOL:
            return self._to_bool(value)
        if source.is_float and dtype.is_float:
            if dtype.width > source.width:
                return self.cast("arith.extf", value, dtype)
            if source is F64 and dtype is not F32 or source.width == dtype.width:
                return self.convert(self.convert(value, F32), dtype)
            return self.cast("arith.truncf", value, dtype)
        if source.is_float:
            if dtype is INDEX:
                return self.convert(self.convert(value, I64), INDEX)
            return self.cast("arith.fptosi", value, dtype)
        if dtype.is_float:
            if source is BOOL:
                return self.cast("arith.uitofp", value, dtype)
            return self.cast("arith.sitofp", self.convert(value, I64) if source is INDEX else value, dtype)
        if source is BOOL:
            return self.cast("arith.index_castui" if dtype is INDEX else "arith.extui", value, dtype, True)
        if INDEX in (source, dtype):
            if I64 not in (source, dtype):  # MLIR takes an index that is cast to less and back for the index itself.
                return self.convert(self.convert(value, I64), dtype)
            return self.cast("arith.index_cast", value, dtype, value.nonneg)
        op = "arith.extsi" if dtype.width > source.width else "arith.trunci"
        return self.cast(op, value, dtype, value.nonneg and op == "arith.extsi")

    def _to_bool(self, value: Number) -> Number:
        zero = Const(0.0 if value.dtype.is_float else 0)
        return self.compare(ast.NotEq(), value, zero)  # type: ignore[return-value]

    def tile(self, value: Value, length: int, dtype: DType | None = None, what: str = "this") -> Tile:
        """Converts to a tile of that length: scalars and tiles of one element are repeated."""
        n = self.number(value, what)
        if isinstance(n, Const):
            dtype = dtype or self.default_dtype(n)
            if isinstance(n, FoldedMath) and dtype.is_float and dtype is not F64:
                return self.tile(self._image(n, dtype), length)
            self.constant(n.py, dtype) if dtype.is_integer else None  # refuses what does not fit
            text = self.literal(n.py, dtype)
            type_ = f"tensor<{length}x{dtype.mlir}>"
            return Tile(self.emitter.constant(f"dense<{text}>", type_, self.place), dtype, length)
        if isinstance(n, Scalar):
            wanted = dtype or n.dtype
            s = self.convert(n, I64 if wanted is INDEX else wanted)
            name = self.result(f"comms.splat {s.name} : {s.type} -> tensor<{length}x{s.dtype.mlir}>")
            return Tile(name, s.dtype, length)
        t = self.convert(n, dtype) if dtype else n
        assert isinstance(t, Tile)
        if t.length == length:
            return t
        if t.length != 1:
            self.fail(f"{what} is {t.describe()}, where {length} elements are needed")
        name = self.result(f"comms.broadcast_row {t.name} : {t.type} -> tensor<{length}x{t.dtype.mlir}>")
        return Tile(name, t.dtype, length)

    def part(self, tile: Tile, begin: int, length: int) -> Tile:
        """`length` elements of a tile from `begin` on."""
        if tile.dtype is BOOL:
            return self.convert(self.part(self.convert(tile, I32), begin, length), BOOL)  # type: ignore[arg-type, return-value]
        if length == tile.length:
            return tile
        made = f"tensor<{length}x{tile.dtype.mlir}>"
        text = f"tensor.extract_slice {tile.name}[{begin}] [{length}] [1] : {tile.type} to {made}"
        return Tile(self.result(text), tile.dtype, length)

    def joined(self, tiles: Sequence[Tile]) -> Tile:
        """Tiles of one type, one behind the other."""
        dtype, length = tiles[0].dtype, sum(tile.length for tile in tiles)
        if dtype is BOOL:
            return self.convert(self.joined([self.convert(tile, I32) for tile in tiles]), BOOL)  # type: ignore[misc, return-value]
        names, types = ", ".join(tile.name for tile in tiles), ", ".join(tile.type for tile in tiles)
        text = f"tensor.concat dim(0) {names} : ({types}) -> tensor<{length}x{dtype.mlir}>"
        return Tile(self.result(text), dtype, length)

    # Operands that meet.

    def dtype_of_both(self, a: Const | Number, b: Const | Number) -> DType:
        """Common type of two operands. A Python number adapts, as in NumPy: `tile + 1.0` keeps the tile's type."""
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
        """Converts two operands to one type and one length."""
        x, y = self.number(a, f"the left side of '{symbol}'"), self.number(b, f"the right side of '{symbol}'")
        dtype = dtype or self.dtype_of_both(x, y)
        lengths = [v.length for v in (x, y) if isinstance(v, Tile)]
        if not lengths:
            return self.scalar(x, dtype), self.scalar(y, dtype)
        if len(lengths) == 2 and lengths[0] != lengths[1] and 1 not in lengths:
            self.fail(
                f"'{symbol}' of tiles of {lengths[0]} and {lengths[1]} elements",
                "their lengths must agree, or one be 1" + _ROWS_OF_ARGS * self.in_region,
            )
        if dtype is INDEX:
            dtype = I64
        return self.tile(x, max(lengths), dtype), self.tile(y, max(lengths), dtype)

    def compare(self, op: ast.cmpop, a: Value, b: Value) -> Value:
        kind = type(op)
        if kind not in _COMPARE:
            self.fail("'in' and 'is' need values that are known when the kernel is compiled", "compare with ==")
        python, integer, floating = _COMPARE[kind]
        if isinstance(a, Const) and isinstance(b, Const):
            try:
                return Const(python(a.py, b.py))
            except TypeError:
                self.fail(f"'{SYMBOLS[kind]}' of {a.describe()} and {b.describe()}", instead_of_numbers(a, b))
        x, y = self.both(a, b, SYMBOLS[kind])
        if x.dtype is BOOL and kind not in (ast.Eq, ast.NotEq):
            x, y = self.convert(x, I32), self.convert(y, I32)
        if x.dtype.is_float and x.dtype.width < 32:
            x, y = self.convert(x, F32), self.convert(y, F32)
        text = f"arith.cmpf {floating}" if x.dtype.is_float else f"arith.cmpi {integer}"
        return self.like(x, f"{text}, {x.name}, {y.name} : {x.type}", BOOL)
