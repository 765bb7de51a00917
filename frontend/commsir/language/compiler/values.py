"""Values of names while a kernel is compiled: Python constants, IR values, and memory."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..dtypes import DType


class Value:
    """The value of an expression."""

    #: What errors call it: a template over its fields.
    what: ClassVar[str] = "a value that is not known"

    def describe(self) -> str:
        return self.what.format(self)

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, eq=False)
class Const(Value):
    """A Python object that is known at compile time: a number, a string, a function, a module…"""

    py: Any

    def __eq__(self, other: object) -> bool:
        """1, 1.0 and True are different constants, and 0.0 and -0.0; objects are compared by identity."""
        if not isinstance(other, Const) or type(self.py) is not type(other.py):
            return False
        if isinstance(self.py, float) and self.py == 0:
            return math.copysign(1, self.py) == math.copysign(1, other.py)
        return self.py is other.py or isinstance(self.py, bool | int | float | str) and self.py == other.py

    def __hash__(self) -> int:
        return hash((type(self.py), id(self.py)))

    def describe(self) -> str:
        if isinstance(self.py, str):
            return f"the string {self.py!r}"
        if isinstance(self.py, int) and self.py.bit_length() > 256:
            return f"an integer of {self.py.bit_length()} bits"
        if self.py is None or isinstance(self.py, bool | int | float):
            return repr(self.py)
        return f"a Python {type(self.py).__name__}"

    @property
    def is_number(self) -> bool:
        return isinstance(self.py, bool | int | float)


@dataclass(frozen=True, eq=False)
class FoldedMath(Const):
    """A function of `math` applied to a constant.

    Python computes with the value `py`. Where the constant meets f32 or a narrower float, it has the bits that the
    kernel's function would compute at run time.
    """

    function: str
    argument: Const


@dataclass(frozen=True)
class Scalar(Value):
    name: str
    dtype: DType
    # Known to be at least 0, so that `%` and `//` need no correction.
    nonneg: bool = field(default=False, compare=False)

    @property
    def type(self) -> str:
        return self.dtype.mlir

    def describe(self) -> str:
        return "a bool" if self.dtype.name == "bool" else f"a scalar {self.dtype.name}"


@dataclass(frozen=True)
class Tile(Value):
    what = "a tile of {0.length} {0.dtype}"
    name: str
    dtype: DType
    length: int
    # Of tiles nothing is known.
    nonneg: ClassVar[bool] = False

    @property
    def type(self) -> str:
        return f"tensor<{self.length}x{self.dtype.mlir}>"


Number = Scalar | Tile


@dataclass(frozen=True)
class Token(Value):
    what = "a token"
    name: str
    type: str = "!comms.token"


def shape_text(shape: tuple[int | None, ...], dtype: DType) -> str:
    return "x".join(["?" if d is None else str(d) for d in shape] + [dtype.mlir])


@dataclass(frozen=True)
class Window(Value):
    what = "the window '{0.label}'"
    name: str
    shape: tuple[int | None, ...]
    dtype: DType
    label: str

    @property
    def type(self) -> str:
        return f"!comms.window<{shape_text(self.shape, self.dtype)}>"


@dataclass(frozen=True)
class Memory(Value):
    """An array in memory: an argument, a part of a window, scratch."""

    what = "the array '{0.label}'"
    name: str
    shape: tuple[int | None, ...]
    dtype: DType
    label: str
    space: str = ""
    # A part of a window, which other ranks reach: the checker follows what tiles do to it.
    shared: bool = False
    # The rows and columns of a product that has a name: its shape has the most that there can be.
    filled: tuple[Value, Value] | None = None

    @property
    def type(self) -> str:
        space = f", #comms.space<{self.space}>" if self.space else ""
        return f"memref<{shape_text(self.shape, self.dtype)}{space}>"


#: The label of memory that a program has not given a name yet.
UNNAMED = "scratch"


def whole_tile(array: Window | Memory) -> str:
    """Returns how a program writes a tile of an array: `a[:]`, or a row of an array with several dimensions."""
    return f"{array.label}[{', '.join([*'ijklmn'[: len(array.shape) - 1], ':'])}]"


@dataclass(frozen=True)
class Matrix(Value):
    """Rows and columns of memory, whose dimensions but the last count as rows."""

    what = "a part of {0.base}"
    base: Memory | Window
    row: Value
    column: Value
    # As they lie in memory, and how many there are at most where that is known.
    rows: Value
    columns: Value
    bounds: tuple[int | None, int | None] = (None, None)
    transposed: bool = False

    @property
    def most_rows(self) -> int | None:
        return self.rows.py if isinstance(self.rows, Const) else self.bounds[0]

    @property
    def most_columns(self) -> int | None:
        return self.columns.py if isinstance(self.columns, Const) else self.bounds[1]

    # As they are multiplied.

    @property
    def height(self) -> Value:
        return self.columns if self.transposed else self.rows

    @property
    def width(self) -> Value:
        return self.rows if self.transposed else self.columns

    @property
    def most_height(self) -> int | None:
        return self.most_columns if self.transposed else self.most_rows

    @property
    def most_width(self) -> int | None:
        return self.most_rows if self.transposed else self.most_columns


@dataclass(frozen=True)
class Product(Value):
    what = "a product of matrices"
    lhs: Matrix
    rhs: Matrix
    # Parts of arrays that are added to it.
    addends: tuple[Matrix, ...] = ()
    # Arrays of the scales of both operands; empty: there are none.
    scales: tuple[Memory | Window, ...] = ()


@dataclass(frozen=True)
class View(Value):
    """`count` elements of memory from `offset` on; a tile once it is computed with."""

    what = "a part of {0.base}"
    base: Memory | Window
    offset: Value
    count: Value
    # Of a single element its subscripts, which count instead of the offset.
    indices: tuple[Value, ...] = ()
    # Of several rows, the matrix that they are; the count is None where they do not lie one behind the other.
    matrix: Matrix | None = None

    @property
    def is_tile(self) -> bool:
        """Whether its elements are contiguous."""
        return self.count != Const(None)


@dataclass(frozen=True)
class Team(Value):
    what = "a team"
    name: str
    size: int | None = None


@dataclass(frozen=True)
class Cells(Value):
    what = "the {0.kind} '{0.label}'"
    name: str
    kind: str  # "signal" or "counter"
    count: int
    label: str

    @property
    def type(self) -> str:
        return f"!comms.{self.kind}<{self.count}>"


# What the parameters of a kernel are inside it.
Argument = Scalar | Window | Memory | Cells


@dataclass(frozen=True)
class Cell(Value):
    what = "a cell of {0.cells}"
    cells: Cells
    index: Value


@dataclass(frozen=True)
class Channel(Value):
    what = "a channel"
    name: str
    protocol: str
    length: int
    dtype: DType
    pattern: str

    @property
    def type(self) -> str:
        return f"!comms.channel<{self.protocol}, {self.length}x{self.dtype.mlir}>"


@dataclass(frozen=True)
class Slot(Value):
    what = "a slot of a channel"
    channel: Channel
    index: Value


@dataclass(frozen=True)
class Seq(Value):
    """A tuple, or a list that is known element by element."""

    items: tuple[Value, ...]
    is_list: bool = field(default=False, compare=False)

    def describe(self) -> str:
        return f"a {'list' if self.is_list else 'tuple'} of {len(self.items)}"


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function or lambda that is written in a kernel, with the frame whose names it sees."""

    what = "the function '{0.name}'"
    node: ast.FunctionDef | ast.Lambda
    frame: Any
    name: str
    # Of parameters that need not be given.
    defaults: Mapping[str, Value]


@dataclass(frozen=True)
class Method(Value):
    what = "the method '{0.name}' of {0.owner}"
    owner: Value
    name: str


@dataclass(frozen=True)
class Peers(Value):
    """The iterable that `for_peers` returns."""

    what = "the peers of a team"
    team: Team
    reversed: bool


@dataclass(frozen=True)
class Range(Value):
    what = "a range"
    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True)
class Undefined(Value):
    """A name that may have no value; `why` is the error for its readers."""

    why: str
