"""Annotations of kernel parameters, and their types for editors.

`x: f32[Window, "rows", 64]` is a window of rows of 64 elements; static checkers see `Window`. The same is written
`Window["rows, 64", "f32"]`. Methods and attributes of the classes here are there for editors, type checkers and `help`:
inside a kernel the compiler knows what they mean (`lowering`); outside there is nothing that they could act on.
"""

# The methods of these classes are never called.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import dtypes, extents
from .dtypes import DType, as_dtype
from .extents import RANKS, DerivedDim, Dim, Extent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Annotated as bf16
    from typing import Annotated as f8
    from typing import Annotated as f8e5m2
    from typing import Annotated as f16
    from typing import Annotated as f32
    from typing import Annotated as f64
    from typing import Annotated as i8
    from typing import Annotated as i16
    from typing import Annotated as i32
    from typing import Annotated as i64
    from typing import Annotated as index
else:
    f64, f32, f16, bf16 = dtypes.F64, dtypes.F32, dtypes.F16, dtypes.BF16
    f8, f8e5m2 = dtypes.F8, dtypes.F8E5M2
    i64, i32, i16, i8, index = dtypes.I64, dtypes.I32, dtypes.I16, dtypes.I8, dtypes.INDEX

__all__ = [
    "Array",
    "Cell",
    "Channel",
    "Counter",
    "Dim",
    "HostWindow",
    "Index",
    "Memory",
    "Signal",
    "Slot",
    "Team",
    "Tile",
    "Token",
    "Window",
    "bf16",
    "dims",
    "f16",
    "f32",
    "f64",
    "f8",
    "f8e5m2",
    "i16",
    "i32",
    "i64",
    "i8",
    "index",
    "ranks",
]


#: The number of ranks that a kernel runs on, for annotations: `y: f32[Array, rows * ranks, n]`.
ranks: Any = Dim(RANKS)


def dims(names: str) -> Any:
    """Names of dimensions for annotations: `rows, n = dims("rows n")`, then `f32[Window, rows, n]`.

    `names` are apart by spaces or commas. One name gives one dimension, not a tuple: `n = dims("n")`. Annotations
    calculate with them, and with `ranks`, by +, -, * and //: `f32[Array, rows * ranks, n // 2]`.
    """
    made = tuple(Dim(n) for n in re.split(r"[,\s]+", names.strip()))
    for name in made:
        if not name.isidentifier():
            raise TypeError(f"'{name}' is not a name of a dimension; write dims(\"rows n\")")
    return made[0] if len(made) == 1 else made


@dataclass(frozen=True)
class Parameter:
    """Binding of a kernel's parameter: its kind, element type and shape (numbers and names)."""

    kind: str  # "window", "array", "signal", "counter" or "scalar"
    dtype: DType
    shape: tuple[Extent, ...] = ()
    #: A window that belongs to the host of its rank between two launches.
    host: bool = False

    def describe(self, shape: Sequence[Extent]) -> str:
        """It, where it has this shape."""
        sizes = f" [{', '.join(str(d) for d in shape)}]" if shape else ""
        return f"{self.dtype.name} {'host ' * self.host}{self.kind}{sizes}"

    def __repr__(self) -> str:
        return self.describe(self.shape)


def parse_shape(text: str) -> tuple[Extent, ...]:
    """`"rows, 64"`, `"rows 64"`, `"8x64"` or `"rows * ranks, 64"`."""
    if re.search(r"[-+*/()]", text):
        return tuple(extents.parse(part) for part in text.split(",") if part.strip())
    parts = [p for p in re.split(r"[,\s]+|(?<=\d)x(?=\d)", text.strip()) if p]
    for part in parts:
        if not re.fullmatch(r"\d+|[A-Za-z_]\w*|\?", part):
            raise TypeError(f'\'{part}\' in the shape "{text}" is neither a number nor a name, such as "rows, 64"')
    return tuple(int(p) if p.isdigit() else p for p in parts)


def _dims(items: tuple[Any, ...]) -> tuple[Extent, ...]:
    dims: list[Extent] = []
    for item in items:
        if isinstance(item, str):
            dims.extend(parse_shape(item))
        elif isinstance(item, DerivedDim):
            dims.append(item)
        elif (number := extents.whole(item)) is not None and number >= 0:
            dims.append(number)
        else:
            raise TypeError(
                f"{item!r} is not a dimension: dimensions are numbers, names and what +, -, * and // make of them, "
                "such as rows * ranks, 64"
            )
    return tuple(dims)


def make_parameter(dtype: DType, items: tuple[Any, ...]) -> Parameter:
    """The meaning of `dtype[kind, dims…]`."""
    kind = getattr(items[0], "_kind", None) if items else None
    if kind is None:
        raise TypeError(
            f"{dtype.name}[…] begins with Window, HostWindow, Array, Signal or Counter, such as "
            f"{dtype.name}[Window, 8, 64]"
        )
    dims = _dims(items[1:])
    if kind in ("signal", "counter"):
        if dtype is not dtypes.I64:
            raise TypeError(f"cells are i64: write i64[{items[0].__name__}, 4], or {items[0].__name__}[4]")
        return _cells(kind, dims)
    if not dims:
        raise TypeError(
            f"{dtype.name}[{items[0].__name__}] has no shape; write {dtype.name}[{items[0].__name__}, 8, 64]"
        )
    return Parameter(kind, dtype, dims, getattr(items[0], "_host", False))


DType.annotate = staticmethod(make_parameter)


def _cells(kind: str, dims: tuple[Extent, ...]) -> Parameter:
    if len(dims) != 1 or dims[0] == 0:
        raise TypeError(f"a {kind} has a number of cells, such as {kind.capitalize()}[4]")
    return Parameter(kind, dtypes.I64, dims)


class _Annotated:
    _kind: str

    def __class_getitem__(cls, items: Any) -> Parameter:
        items = items if isinstance(items, tuple) else (items,)
        if cls._kind in ("signal", "counter"):
            return _cells(cls._kind, _dims(items))
        found = [d for item in items if (d := as_dtype(item)) is not None and not isinstance(item, int)]
        if len(found) != 1:
            raise TypeError(
                f'{cls.__name__}[…] takes a shape and one type of elements, such as {cls.__name__}["rows, 64", "bf16"]'
            )
        rest = tuple(i for i in items if isinstance(i, int) or as_dtype(i) is None)
        return make_parameter(found[0], (cls, *rest))


class Memory(_Annotated):
    """Common base of windows and arrays."""

    shape: tuple[int, ...]
    size: int
    ndim: int
    dtype: Any

    def __len__(self) -> int: ...
    @property
    def T(self) -> Array:  # noqa: N802 (NumPy's name)
        """The transpose of a matrix, for `@`."""

    def __getitem__(self, key: Any) -> Tile:
        """`a[i]`, `a[i, j]`: an element; `a[i:i + 64]`, `a[r]`, `a[r, 0:64]`, `a[:]`: a tile; rows: a matrix."""

    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __matmul__(self, other: Any) -> Array:
        """The product of two matrices: stored in a part of an array, or an array of f32 of the block."""

    def __iadd__(self, product: Array) -> Any:
        """`p += a @ b` adds a product to a matrix."""

    def load(self, offset: Index, length: int, valid: Index | None = None, after: Token | None = None) -> Tile:
        """`tile_load`: `length` elements from `offset` on, of which `valid` exist, after the wait of the token
        `after`."""

    def store(self, tile: Tile, offset: Index = 0, valid: Index | None = None) -> None:
        """`tile_store`: writes `tile`, or its first `valid` elements, from element `offset` on."""


class Window(Memory):
    """Memory of one shape that every rank holds and its peers can reach. Used as an array it is this rank's part."""

    _kind = "window"

    def local(self) -> Array:
        """This rank's own part."""

    def peer(self, peer: Index, team: Team | None = None) -> Array:
        """The part of rank `peer` of `team` (the world)."""

    def multimem(self, team: Team | None = None) -> Array:
        """One address for all parts on the ranks of `team` (the world): NVLink multicast."""


class HostWindow(Window):
    """A window whose part the surrounding program reads or writes between two launches of its rank.

    The checker then refuses a kernel in which a peer may reach this rank's part before this rank's launch has begun,
    or after it has ended.
    """

    _host = True


class Array(Memory):
    """Memory of this rank, which no peer can reach."""

    _kind = "array"


class Cell:
    """One cell of a signal or counter: `s[i]`."""


class Signal(_Annotated):
    """Cells of 64 bits on every rank that peers set, increment or add to."""

    _kind = "signal"

    def __len__(self) -> int: ...
    def __getitem__(self, cell: Index) -> Cell: ...


class Counter(_Annotated):
    """Cells of 64 bits, local to a rank, that count the completion of its own puts."""

    _kind = "counter"

    def __len__(self) -> int: ...
    def __getitem__(self, cell: Index) -> Cell: ...


class Token:
    """Evidence that a wait has ended, for `after`."""


class Channel:
    """Carries tiles between the ranks of a team by a protocol."""

    def __getitem__(self, slot: Index) -> Slot: ...


class Slot:
    """One slot of a channel: `ch[i]`."""


class Team:
    """An ordered set of ranks."""

    rank: int
    size: int

    def inner(self, factor: int) -> Team:
        """The run of `factor` neighbors that this rank belongs to."""

    def outer(self, factor: int) -> Team:
        """The team of every `factor`-th rank that this rank belongs to."""

    def peers(self, reversed: bool = False) -> Iterator[int]:
        """Every other rank, starting after this one; `reversed`: in the opposite order."""

    def translate(self, rank: Index, to: Team) -> int:
        """Rank `rank` of this team as a rank of `to`."""


class Tile:
    """A row of values that a block processes at a time. Arithmetic is elementwise, as in NumPy."""

    dtype: Any
    shape: tuple[int]
    size: int
    ndim: int

    @property
    def T(self) -> Tile:  # noqa: N802 (NumPy's name)
        """The transpose, for `@`, of several rows of an array."""

    def __len__(self) -> int: ...
    def __matmul__(self, other: Any) -> Array:
        """The product of two matrices, each several rows of an array."""

    def __getitem__(self, i: int) -> Tile:
        """The element of a tile of one element, as a scalar."""

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Tile:
        """The sum of the elements as a tile of one element, computed in the tile's own type.

        `axis` and `keepdims` are NumPy's and change nothing, because a tile has one dimension.
        """

    def prod(self, axis: int | None = None, keepdims: bool = False) -> Tile:
        """The product of the elements; `axis` and `keepdims` as for `sum`."""

    def min(self, axis: int | None = None, keepdims: bool = False) -> Tile:
        """The least element; a NaN wins. `axis` and `keepdims` as for `sum`."""

    def max(self, axis: int | None = None, keepdims: bool = False) -> Tile:
        """The greatest element; a NaN wins. `axis` and `keepdims` as for `sum`."""

    def mean(self, axis: int | None = None, keepdims: bool = False) -> Tile:
        """The mean of the elements, of integers in f32; `axis` and `keepdims` as for `sum`."""

    def any(self) -> Tile:
        """Whether some element of a mask is true, as a tile of one element."""

    def all(self) -> Tile:
        """Whether every element of a mask is true, as a tile of one element."""

    def astype(self, dtype: Any) -> Tile:
        """The values in the element type `dtype`, such as commsir.bf16; floats are rounded to nearest, ties to even."""

    def item(self) -> Tile:
        """The element of a tile of one element, as a scalar."""

    def __add__(self, other: Any) -> Tile: ...
    def __radd__(self, other: Any) -> Tile: ...
    def __sub__(self, other: Any) -> Tile: ...
    def __rsub__(self, other: Any) -> Tile: ...
    def __mul__(self, other: Any) -> Tile: ...
    def __rmul__(self, other: Any) -> Tile: ...
    def __truediv__(self, other: Any) -> Tile: ...
    def __rtruediv__(self, other: Any) -> Tile: ...
    def __floordiv__(self, other: Any) -> Tile: ...
    def __mod__(self, other: Any) -> Tile: ...
    def __pow__(self, other: Any) -> Tile: ...
    def __neg__(self) -> Tile: ...
    def __abs__(self) -> Tile: ...
    def __lt__(self, other: Any) -> Tile: ...
    def __le__(self, other: Any) -> Tile: ...
    def __gt__(self, other: Any) -> Tile: ...
    def __ge__(self, other: Any) -> Tile: ...
    def __and__(self, other: Any) -> Tile: ...
    def __or__(self, other: Any) -> Tile: ...
    def __xor__(self, other: Any) -> Tile: ...
    def __invert__(self) -> Tile: ...
    def __lshift__(self, other: Any) -> Tile: ...
    def __rshift__(self, other: Any) -> Tile: ...


Index = int | Tile


def parse_annotation(annotation: Any) -> Parameter | None:
    """The parameter that an annotation describes, or None where it is none of ours."""
    if isinstance(annotation, Parameter):
        return annotation
    if (dtype := as_dtype(annotation)) is not None and not isinstance(annotation, str):
        return Parameter("scalar", dtype)
    if annotation in (Signal, Counter):
        return _cells(annotation._kind, (1,))
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:  # Annotated[Window, "rows, 64", f32]
        base: Any = annotation.__origin__
        return parse_annotation(base[metadata]) if hasattr(base, "_kind") else None
    return None
