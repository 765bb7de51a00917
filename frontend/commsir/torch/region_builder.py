"""A region under construction: its text, its tiles, and the tensors that it reads."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from commsir.torch.capi import element_type
from commsir.torch.region_nodes import (
    CASTS,
    CUTS,
    PLACES,
    REDUCTIONS,
    RULES,
    Misfit,
    Unsupported,
    aten,
    moves_nothing,
    same_size,
)
from commsir.torch.reporting import described

__all__ = ["FLOATS", "INTEGERS", "SMALL_FLOATS", "Argument", "Region", "Tile"]

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SMALL_FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2)
#: Integers that casts make, and that arguments may be of.
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)
#: Comparisons of floats, ordered except for `une`, and those of integers that they stand for.
_INTEGER_ORDERS = {"ogt": "sgt", "oge": "sge", "olt": "slt", "ole": "sle", "oeq": "eq", "une": "ne"}
_CONSTANTS = (aten.full.default, aten.scalar_tensor.default)
#: Memory that parts of rows pass through, in bytes: that of one block on the chips that have the least.
_MOST_CUT_BYTES = 96 << 10


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
        return None if len(shape) > 1 and same_size(shape[-1], self.width) else [-1, self.width]


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
            raise Misfit(f"rows of {tile.width} and of {width} elements do not go together")
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
        if same_size(count, self.rows * self.columns):
            return self.columns
        if same_size(count, self.rows):
            return 1
        for dims in range(1, len(shape) + 1):
            width = prod(shape[-dims:])
            if isinstance(width, int) and width > 1 and same_size(prod(shape[:-dims]), self.rows):
                return width
        if same_size(count, 0):
            raise Misfit(f"a tensor of shape {list(shape)} has no elements")
        raise Misfit(f"a tensor of shape {list(shape)} has other rows than the collective's result")

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
        if not same_size(prod(shape), self.rows * width):
            return 0
        counts = range(1, len(shape) + 1)
        return next((count for count in counts if same_size(prod(shape[-count:]), width)), 0)

    def _is_row(self, shape: Sequence[Any], width: int) -> bool:
        """Whether the last dimensions of a tensor that the node reads are a whole row, or (1) one element for it."""
        dims = self._row_dims()
        want = [1] * dims if width == 1 else list(self.shape[-dims:])
        have = [1] * (dims - len(shape)) + list(shape[max(len(shape) - dims, 0) :])
        return dims > 0 and all(map(same_size, have, want))

    def _is_repeated(self, shape: Sequence[Any]) -> bool:
        """Whether torch repeats a tensor of that shape along dimensions of the node's."""
        last = self.shape[max(len(self.shape) - len(shape), 0) :]
        return len(shape) == len(last) and all(
            same_size(a, b) or same_size(a, 1) for a, b in zip(shape, last, strict=True)
        )

    def _argument_of(self, node: Node, value: torch.Tensor) -> Argument:
        """How the node that is translated, whose shape is `shape`, reads a tensor from outside."""
        count = value.numel()
        if same_size(count, 1):
            return Argument(node, 1, True)
        if same_size(count, prod(self.shape)):
            return Argument(node, self.width, False)
        if self._is_row(value.shape, self.width) and same_size(count, self.width):
            return Argument(node, self.width, True)
        if self._is_row(value.shape, 1) and same_size(count, self.rows):
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
        if value.dtype not in (*FLOATS, *SMALL_FLOATS, *INTEGERS, torch.bool) and not is_number:
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
        return Tile(tile.name, tile.width, kind) if dtype in INTEGERS else self.widen(tile, kind)

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
        if (dtype := node.meta["val"].dtype) in INTEGERS:
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
        rule = RULES.get(node.target)
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
        except Misfit as why:
            raise Unsupported(f"{described(node)}: {why}") from None
        if node.target not in REDUCTIONS and node.target not in CUTS:
            self._check_elements(node)
        if not isinstance(made, tuple):
            return self._checked(node, made, widths[0], value.dtype)
        given = zip(made, widths, results, strict=True)
        return tuple(self._checked(node, tile, width, one.dtype) for tile, width, one in given)

    def _checked(self, node: Node, tile: Tile, width: int, dtype: torch.dtype) -> Tile:
        """A result of the node as wide as it has to be; of constants, or one element for all, it may be narrower."""
        if tile.width not in (1, width):
            raise Unsupported(f"{described(node)} cuts rows, or joins them")
        kind = "i1" if dtype is torch.bool else element_type(dtype) if dtype in INTEGERS else "f32"
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
                same_size(value.numel(), 1)
                or self._is_row(value.shape, 1)
                # As many elements as the result has: each goes with its own.
                or same_size(value.numel(), count)
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
        if dtype in FLOATS or dtype is torch.bool:
            return
        if dtype in (*SMALL_FLOATS, *INTEGERS) and (node.target in (*CASTS, *PLACES) or moves_nothing(node)):
            return
    raise Unsupported(f"{described(node)} is of {dtype}")
