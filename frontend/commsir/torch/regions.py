"""Arithmetic of an FX graph as a region of a collective, `consume` or `produce`.

A value of a region is a tile: one row of `columns` elements, or one element a row; of what is cut out of rows, or
joined of several, another number of elements a row. What works element by element
takes a tensor of any shape that has the collective's elements, in their order. A statistic of the rows goes with whole
rows only where the tensors' last dimensions are 1 and `columns`: torch aligns shapes at their ends, so that a mean
without keepdim goes along the columns.
Everything is computed in f32, as Inductor does; a cast rounds where the program has one, and results are rounded where
they are stored. Masks are tiles of i1.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch._inductor import inductor_prims
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, Node

from commsir.torch.capi import element_type
from commsir.torch.reporting import described

__all__ = [
    "CASTS",
    "Argument",
    "Region",
    "Unsupported",
    "cut_dim",
    "cut_sizes",
    "cuts_last_dim",
    "is_arithmetic",
    "is_elementwise",
    "is_part",
    "is_row_statistic",
    "moves_nothing",
    "parts_alone",
    "reduced_dims",
    "row_sizes",
    "same_sizes",
    "slice_of",
    "strided_alone",
]

aten = torch.ops.aten
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_SMALL_FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)
#: Integers that casts make, and that arguments may be of.
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
#: Comparisons of floats, ordered except for `une`, and those of integers that they stand for.
_INTEGER_ORDERS = {"ogt": "sgt", "oge": "sge", "olt": "slt", "ole": "sle", "oeq": "eq", "une": "ne"}
#: The largest number that rounds to the largest of e4m3fn, 448: half of the way to what would be the next.
_MOST_E4M3FN = 464.0
_CONSTANTS = (aten.full.default, aten.scalar_tensor.default)
#: Memory that parts of rows pass through, in bytes: that of one block on the chips that have the least.
_MOST_CUT_BYTES = 96 << 10
#: How many elements of a row are scattered, gathered or put into an order, each by comparisons with the whole row.
_MOST_SCATTERED = 16
#: How many places of a row a float32 tells apart.
_MOST_PLACES = 1 << 24
#: Up to this whole exponent a power is made by multiplications, as Inductor makes it.
_MOST_MULTIPLIED = 31


class Unsupported(Exception):
    """The reason why a node cannot be part of a region."""


class _Misfit(Unsupported):
    """The same of a tensor or a tile alone, which does not name the node."""


@dataclass(frozen=True)
class Tile:
    """An SSA value of `width` elements a row: f32, i1 for a mask, or an integer."""

    name: str
    width: int
    kind: str = "f32"


@dataclass(frozen=True)
class Argument:
    """A tensor from outside the region, and how the kernel reads it."""

    node: Node
    width: int
    #: One row for all rows; else a row for each.
    for_all: bool
    #: The shape that it is copied to first, where it is repeated over rows; None: it is read as it lies. Sizes that are
    #: not known cannot be compared: `layout` is the same as text.
    copied: tuple[Any, ...] | None = field(default=None, compare=False)
    layout: str = ""

    @property
    def dtype(self) -> torch.dtype:
        """As the kernel reads it. A number in float64 is rounded first, as it is where it meets float32."""
        dtype: torch.dtype = self.node.meta["val"].dtype
        return torch.float32 if dtype is torch.float64 else dtype

    def shape(self) -> list[int] | None:
        """What to reshape it to for the kernel; None: it has such a shape."""
        shape = self.node.meta["val"].shape if self.copied is None else self.copied
        if self.for_all:
            return None if len(shape) == 1 else [self.width]
        return None if len(shape) > 1 and _same(shape[-1], self.width) else [-1, self.width]


@dataclass
class Region:
    """A region under construction: its text, and each node's tile."""

    columns: int
    rows: int | torch.SymInt
    #: Types of the tiles that arrive, as MLIR writes them.
    arrives: list[str]
    tiles: dict[Node, Any] = field(default_factory=dict)
    arguments: dict[Argument, Tile] = field(default_factory=dict)
    #: Types and sizes of arrays behind the arguments that the kernel does not read: chips bring them into L2.
    prefetched: list[tuple[torch.dtype, int]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    numbers: int = 0
    #: Of the result of the node that is translated, and how many of its elements make a row.
    shape: Sequence[Any] = ()
    width: int = 1
    #: Tiles that are cut, and the bytes of memory that they and those that are joined pass through.
    cut: dict[Tile, None] = field(default_factory=dict)
    cut_bytes: int = 0
    #: Nodes whose values are rounded to the node's type before the region reads them: it stores them.
    rounded: frozenset[Node] = frozenset()
    #: Where its tensors are; None: where what arrives is.
    device: torch.device | None = None

    # --- text ---

    def tensor(self, width: int, kind: str = "f32") -> str:
        return f"tensor<{width}x{kind}>"

    def of(self, tile: Tile) -> str:
        return self.tensor(tile.width, tile.kind)

    def emit(self, text: str, width: int, kind: str = "f32") -> Tile:
        """A line that makes a tile: `text` is the right-hand side."""
        name = f"%v{self.numbers}"
        self.numbers += 1
        self.lines.append(f"{name} = {text}")
        return Tile(name, width, kind)

    def constant(self, value: float, width: int) -> Tile:
        bits = {math.inf: "0x7F800000", -math.inf: "0xFF800000"}
        text = "0x7FC00000" if math.isnan(value) else bits.get(value, f"{value:.17e}")
        return self.emit(f"arith.constant dense<{text}> : {self.tensor(width)}", width)

    def integer(self, value: int, width: int, kind: str) -> Tile:
        """`value` as an integer of type `kind`. One that does not fit wraps around, as in torch."""
        half = 1 << (int(kind[1:]) - 1)
        wrapped = (value + half) % (2 * half) - half
        return self.emit(f"arith.constant dense<{wrapped}> : {self.tensor(width, kind)}", width, kind)

    def cast(self, op: str, tile: Tile, kind: str) -> Tile:
        return self.emit(f"{op} {tile.name} : {self.of(tile)} to {self.tensor(tile.width, kind)}", tile.width, kind)

    def widen(self, tile: Tile, kind: str) -> Tile:
        """A tile that holds elements as they are stored in an array of that type, to be calculated with."""
        if kind == "f32":
            return tile
        return self.cast("arith.extf", Tile(tile.name, tile.width, kind), "f32")

    def narrow(self, tile: Tile, kind: str) -> Tile:
        """A tile of elements as they are stored in an array of that type."""
        if kind == tile.kind:
            return tile
        if tile.kind == "i1":
            return self.cast("arith.extui", tile, kind)
        if tile.kind != "f32":
            raise Unsupported(f"an integer of {tile.kind} is not stored as {kind}")
        return self.cast("arith.truncf", tile, kind)

    def numbers_of(self, tile: Tile) -> Tile:
        """The tile in f32."""
        if tile.kind == "f32":
            return tile
        return self.cast("arith.uitofp" if tile.kind == "i1" else "arith.sitofp", tile, "f32")

    def integers_of(self, tile: Tile, kind: str) -> Tile:
        """The tile as integers of type `kind`: of floats the whole part, of wider integers the last bits."""
        if tile.kind == kind:
            return tile
        if tile.kind in ("f32", "i1"):
            return self.cast("arith.fptosi" if tile.kind == "f32" else "arith.extui", tile, kind)
        is_wider = int(kind[1:]) > int(tile.kind[1:])
        return self.cast("arith.extsi" if is_wider else "arith.trunci", tile, kind)

    def mask_of(self, tile: Tile) -> Tile:
        """Returns a mask of the elements that are not 0."""
        if tile.kind == "i1":
            return tile
        return self.compare("une", tile, self.constant(0.0, tile.width))

    def across(self, tile: Tile, width: int) -> Tile:
        """`tile` in that width: an element goes with the whole row."""
        if tile.width == width:
            return tile
        if tile.width != 1:
            raise _Misfit(f"rows of {tile.width} and of {width} elements do not go together")
        wide = self.tensor(width, tile.kind)
        return self.emit(f"comms.broadcast_row {tile.name} : {self.of(tile)} -> {wide}", width, tile.kind)

    def unary(self, op: str, a: Tile) -> Tile:
        a = self.numbers_of(a)
        return self.emit(f"{op} {a.name} : {self.tensor(a.width)}", a.width)

    def _aligned(self, *tiles: Tile) -> list[Tile]:
        width = max(tile.width for tile in tiles)
        return [self.across(tile, width) for tile in tiles]

    def binary(self, op: str, a: Tile, b: Tile) -> Tile:
        left, right = self._aligned(self.numbers_of(a), self.numbers_of(b))
        return self.emit(f"{op} {left.name}, {right.name} : {self.of(left)}", left.width)

    def logical(self, op: str, a: Tile, b: Tile) -> Tile:
        left, right = self._aligned(self.mask_of(a), self.mask_of(b))
        return self.emit(f"{op} {left.name}, {right.name} : {self.of(left)}", left.width, "i1")

    def negation(self, a: Tile) -> Tile:
        true = self.emit(f"arith.constant dense<true> : {self.tensor(a.width, 'i1')}", a.width, "i1")
        return self.logical("arith.xori", a, true)

    def compare(self, how: str, a: Tile, b: Tile) -> Tile:
        """Compares floats by `how`; two integers as such, which not all are floats."""
        kinds = [tile.kind for tile in (a, b)]
        if "f32" in kinds or "i1" in kinds:
            op, given = f"arith.cmpf {how}", [self.numbers_of(tile) for tile in (a, b)]
        else:
            wider = max(kinds, key=lambda kind: int(kind[1:]))
            op, given = f"arith.cmpi {_INTEGER_ORDERS[how]}", [self.integers_of(tile, wider) for tile in (a, b)]
        left, right = self._aligned(*given)
        return self.emit(f"{op}, {left.name}, {right.name} : {self.of(left)}", left.width, "i1")

    def select(self, mask: Tile, a: Tile, b: Tile) -> Tile:
        chosen, left, right = self._aligned(self.mask_of(mask), self.numbers_of(a), self.numbers_of(b))
        names = f"{chosen.name}, {left.name}, {right.name}"
        return self.emit(f"arith.select {names} : {self.of(chosen)}, {self.of(left)}", left.width)

    def multiply_add(self, a: Tile, b: Tile, c: Tile) -> Tile:
        """a * b + c, rounded once."""
        left, right, more = self._aligned(*map(self.numbers_of, (a, b, c)))
        return self.emit(f"math.fma {left.name}, {right.name}, {more.name} : {self.of(left)}", left.width)

    def reduce(self, kind: str, a: Tile) -> Tile:
        if a.width == 1:
            return a
        return self.emit(f"comms.row_reduce {kind} {a.name} : {self.tensor(a.width)} -> {self.tensor(1)}", 1)

    def _take_memory(self, width: int) -> None:
        """For a row that others are parts of: in f32."""
        self.cut_bytes += 4 * width
        if self.cut_bytes > _MOST_CUT_BYTES and self.device is not None and self.device.type == "cuda":
            raise Unsupported(
                f"parts of rows pass through {self.cut_bytes} bytes of shared memory, more than {_MOST_CUT_BYTES}"
            )

    def part(self, tile: Tile, begin: int, width: int) -> Tile:
        """Elements [begin, begin + width) of each row."""
        if (begin, width) == (0, tile.width):
            return tile
        if tile.kind == "i1":
            return self.mask_of(self.part(self.numbers_of(tile), begin, width))
        if tile not in self.cut:
            self.cut[tile] = None
            self._take_memory(tile.width)
        types = f"{self.of(tile)} to {self.tensor(width, tile.kind)}"
        return self.emit(f"tensor.extract_slice {tile.name}[{begin}] [{width}] [1] : {types}", width, tile.kind)

    def joined(self, tiles: Sequence[Tile]) -> Tile:
        """Rows of several tiles, one behind the other."""
        if len({tile.kind for tile in tiles}) > 1 or tiles[0].kind == "i1":
            whole = self.joined([self.numbers_of(tile) for tile in tiles])
            return self.mask_of(whole) if all(tile.kind == "i1" for tile in tiles) else whole
        width = sum(tile.width for tile in tiles)
        self._take_memory(width)
        names, types = ", ".join(tile.name for tile in tiles), ", ".join(map(self.of, tiles))
        made = self.tensor(width, tiles[0].kind)
        return self.emit(f"tensor.concat dim(0) {names} : ({types}) -> {made}", width, tiles[0].kind)

    # --- nodes ---

    def width_of(self, shape: Sequence[Any]) -> int:
        """How many elements a row a tile of a tensor has: all of them, one, or those of its last dimensions."""
        count = prod(shape)
        if _same(count, self.rows * self.columns):
            return self.columns
        if _same(count, self.rows):
            return 1
        for dims in range(1, len(shape) + 1):
            width = prod(shape[-dims:])
            if isinstance(width, int) and width > 1 and _same(prod(shape[:-dims]), self.rows):
                return width
        if _same(count, 0):
            raise _Misfit(f"a tensor of shape {list(shape)} has no elements")
        raise _Misfit(f"a tensor of shape {list(shape)} has other rows than the collective's result")

    def begin(self, node: Node, tile: str, kind: str) -> None:
        """Begins the region: `node` is the received data."""
        self.device = node.meta["val"].device
        is_integer = kind.startswith("i")
        made = Tile(tile, self.columns, kind) if is_integer else self.widen(Tile(tile, self.columns), kind)
        self.tiles[node] = self._as_stored(node, made)

    def _as_stored(self, node: Node, made: Any) -> Any:
        """What the node makes, rounded if the region stores it: other kernels, such as those of the backward pass, read
        the same value."""
        if node not in self.rounded:
            return made
        kind = element_type(node.meta["val"].dtype)
        return self.widen(self.narrow(made, kind), kind)

    def begin_node(self, shape: Sequence[Any]) -> None:
        """A result of that shape is translated next."""
        self.shape, self.width = shape, self.width_of(shape)

    def _row_dims(self) -> int:
        """How many last dimensions of the node that is translated make up a row; 0: it has one element a row."""
        if self.width == 1 and self.columns != 1:
            return 0
        return self.row_dims(self.shape, self.width)

    def row_dims(self, shape: Sequence[Any], width: int) -> int:
        """How many last dimensions of a tensor make up a row of `width` elements; 0: none do."""
        if not _same(prod(shape), self.rows * width):
            return 0
        counts = range(1, len(shape) + 1)
        return next((count for count in counts if _same(prod(shape[-count:]), width)), 0)

    def _is_row(self, shape: Sequence[Any], width: int) -> bool:
        """Whether the last dimensions of a tensor that the node reads are a whole row, or (1) one element for it."""
        dims = self._row_dims()
        want = [1] * dims if width == 1 else list(self.shape[-dims:])
        have = [1] * (dims - len(shape)) + list(shape[max(len(shape) - dims, 0) :])
        return dims > 0 and all(map(_same, have, want))

    def _is_repeated(self, shape: Sequence[Any]) -> bool:
        """Whether torch repeats a tensor of that shape along dimensions of the node's."""
        last = self.shape[max(len(self.shape) - len(shape), 0) :]
        return len(shape) == len(last) and all(_same(a, b) or _same(a, 1) for a, b in zip(shape, last, strict=True))

    def _argument_of(self, node: Node, value: torch.Tensor) -> Argument:
        """How the node that is translated, whose shape is `shape`, reads a tensor from outside."""
        count = value.numel()
        if _same(count, 1):
            return Argument(node, 1, True)
        if _same(count, prod(self.shape)):
            return Argument(node, self.width, False)
        if self._is_row(value.shape, self.width) and _same(count, self.width):
            return Argument(node, self.width, True)
        if self._is_row(value.shape, 1) and _same(count, self.rows):
            return Argument(node, 1, False)
        for width in (self.width, 1):
            if self._is_row(value.shape, width):
                lead = self.shape[: len(self.shape) - self._row_dims()]
                kept = self.shape[len(lead) :] if width > 1 else [1] * self._row_dims()
                copied = (*lead, *kept)
                return Argument(node, width, False, copied, str(copied))
        if self._is_repeated(value.shape):
            copied = tuple(self.shape)
            return Argument(node, self.width, False, copied, str(copied))
        raise Unsupported(f"{described(node)} has shape {list(value.shape)}, other rows than the collective's result")

    def argument(self, node: Node) -> Tile:
        """A tensor from outside: read by the region."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"{described(node)} is not a tensor")
        is_number = value.dtype is torch.float64 and value.dim() == 0
        if value.dtype not in (*_FLOATS, *_SMALL_FLOATS, *_INTEGERS, torch.bool) and not is_number:
            raise Unsupported(f"{described(node)} is of {value.dtype}")
        if value.device != self.device:
            raise Unsupported(f"{described(node)} is on {value.device}, the collective on {self.device}")
        given = self._argument_of(node, value)
        if given not in self.arguments:
            self.arguments[given] = self._read(Tile(f"%b{len(self.arguments)}", given.width), given.dtype)
        return self.arguments[given]

    def _read(self, tile: Tile, dtype: torch.dtype) -> Tile:
        kind = element_type(dtype)
        if dtype is torch.bool:
            zero = self.emit(f"arith.constant dense<0> : {self.tensor(tile.width, kind)}", tile.width, kind)
            names = f"{tile.name}, {zero.name}"
            return self.emit(f"arith.cmpi ne, {names} : {self.of(zero)}", tile.width, "i1")
        return Tile(tile.name, tile.width, kind) if dtype in _INTEGERS else self.widen(tile, kind)

    def operand(self, value: Any, width: int = 1, kind: str = "f32") -> Tile:
        """Returns the tile of an operand: a node's tile, or a constant of that width. A whole number is an integer if
        `kind`, the other operand's, is one.
        """
        if isinstance(value, Node):
            tile = self.tiles.get(value)
            if tile is None:
                return self._constant_of(value) or self.argument(value)
            if not isinstance(tile, Tile):
                raise Unsupported(f"{described(value)} is several values")
            return tile
        if isinstance(value, int) and kind not in ("f32", "i1"):
            return self.integer(int(value), width, kind)
        if isinstance(value, (int, float)):
            return self.constant(float(value), width)
        raise Unsupported(f"the operand {value} is neither a tensor nor a number")

    def _constant_of(self, node: Node) -> Tile | None:
        """The tile of a tensor of which all elements are one number that is known."""
        if node.target not in _CONSTANTS:
            return None
        value = node.args[1] if node.target is aten.full.default else node.args[0]
        if not isinstance(value, (int, float)):
            return None
        if (dtype := node.meta["val"].dtype) in _INTEGERS:
            return self.integer(int(value), 1, element_type(dtype))
        with unset_fake_temporarily():  # type: ignore[no-untyped-call, unused-ignore]
            return self.constant(float(torch.tensor(value, dtype=node.meta["val"].dtype)), 1)

    def add(self, node: Node) -> None:
        """Makes the node part of the region; raises Unsupported, and changes nothing, where it cannot be."""
        cuts = (dict(self.cut), self.cut_bytes)
        state = (len(self.lines), self.numbers, dict(self.arguments), dict(self.tiles))
        try:
            self.tiles[node] = self._as_stored(node, self._translate(node))
        except Unsupported:
            lines, self.numbers, self.arguments, self.tiles = state
            self.cut, self.cut_bytes = cuts
            del self.lines[lines:]
            raise

    def _translate(self, node: Node) -> Any:
        if node.target is operator.getitem:
            source, number = node.args
            parts = self.tiles.get(source) if isinstance(source, Node) else None
            if not isinstance(parts, tuple) or not isinstance(number, int):
                raise Unsupported(f"{described(node)} takes a part of something else")
            return parts[number]
        rule = _RULES.get(node.target)
        if rule is None:
            raise Unsupported(f"{described(node)} is not among the operations that regions hold")
        value: Any = node.meta.get("val")
        results = value if isinstance(value, (tuple, list)) else (value,)
        for one in results:
            _check_result(node, one)
        try:
            widths = [self.width_of(one.shape) for one in results]
            self.begin_node(results[0].shape)
            made = rule(self, node)
        except _Misfit as why:
            raise Unsupported(f"{described(node)}: {why}") from None
        if node.target not in _REDUCTIONS and node.target not in _CUTS:
            self._check_elements(node)
        if not isinstance(made, tuple):
            return self._checked(node, made, widths[0], value.dtype)
        given = zip(made, widths, results, strict=True)
        return tuple(self._checked(node, tile, width, one.dtype) for tile, width, one in given)

    def _checked(self, node: Node, tile: Tile, width: int, dtype: torch.dtype) -> Tile:
        """A result of the node as wide as it has to be; of constants, or one element for all, it may be narrower."""
        if tile.width not in (1, width):
            raise Unsupported(f"{described(node)} cuts rows, or joins them")
        kind = "i1" if dtype is torch.bool else element_type(dtype) if dtype in _INTEGERS else "f32"
        if tile.kind != kind:
            raise Unsupported(f"{described(node)} calculates with {dtype}")
        return self.across(tile, width)

    def _check_elements(self, node: Node) -> None:
        """Raises where torch combines other elements for a row than the tiles of the region's own values hold."""
        count = prod(self.shape)
        for source in node.all_input_nodes:
            if source not in self.tiles:
                continue
            value = source.meta["val"]
            if not (
                _same(value.numel(), 1)
                or self._is_row(value.shape, 1)
                # As many elements as the result has: each goes with its own.
                or _same(value.numel(), count)
            ):
                raise Unsupported(
                    f"{described(node)} has the elements of {described(source)} along other dimensions than rows"
                )

    def text(self, yields: list[tuple[Node, str]], first: Argument | None = None) -> str:
        """The region's text; `yields` are nodes, and the types that they are stored in. `first` comes before the other
        arguments."""
        saved = (len(self.lines), self.numbers)
        stored = [(self.narrow(self.tiles[node], kind), kind) for node, kind in yields]
        heads = [f"%w{i}: {self.tensor(self.columns, kind)}" for i, kind in enumerate(self.arrives)]
        for i, given in sorted(enumerate(self.arguments), key=lambda numbered: numbered[1] is not first):
            heads.append(f"%b{i}: {self.tensor(given.width, element_type(given.dtype))}")
        heads += [f"%n{i}: {self.tensor(n, element_type(dtype))}" for i, (dtype, n) in enumerate(self.prefetched)]
        names = ", ".join(tile.name for tile, _ in stored)
        types = ", ".join(self.tensor(tile.width, kind) for tile, kind in stored)
        body = "".join(f"    {line}\n" for line in self.lines)
        del self.lines[saved[0] :]
        self.numbers = saved[1]
        return f"({', '.join(heads)}) {{\n{body}    comms.yield {names} : {types}\n  }}"


def _check_result(node: Node, value: Any) -> None:
    """Raises where regions have no tiles of the type that a node makes."""
    dtype = getattr(value, "dtype", type(value).__name__)
    if isinstance(value, torch.Tensor):
        if dtype in _FLOATS or dtype is torch.bool:
            return
        if dtype in (*_SMALL_FLOATS, *_INTEGERS) and (node.target in (*CASTS, *_PLACES) or moves_nothing(node)):
            return
    raise Unsupported(f"{described(node)} is of {dtype}")


def same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are known to be the same."""
    return len(a) == len(b) and all(map(_same, a, b))


def _same(a: Any, b: Any) -> bool:
    return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(a == b))


# ---------------------------------------------------------------------------------------------------------------------
# One rule an operation
# ---------------------------------------------------------------------------------------------------------------------

_Rule = Callable[[Region, Node], Any]
_RULES: dict[Any, _Rule] = {}
#: The ones that do not work element by element: they reduce rows, or take parts of them and join them.
_REDUCTIONS: set[Any] = set()
_CUTS: set[Any] = set()
#: Of those, the ones that make longer rows.
_JOINS = (
    aten.cat.default,
    aten.constant_pad_nd.default,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
)
#: What puts the elements of rows into an order, all of them or the first.
_ORDERED = (aten.topk.default, aten.sort.default, aten.sort.stable)
#: And the ones that compute what they cut out.
_COMPUTED = (aten.glu.default, aten.gather.default, aten.cumsum.default, *_ORDERED)
#: What makes places in rows.
_PLACES = (aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim, *_ORDERED)
CASTS = (torch.ops.prims.convert_element_type.default, aten._to_copy.default)
_WAIT = torch.ops._c10d_functional.wait_tensor.default
_VIEWS = {
    aten.view.default,
    aten.reshape.default,
    aten._unsafe_view.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.alias.default,
    aten.detach.default,
    _WAIT,
}


def is_arithmetic(node: Node) -> bool:
    """Whether the node only computes a value, with an operation that regions support."""
    return (node.target in _RULES or node.target is operator.getitem) and node.target is not _WAIT


def moves_nothing(node: Node) -> bool:
    """Whether the node only changes the view of its operand; outside of a region, that costs nothing."""
    if node.target is aten.expand.default:  # To the shape that it has, as before a bmm.
        return _same(node.meta["val"].numel(), node.all_input_nodes[0].meta["val"].numel())
    return node.target in _VIEWS


def is_elementwise(node: Node) -> bool:
    """Whether each element of the result depends only on the elements at the same position of aligned tensors."""
    known = node.target in _RULES and node.target not in _REDUCTIONS and node.target not in _CUTS
    return known and not moves_nothing(node) and node.target is not aten.expand.default


def is_part(node: Node) -> bool:
    """Whether the node is one or several parts of another tensor: views outside a region, which cost nothing."""
    source = node.args[0] if node.target is operator.getitem else node
    return isinstance(source, Node) and source.target in _CUTS and source.target not in (*_JOINS, *_COMPUTED)


def parts_alone(graph: Graph, node: Node) -> list[Node]:
    """Replaces a split by one slice for each part, and returns the slices. Does nothing if the sizes are not known."""
    if node.target not in (aten.split.Tensor, aten.split_with_sizes.default):
        return []
    dim = cut_dim(node)
    sizes = [one.shape[dim] for one in node.meta["val"]]
    if not all(isinstance(size, int) for size in sizes):
        return []
    slices = []
    for part in list(node.users):
        number: Any = part.args[1]
        begin = sum(sizes[:number])
        with graph.inserting_before(part):
            made = graph.call_function(aten.slice.Tensor, (node.args[0], dim, begin, begin + sizes[number]))
        made.meta = {**part.meta}
        part.replace_all_uses_with(made)
        graph.erase_node(part)
        slices.append(made)
    graph.erase_node(node)
    return slices


def strided_alone(graph: Graph, node: Node) -> None:
    """Replaces every n-th element of the last dimension, which a region has no part for, by one of each n."""
    if node.target is not aten.slice.Tensor or not cuts_last_dim(node):
        return
    source: Any = node.args[0]
    *shape, size = source.meta["val"].shape
    begin, end, step = given = slice_of(node)
    if not isinstance(size, int) or not all(one is None or isinstance(one, int) for one in given):
        return
    taken = range(size)[slice(begin, end, step)]
    first = taken.start
    if taken.step < 2 or size % taken.step or first >= taken.step or taken != range(first, size, taken.step):
        return
    step = taken.step
    with graph.inserting_before(node):
        groups = graph.call_function(aten.reshape.default, (source, [*shape, size // step, step]))
        groups.meta["val"] = source.meta["val"].unflatten(-1, (size // step, step))
        one = graph.call_function(aten.select.int, (groups, len(shape) + 1, first))
    one.meta = {**node.meta}
    node.replace_all_uses_with(one)
    graph.erase_node(node)


def slice_of(node: Node) -> list[Any]:
    """Begin, end and step of a slice; None: the program has none."""
    given = [*node.args[2:], None, None, None][:3]
    names = ("start", "end", "step")
    return [node.kwargs.get(name) if one is None else one for one, name in zip(given, names, strict=True)]


def cuts_last_dim(node: Node) -> bool:
    """Whether the node cuts the last dimension, or joins tensors along it."""
    if node.target not in _CUTS:
        return False
    rank = int(node.all_input_nodes[0].meta["val"].dim())
    return rank > 0 and cut_dim(node) % rank == rank - 1


def cut_sizes(node: Node) -> int | None:
    """Returns the size of the last dimension if the node cuts it, or of the first of those that it joins; None if it
    does neither, or the size is not known."""
    if not cuts_last_dim(node) or (node.target in _JOINS and node.target is not aten.cat.default):
        return None
    size = node.all_input_nodes[0].meta["val"].shape[-1]
    return size if isinstance(size, int) else None


def is_row_statistic(node: Node) -> bool:
    """Whether the node reduces only the last dimension, and keeps it."""
    if node.target not in _REDUCTIONS or not isinstance(node.meta.get("val"), torch.Tensor):
        return False
    source = node.all_input_nodes[0].meta["val"]
    kept = node.meta["val"].dim() == source.dim()
    return kept and reduced_dims(node, source.dim()) == [source.dim() - 1]


def row_sizes(node: Node) -> int | None:
    """Returns how many elements a reduction of the last dimensions combines, or None if that is not known."""
    if node.target not in _REDUCTIONS:
        return None
    value = node.all_input_nodes[0].meta["val"]
    dims = reduced_dims(node, value.dim())
    if not dims or dims != list(range(value.dim() - len(dims), value.dim())):
        return None
    sizes = value.shape[dims[0] :]
    return prod(sizes) if all(isinstance(size, int) for size in sizes) else None


def reduced_dims(node: Node, rank: int) -> list[int]:
    """The dimensions that a reduction of a tensor of `rank` dimensions reduces, in order."""
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if dims is None or dims == []:
        return list(range(rank))
    given: Any = dims if isinstance(dims, (list, tuple)) else [dims]
    return sorted(int(d) % rank for d in given) if rank else []


def _rule(*targets: Any) -> Callable[[_Rule], _Rule]:
    def enter(rule: _Rule) -> _Rule:
        for target in targets:
            _RULES[target] = rule
        return rule

    return enter


def _reduction(*targets: Any) -> Callable[[_Rule], _Rule]:
    _REDUCTIONS.update(targets)
    return _rule(*targets)


def _cut(*targets: Any) -> Callable[[_Rule], _Rule]:
    _CUTS.update(targets)
    return _rule(*targets)


def _unary(op: str) -> _Rule:
    return lambda region, node: region.unary(op, region.operand(node.args[0]))


#: What arithmetic is on masks.
_ON_MASKS = {
    "arith.mulf": "arith.andi",
    "arith.addf": "arith.ori",
    "arith.maximumf": "arith.ori",
    "arith.minimumf": "arith.andi",
}


def _binary(op: str) -> _Rule:
    def rule(region: Region, node: Node) -> Tile:
        if node.meta["val"].dtype is torch.bool and op in _ON_MASKS:
            return region.logical(_ON_MASKS[op], *_pair(region, node.args[0], node.args[1]))
        left, right = _pair(region, node.args[0], node.args[1])
        if (alpha := node.kwargs.get("alpha", 1)) != 1:
            right = region.binary("arith.mulf", right, region.constant(float(alpha), right.width))  # type: ignore[arg-type]
        return region.binary(op, left, right)

    return rule


def _pair(region: Region, a: Any, b: Any) -> tuple[Tile, Tile]:
    """Two operands, of which one may be a number: it is as wide as the other."""
    if isinstance(a, Node):
        left = region.operand(a)
        return left, region.operand(b, left.width)
    right = region.operand(b)
    return region.operand(a, right.width), right


def _compared(region: Region, a: Node, b: Any) -> tuple[Tile, Tile]:
    """The operands of a comparison. A whole number is an integer of the type of those that it is compared with."""
    left = region.operand(a)
    return left, region.operand(b, left.width, left.kind)


_UNARY = {
    "neg": "arith.negf",
    "abs": "math.absf",
    "round": "math.roundeven",
    **{
        name: f"math.{name}"
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2"),
            *("expm1", "floor", "log", "log1p", "log2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
        )
    },
}
for _name, _op in _UNARY.items():
    _RULES[getattr(aten, _name).default] = _unary(_op)
for _target, _op in {
    aten.add.Tensor: "arith.addf",
    aten.add.Scalar: "arith.addf",
    aten.sub.Tensor: "arith.subf",
    aten.sub.Scalar: "arith.subf",
    aten.mul.Tensor: "arith.mulf",
    aten.mul.Scalar: "arith.mulf",
    aten.div.Tensor: "arith.divf",
    aten.div.Scalar: "arith.divf",
    aten.maximum.default: "arith.maximumf",
    aten.minimum.default: "arith.minimumf",
    aten.atan2.default: "math.atan2",
    aten.copysign.Tensor: "math.copysign",
    aten.pow.Tensor_Tensor: "math.powf",
    aten.pow.Scalar: "math.powf",
}.items():
    _RULES[_target] = _binary(_op)


@_rule(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _rounded_division(region: Region, node: Node) -> Tile:
    left, right = _pair(region, node.args[0], node.args[1])
    divided = region.binary("arith.divf", left, right)
    mode = node.kwargs.get("rounding_mode")
    return region.unary(f"math.{mode}", divided) if mode else divided


def _comparison(how: str) -> _Rule:
    return lambda region, node: region.compare(how, *_compared(region, node.args[0], node.args[1]))  # type: ignore[arg-type]


for _name, _how in {"gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}.items():
    _packet: Any = getattr(aten, _name)
    _RULES[_packet.Tensor] = _RULES[_packet.Scalar] = _comparison(_how)


def _masks(op: str) -> _Rule:
    def rule(region: Region, node: Node) -> Tile:
        if any(getattr(one.meta.get("val"), "dtype", None) is not torch.bool for one in node.all_input_nodes):
            raise Unsupported(f"{described(node)} is of bits: masks alone are translated")
        return region.logical(op, *_pair(region, node.args[0], node.args[1]))

    return rule


for _name, _op in {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}.items():
    _RULES[getattr(aten, f"logical_{_name}").default] = _masks(_op)
    _RULES[getattr(aten, f"bitwise_{_name}").Tensor] = _masks(_op)


@_rule(aten.logical_not.default)
def _logical_not(region: Region, node: Node) -> Tile:
    return region.negation(region.operand(node.args[0]))


@_rule(aten.bitwise_not.default)
def _bitwise_not(region: Region, node: Node) -> Tile:
    if node.meta["val"].dtype is not torch.bool:
        raise Unsupported(f"{described(node)} is of bits: masks alone are translated")
    return region.negation(region.operand(node.args[0]))


@_rule(aten.isnan.default)
def _isnan(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.compare("uno", tile, tile)


@_rule(aten.isinf.default)
def _isinf(region: Region, node: Node) -> Tile:
    tile = region.unary("math.absf", region.operand(node.args[0]))
    return region.compare("oeq", tile, region.constant(math.inf, tile.width))


@_rule(aten.where.self)
def _where(region: Region, node: Node) -> Tile:
    mask, *values = node.args
    tiles = [region.operand(one) for one in (mask, *values)]
    return region.select(*tiles)


@_rule(aten.sign.default)
def _sign(region: Region, node: Node) -> Tile:
    tile = region.numbers_of(region.operand(node.args[0]))
    zero = region.constant(0.0, tile.width)
    up, down = (region.numbers_of(region.compare(how, tile, zero)) for how in ("ogt", "olt"))
    return region.binary("arith.subf", up, down)


@_rule(aten.reciprocal.default)
def _reciprocal(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.binary("arith.divf", region.constant(1.0, tile.width), tile)


@_rule(aten.sigmoid.default)
def _sigmoid(region: Region, node: Node) -> Tile:
    return _sigmoid_of(region, region.operand(node.args[0]))


def _sigmoid_of(region: Region, tile: Tile) -> Tile:
    one = region.constant(1.0, tile.width)
    power = region.unary("math.exp", region.unary("arith.negf", tile))
    return region.binary("arith.divf", one, region.binary("arith.addf", one, power))


@_rule(aten.relu.default)
def _relu(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    return region.binary("arith.maximumf", tile, region.constant(0.0, tile.width))


@_rule(
    *(aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_min.Tensor),
    *(aten.clamp_max.default, aten.clamp_max.Tensor),
)
def _clamp(region: Region, node: Node) -> Tile:
    tile = region.operand(node.args[0])
    limits = list(node.args[1:]) + [None, None]
    if node.target in (aten.clamp_max.default, aten.clamp_max.Tensor):
        limits = [None, limits[0]]
    low, high = node.kwargs.get("min", limits[0]), node.kwargs.get("max", limits[1])
    if low is not None:
        tile = region.binary("arith.maximumf", tile, region.operand(low, tile.width))
    if high is not None:
        tile = region.binary("arith.minimumf", tile, region.operand(high, tile.width))
    return tile


@_rule(aten.pow.Tensor_Scalar)
def _power(region: Region, node: Node) -> Tile:
    tile, exponent = region.numbers_of(region.operand(node.args[0])), node.args[1]
    if not isinstance(exponent, (int, float)):
        raise Unsupported(f"{described(node)} raises to {exponent}, which is not known when it is compiled")
    if exponent in (0.5, -0.5):
        return region.unary("math.sqrt" if exponent == 0.5 else "math.rsqrt", tile)
    if exponent == int(exponent) and abs(exponent) <= _MOST_MULTIPLIED:
        made = _multiplied(region, tile, abs(int(exponent)))
        return made if exponent >= 0 else region.binary("arith.divf", region.constant(1.0, tile.width), made)
    return region.binary("math.powf", tile, region.constant(float(exponent), tile.width))


def _multiplied(region: Region, tile: Tile, exponent: int) -> Tile:
    if exponent < 2:
        return tile if exponent else region.constant(1.0, tile.width)
    half = _multiplied(region, tile, exponent // 2)
    square = region.binary("arith.mulf", half, half)
    return region.binary("arith.mulf", square, tile) if exponent % 2 else square


@_rule(*CASTS)
def _convert(region: Region, node: Node) -> Tile:
    tile, dtype = region.operand(node.args[0]), node.meta["val"].dtype
    kind = element_type(dtype)
    if dtype is torch.bool:
        return region.mask_of(tile)
    if dtype in _INTEGERS:
        return region.integers_of(tile, kind)
    if dtype not in (*_FLOATS, *_SMALL_FLOATS):
        raise Unsupported(f"{described(node)} casts to {dtype}")
    tile = region.numbers_of(tile)
    if kind == "f8E4M3FN" and not _torch_saturates():
        tile = _overflow(region, tile)
    return region.widen(region.narrow(tile, kind), kind)


@functools.cache
def _torch_saturates() -> bool:
    """Whether a cast to e4m3fn makes the largest number of what is larger, as `arith.truncf` does: that of torch 2.15;
    that of 2.11 makes NaN."""
    with unset_fake_temporarily():  # type: ignore[no-untyped-call, unused-ignore]
        return not bool(torch.tensor(1e9).to(torch.float8_e4m3fn).isnan())


def _overflow(region: Region, tile: Tile) -> Tile:
    """NaN in place of what rounds to more than e4m3fn holds, which `arith.truncf` saturates."""
    size, most = region.unary("math.absf", tile), region.constant(_MOST_E4M3FN, tile.width)
    return region.select(region.compare("ogt", size, most), region.constant(math.nan, tile.width), tile)


@_rule(*_VIEWS, aten.clone.default)
def _same_rows(region: Region, node: Node) -> Tile:
    return region.operand(node.args[0])


@_rule(aten.expand.default)
def _expand(region: Region, node: Node) -> Tile:
    return region.across(region.operand(node.args[0]), region.width_of(node.meta["val"].shape))


def _check_reduced(node: Node, tile: Tile) -> None:
    """Raises where the node does not reduce whole rows, of which the tile is one."""
    if tile.width == 1:
        raise Unsupported(f"{described(node)} reduces what has one element a row")
    size = row_sizes(node)
    if size is None:
        raise Unsupported(f"{described(node)} reduces other dimensions than the last")
    if size != tile.width:
        raise Unsupported(f"{described(node)} reduces {size} elements, of rows of {tile.width}")


def _reduced(region: Region, node: Node) -> Tile:
    """The operand of a reduction over whole rows."""
    source = node.args[0]
    assert isinstance(source, Node)
    tile = region.numbers_of(region.operand(source))
    _check_reduced(node, tile)
    if node.kwargs.get("dtype") not in (None, torch.float32):
        raise Unsupported(f"{described(node)} reduces in {node.kwargs['dtype']}")
    return tile


@_reduction(aten.sum.dim_IntList)
def _sum(region: Region, node: Node) -> Tile:
    return region.reduce("sum", _reduced(region, node))


@_reduction(aten.amax.default)
def _amax(region: Region, node: Node) -> Tile:
    return region.reduce("max", _reduced(region, node))


@_reduction(aten.amin.default)
def _amin(region: Region, node: Node) -> Tile:
    return region.reduce("min", _reduced(region, node))


def _place(region: Region, node: Node, how: str) -> tuple[Tile, Tile]:
    """The largest (smallest) element of each row, and the place of the first that is: NaN is both."""
    tile, dtype = _reduced(region, node), node.all_input_nodes[0].meta["val"].dtype
    if dtype not in _FLOATS:
        raise Unsupported(f"{described(node)} compares {dtype}")
    if tile.width > _MOST_PLACES:
        raise Unsupported(f"places in rows of {tile.width} elements: up to {_MOST_PLACES} are taken")
    found = region.reduce(how, tile)
    is_there = region.logical("arith.ori", region.compare("oeq", tile, found), region.compare("uno", tile, tile))
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    behind = region.constant(float(tile.width), tile.width)
    return found, region.integers_of(region.reduce("min", region.select(is_there, columns, behind)), "i64")


@_reduction(aten.argmax.default, aten.argmin.default)
def _place_of_one(region: Region, node: Node) -> Tile:
    how = "max" if node.target is aten.argmax.default else "min"
    return _place(region, node, how)[1]


@_reduction(aten.max.dim, aten.min.dim)
def _one_and_its_place(region: Region, node: Node) -> tuple[Tile, Tile]:
    return _place(region, node, "max" if node.target is aten.max.dim else "min")


@_reduction(aten.any.dim)
def _any(region: Region, node: Node) -> Tile:
    source = node.args[0]
    assert isinstance(source, Node)
    mask = region.mask_of(region.operand(source))
    _check_reduced(node, mask)
    return region.mask_of(region.reduce("max", region.numbers_of(mask)))


def _average(region: Region, tile: Tile, less: float = 0) -> Tile:
    total = region.reduce("sum", tile)
    return region.binary("arith.divf", total, region.constant(max(tile.width - less, 0), 1))


def _largest_and_total(region: Region, node: Node) -> tuple[Tile, Tile]:
    """Of a softmax: the largest element of each row, and the sum of the exponentials of what is left without it."""
    tile = _reduced(region, node)
    largest = region.reduce("max", tile)
    return largest, region.reduce("sum", region.unary("math.exp", region.binary("arith.subf", tile, largest)))


def _multiply_add(region: Region, node: Node) -> Tile:
    a, b, c = map(region.operand, node.args)
    return region.multiply_add(a, b, c)


# Inductor writes the forward pass of a softmax by the first, on GPUs alone, and the backward pass by the second. Older
# releases of torch lack them.
if _softmax := getattr(inductor_prims, "prepare_softmax_online", None):
    _reduction(_softmax)(_largest_and_total)
if _fma := getattr(inductor_prims, "fma", None):
    _rule(_fma)(_multiply_add)


@_reduction(aten.mean.dim)
def _mean(region: Region, node: Node) -> Tile:
    return _average(region, _reduced(region, node))


def _variance(region: Region, node: Node) -> tuple[Tile, Tile]:
    tile = _reduced(region, node)
    correction = node.kwargs.get("correction", 1)
    mean = _average(region, tile)
    centered = region.binary("arith.subf", tile, mean)
    squares = region.binary("arith.mulf", centered, centered)
    return _average(region, squares, 1.0 if correction is None else float(correction)), mean  # type: ignore[arg-type]


@_reduction(aten.var_mean.correction)
def _var_mean(region: Region, node: Node) -> tuple[Tile, Tile]:
    return _variance(region, node)


@_reduction(aten.var.correction)
def _var(region: Region, node: Node) -> Tile:
    return _variance(region, node)[0]


# --- parts of rows, and rows of parts ---


def cut_dim(node: Node) -> int:
    """The dimension that parts are taken along."""
    if node.target is aten.constant_pad_nd.default:
        return -1
    if node.target is aten.glu.default and len(node.args) < 2:
        return int(node.kwargs.get("dim", -1))  # type: ignore[arg-type]
    at = 2 if node.target in (aten.split.Tensor, aten.split_with_sizes.default, aten.topk.default) else 1
    dim: Any = node.args[at] if len(node.args) > at else node.kwargs.get("dim", -1 if node.target in _ORDERED else 0)
    return int(dim)


def _number(node: Node, value: Any) -> int:
    if not isinstance(value, int):
        raise Unsupported(f"{described(node)} takes a part whose place or size is not known when it is compiled")
    return value


def _stride_in_row(region: Region, node: Node, shape: Sequence[Any], width: int, dim: int) -> int:
    """How many elements of a row one step along the dimension is. Parts along it have to lie in one piece."""
    dims = region.row_dims(shape, width)
    inside = dim % max(len(shape), 1) - (len(shape) - dims)
    if dims == 0 or inside < 0:
        raise Unsupported(f"{described(node)} takes some rows, or joins rows of several tensors")
    last = [_number(node, size) for size in shape[len(shape) - dims :]]
    if prod(last[:inside]) != 1:
        raise Unsupported(f"{described(node)} takes parts of rows of {width} elements that do not lie in one piece")
    return prod(last[inside + 1 :])


def _parts(region: Region, node: Node, pieces: Sequence[tuple[int, int]]) -> tuple[Tile, ...]:
    """`pieces` of the operand along the dimension: where each begins, and its size."""
    source = node.args[0]
    assert isinstance(source, Node)
    if source not in region.tiles:
        raise Unsupported(f"{described(node)} is a view of a tensor from outside")
    tile, shape = region.operand(source), source.meta["val"].shape
    step = _stride_in_row(region, node, shape, tile.width, cut_dim(node))
    return tuple(region.part(tile, begin * step, size * step) for begin, size in pieces)


def _size_along(node: Node) -> int:
    shape = node.all_input_nodes[0].meta["val"].shape
    return _number(node, shape[cut_dim(node)])


@_cut(aten.slice.Tensor)
def _slice(region: Region, node: Node) -> Tile:
    size = _size_along(node)
    begin, end, step = slice_of(node)
    if step not in (None, 1):
        raise Unsupported(f"{described(node)} takes elements that do not lie side by side")
    first, last, _ = slice(*(None if one is None else _number(node, one) for one in (begin, end))).indices(size)
    return _parts(region, node, [(first, max(last - first, 0))])[0]


@_cut(aten.select.int)
def _select(region: Region, node: Node) -> Tile:
    return _parts(region, node, [(_number(node, node.args[2]) % _size_along(node), 1)])[0]


def _pieces(sizes: Sequence[int]) -> list[tuple[int, int]]:
    return [(sum(sizes[:number]), size) for number, size in enumerate(sizes)]


@_cut(aten.split_with_sizes.default)
def _split_with_sizes(region: Region, node: Node) -> tuple[Tile, ...]:
    sizes: Any = node.args[1]
    return _parts(region, node, _pieces([_number(node, size) for size in sizes]))


@_cut(aten.split.Tensor)
def _split(region: Region, node: Node) -> tuple[Tile, ...]:
    size, each = _size_along(node), _number(node, node.args[1])
    return _parts(region, node, [(begin, min(each, size - begin)) for begin in range(0, size, max(each, 1))])


@_cut(aten.unbind.int)
def _unbind(region: Region, node: Node) -> tuple[Tile, ...]:
    return _parts(region, node, [(begin, 1) for begin in range(_size_along(node))])


@_cut(aten.glu.default)
def _glu(region: Region, node: Node) -> Tile:
    """The first half of each row, by the sigmoid of the second."""
    half = _size_along(node) // 2
    value, gate = _parts(region, node, [(0, half), (half, half)])
    return region.binary("arith.mulf", value, _sigmoid_of(region, gate))


@_cut(aten.constant_pad_nd.default)
def _pad(region: Region, node: Node) -> Tile:
    """Constants on both sides of rows."""
    source, sizes = node.args[0], node.args[1]
    assert isinstance(source, Node) and isinstance(sizes, (list, tuple))
    value: Any = node.args[2] if len(node.args) > 2 else node.kwargs.get("value", 0)
    before, after = (_number(node, size) for size in sizes[:2])
    if any(sizes[2:]) or min(before, after) < 0:
        raise Unsupported(f"{described(node)} pads other dimensions than the last, or takes parts away")
    tile, shape = region.numbers_of(region.operand(source)), source.meta["val"].shape
    if source not in region.tiles or _stride_in_row(region, node, shape, tile.width, -1) != 1:
        raise Unsupported(f"{described(node)} is no row of what is computed here")
    sides = [region.constant(float(value), size) for size in (before, after) if size]
    return region.joined([*sides[: before > 0], tile, *sides[before > 0 :]])


@_cut(aten.cat.default)
def _cat(region: Region, node: Node) -> Tile:
    sources: Any = node.args[0]
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    whole, width = region.shape, region.width
    tiles = []
    for source in sources:
        shape = source.meta["val"].shape
        region.begin_node(shape)  # An argument is read as a tensor of that shape.
        tile = region.across(region.operand(source), region.width)
        _stride_in_row(region, node, shape, tile.width, dim)  # type: ignore[arg-type]
        tiles.append(tile)
    region.shape, region.width = whole, width
    _stride_in_row(region, node, whole, width, dim)  # type: ignore[arg-type]
    return region.joined(tiles)


def _check_places(region: Region, node: Node, whole: Sequence[Any], places: Sequence[Any], what: str) -> None:
    """Raises where the places are not some of the last dimension of `whole`, the same number in each row."""
    if not whole or node.args[1] % len(whole) != len(whole) - 1:  # type: ignore[operator]
        raise Unsupported(f"{described(node)} {what} along another dimension than rows")
    if not same_sizes(whole[:-1], places[:-1]) or not isinstance(places[-1], int) or places[-1] > _MOST_SCATTERED:
        raise Unsupported(
            f"{described(node)} {what} {list(places)} elements: up to {_MOST_SCATTERED} of each row are taken"
        )


@_cut(aten.gather.default)
def _gather(region: Region, node: Node) -> Tile:
    """Compares each place with all places of the row. The largest of what is there and of -inf is what is there, NaN
    and -0.0 among it."""
    source, _, index = node.args
    assert isinstance(source, Node) and isinstance(index, Node)
    if source not in region.tiles:
        raise Unsupported(f"{described(node)} is of elements of a tensor from outside")
    whole = source.meta["val"].shape
    _check_places(region, node, whole, index.meta["val"].shape, "gathers")
    tile = region.numbers_of(region.operand(source))
    if not _same(tile.width, whole[-1]):
        raise Unsupported(f"{described(node)} gathers elements of rows of {whole[-1]}, not of {tile.width}")
    places = region.across(region.numbers_of(region.operand(index)), region.width)
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    least, found = region.constant(-math.inf, tile.width), []
    for number in range(places.width):
        is_there = region.compare("oeq", columns, region.part(places, number, 1))
        found.append(region.reduce("max", region.select(is_there, tile, least)))
    return found[0] if len(found) == 1 else region.joined(found)


def _row_of(region: Region, node: Node, what: str) -> Tile:
    """The operand: floats of whole rows along the last dimension."""
    source = node.args[0]
    assert isinstance(source, Node)
    value = source.meta["val"]
    if source not in region.tiles:
        raise Unsupported(f"{described(node)} {what} elements of a tensor from outside")
    tile = region.operand(source)
    if not isinstance(tile, Tile) or value.dtype not in _FLOATS:
        raise Unsupported(f"{described(node)} {what} elements of {value.dtype}")
    if not cuts_last_dim(node):
        raise Unsupported(f"{described(node)} {what} elements of another dimension than rows")
    if not _same(tile.width, value.shape[-1]):
        raise Unsupported(f"{described(node)} {what} elements of rows of {value.shape[-1]}, not of {tile.width}")
    return tile


def _next_in_order(region: Region, tile: Tile, left: Tile | None, is_falling: bool) -> tuple[Tile, Tile]:
    """The largest (smallest) of the elements that are left, the first of equal ones, and its place as a float. NaN is
    larger than all numbers."""
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    behind, end = (region.constant(value, tile.width) for value in (tile.width, -math.inf if is_falling else math.inf))
    odd, keys = region.compare("uno", tile, tile), tile
    if not is_falling:  # A number of that size comes first.
        keys = region.select(odd, end, tile)
        columns = region.select(odd, region.binary("arith.addf", columns, behind), columns)
    given = keys if left is None else region.select(left, keys, end)
    found = region.reduce("max" if is_falling else "min", given)
    is_there = region.compare("oeq", keys, found)
    if is_falling:
        is_there = region.logical("arith.ori", is_there, odd)
    if left is not None:
        is_there = region.logical("arith.andi", is_there, left)
    place = region.reduce("min", region.select(is_there, columns, region.constant(2.0 * tile.width, tile.width)))
    if is_falling:
        return found, place
    is_odd = region.compare("oge", place, region.constant(tile.width, 1))
    place = region.select(is_odd, region.binary("arith.subf", place, region.constant(tile.width, 1)), place)
    return region.select(is_odd, region.constant(math.nan, 1), found), place


def _in_order(region: Region, node: Node, count: int, is_falling: bool) -> tuple[Tile, Tile]:
    """The first `count` elements of each row, and their places: one after the other is taken out."""
    tile = _row_of(region, node, "orders")
    if count > _MOST_SCATTERED:
        raise Unsupported(f"{described(node)} orders {count} elements: up to {_MOST_SCATTERED} of each row are taken")
    if tile.width > _MOST_PLACES:
        raise Unsupported(f"places in rows of {tile.width} elements: up to {_MOST_PLACES} are taken")
    columns = region.emit(f"comms.iota : {region.tensor(tile.width)}", tile.width)
    left, found, places = None, list[Tile](), list[Tile]()
    for _ in range(count):
        one, place = _next_in_order(region, tile, left, is_falling)
        found.append(one)
        places.append(place)
        others = region.compare("une", columns, place)
        left = others if left is None else region.logical("arith.andi", left, others)
    elements, at = (one[0] if count == 1 else region.joined(one) for one in (found, places))
    return elements, region.integers_of(at, "i64")


def _flag(node: Node, at: int, name: str, default: bool) -> bool:
    return bool(node.args[at] if len(node.args) > at else node.kwargs.get(name, default))


@_cut(aten.topk.default)
def _topk(region: Region, node: Node) -> tuple[Tile, Tile]:
    count = _number(node, node.args[1])
    if count < 1:
        raise Unsupported(f"{described(node)} takes no elements")
    return _in_order(region, node, count, _flag(node, 3, "largest", True))


@_cut(aten.sort.default, aten.sort.stable)
def _sort(region: Region, node: Node) -> tuple[Tile, Tile]:
    at = 2 if node.target is aten.sort.default else 3
    return _in_order(region, node, _size_along(node), _flag(node, at, "descending", False))


@_cut(aten.cumsum.default)
def _cumsum(region: Region, node: Node) -> Tile:
    """Adds each element to those 1, 2, 4, … places behind it."""
    tile, dtype = _row_of(region, node, "adds up"), node.kwargs.get("dtype")
    if dtype not in (None, torch.float32):
        raise Unsupported(f"{described(node)} adds up in {dtype}")
    step = 1
    while step < tile.width:
        before = region.part(tile, 0, tile.width - step)
        moved = region.joined([region.constant(0.0, step), before])
        tile, step = region.binary("arith.addf", tile, moved), 2 * step
    return tile


def _scatter_operands(region: Region, node: Node) -> tuple[Tile, Tile, Tile]:
    """What elements are scattered into, their places and the elements: rows of the last dimension."""
    whole, dim, index, source = node.args
    assert isinstance(whole, Node) and isinstance(dim, int) and isinstance(index, Node)
    shape, places = node.meta["val"].shape, index.meta["val"].shape
    base = region._constant_of(whole)
    if base is None:
        raise Unsupported(f"{described(node)} writes into {described(whole)}, which is not one known number")
    _check_places(region, node, shape, places, "scatters")
    if not _same(region.width, shape[-1]):
        raise Unsupported(f"{described(node)} scatters into rows of {shape[-1]}, not of {region.width}")
    if isinstance(source, Node) and not same_sizes(source.meta["val"].shape, places):
        raise Unsupported(f"{described(node)} scatters some of the elements of {described(source)}")
    saved = region.shape, region.width
    region.begin_node(places)  # Arguments are read as tensors of that shape.
    at = region.across(region.numbers_of(region.operand(index)), region.width)
    elements = region.across(region.numbers_of(region.operand(source, region.width)), region.width)
    region.shape, region.width = saved
    return region.across(base, region.width), at, elements


def _scattered(region: Region, node: Node, adds: bool) -> Tile:
    """Compares each place with all elements of the result's rows."""
    made, places, elements = _scatter_operands(region, node)
    columns = region.emit(f"comms.iota : {region.tensor(made.width)}", made.width)
    for number in range(places.width):
        place, element = (region.part(tile, number, 1) for tile in (places, elements))
        is_there = region.compare("oeq", columns, place)
        wanted = region.binary("arith.addf", made, element) if adds else element
        made = region.select(is_there, wanted, made)
    return made


@_cut(aten.scatter.src, aten.scatter.value)
def _scatter(region: Region, node: Node) -> Tile:
    return _scattered(region, node, adds=False)


@_cut(aten.scatter_add.default)
def _scatter_add(region: Region, node: Node) -> Tile:
    return _scattered(region, node, adds=True)
