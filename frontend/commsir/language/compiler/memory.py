"""Memory: extents, loads and stores of arrays and their parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NoReturn

from ..dtypes import INDEX, DType
from .emitter import quote
from .teams import Teams
from .values import Const, Memory, Product, Scalar, Seq, Tile, Token, Value, View, Window


class MemoryAccess(Teams):
    """The layer that knows memory."""

    def __init__(self, ranks: int | None = None) -> None:
        super().__init__(ranks)
        # This rank's parts of windows.
        self._locals: dict[str, Memory] = {}

    # Extents, in elements.

    def extent(self, base: Memory | Window, axis: int) -> Value:
        size = base.shape[axis]
        if size is not None:
            return Const(size)
        memory = self.memory(base)
        at = self.constant(axis, INDEX).name
        return Scalar(self.result(f"memref.dim {memory.name}, {at} : {memory.type}"), INDEX, True)

    def stride(self, base: Memory | Window, axis: int) -> Value:
        """Returns the distance in elements between neighbors along a dimension."""
        result: Value = Const(1)
        for inner in range(axis + 1, len(base.shape)):
            result = self.multiply(result, self.extent(base, inner))
        return result

    def size(self, base: Memory | Window) -> Value:
        return self.multiply(self.extent(base, 0), self.stride(base, 0))

    def offset(self, base: Memory | Window, indices: Sequence[Value]) -> Value:
        """Returns the number of elements before the one that the subscripts select."""
        offset: Value = Const(0)
        for axis, index in enumerate(indices):
            offset = self.add(offset, self.multiply(index, self.stride(base, axis)))
        return offset

    # Memory that can be reached.

    def memory(self, value: Value, what: str = "this") -> Memory:
        """Requires memory that loads and stores can access. For a window, this is the rank's own part."""
        if isinstance(value, Memory):
            return value
        if not isinstance(value, Window):
            self.fail(f"{what} is {value.describe()}, where memory is needed", "pass an array or a window")
        if self.in_region:
            self._refuse_in_region("use", value)
        if value.name not in self._locals:
            made = Memory("", value.shape, value.dtype, value.label, shared=True)
            name = self.emitter.once(f"comms.local {value.name} : {value.type} -> {made.type}", self.place)
            self.emitter.hint(name, f"{value.label}_local")
            self._locals[value.name] = Memory(name, value.shape, value.dtype, value.label, shared=True)
        return self._locals[value.name]

    def _refuse_in_region(self, verb: str, base: Memory | Window) -> NoReturn:
        written = "return the tile, and name the array in outs=(…)"
        read = "pass it by args=(…), and take its tile as a parameter"
        self.fail(f"the function of a collective cannot {verb} {base.describe()}", written if verb == "write" else read)

    def check_bounds(self, what: str, offset: Scalar, count: Scalar, limit: Scalar) -> None:
        """Ends the run with `what` unless offset + count is within the limit."""
        if self.in_region:
            self.fail("the function of a collective checks nothing", "assert before or after the collective")
        text = f"comms.check_bounds {quote(what)} {offset.name}, {count.name} in {limit.name}"
        self.emit(text)

    def check_axis(self, base: Memory | Window, axis: int, start: Value, count: Value) -> None:
        """Loads and stores check where memory ends; a subscript of a row has to stay in that row, too."""
        if axis > 0 and not (isinstance(start, Const) and isinstance(count, Const)):
            numbers = (self.index(v, "a subscript") for v in (start, count, self.extent(base, axis)))
            self.check_bounds(f"dimension {axis} of {base.label}", *numbers)

    def at_offset(self, memory: Memory, offset: Value) -> str:
        return f"{memory.name}[{self.index(offset, 'the offset').name}]"

    def valid(self, count: Value | None) -> str:
        """Returns the clause for a tile of which only `count` elements exist."""
        return "" if count is None else f" valid {self.index(count, 'valid').name}"

    # Loads.

    def load_view(self, value: Value) -> Value:
        if not isinstance(value, View):
            return value
        if self.in_region:
            self._refuse_in_region("read", value.base)
        if not value.is_tile:
            self._refuse_rows(value)
        if value.indices:
            return self._load_element(self.memory(value.base), value)
        if not isinstance(value.count, Const):
            self._refuse_length(value, f"{value.base.label}.load(offset, length, valid=count), or a slice i:i + 64")
        return self.load(value.base, value.offset, value.count.py)

    def element(self, value: Value) -> Value:
        """An element of a tuple that has no name yet. A matrix stays where it is: the product that it is added to reads
        it."""
        is_matrix = isinstance(value, View) and value.matrix is not None and not value.is_tile
        return value if is_matrix else self.snapshot(value)

    def snapshot(self, value: Value) -> Value:
        """Returns a value that later stores do not change: parts of arrays are loaded if their length is known."""
        if isinstance(value, Seq):
            return dataclasses.replace(value, items=tuple(map(self.snapshot, value.items)))
        if isinstance(value, Product):
            return self.hold_product(value)
        return self.load_view(value) if isinstance(value, View) and not isinstance(value.count, Scalar) else value

    def _refuse_rows(self, view: View, stores_array: bool = False) -> NoReturn:
        if view.matrix is not None and view.matrix.transposed:
            self.fail(
                f"the transpose of {view.base.describe()} is not a tile", "it is an operand of '@': y[:] = a @ b.T"
            )
        by_rows = f"store row by row, {view.base.label}[i] = p[r]; a product that has no name is stored at once"
        self.fail(
            "only the last subscript may be a slice: a tile is contiguous",
            by_rows if stores_array else "load row by row",
        )

    def _refuse_length(self, view: View, instead: str) -> NoReturn:
        self.fail(
            f"the length of this part of {view.base.describe()} must be known when the kernel is compiled",
            f"write {instead}",
        )

    def _load_element(self, memory: Memory, place: View) -> Scalar:
        if memory.shared:
            return self.scalar(self.load(memory, self.offset(memory, place.indices), 1))
        at = ", ".join(self.index(i, "a subscript").name for i in place.indices)
        return Scalar(self.result(f"memref.load {memory.name}[{at}] : {memory.type}"), memory.dtype)

    def load(
        self, base: Value, offset: Value, length: int, valid: Value | None = None, after: Token | None = None
    ) -> Tile:
        memory = self.memory(base)
        if length < 1:
            self.fail(f"a tile of {length} elements", "a tile has at least one element")
        clauses = self.at_offset(memory, offset) + self.valid(valid) + (f" after {after.name}" if after else "")
        return self.tile_from("tile_load", clauses, memory, length)

    def tile_from(self, op: str, clauses: str, memory: Memory, length: int, dtype: DType | None = None) -> Tile:
        """Returns the tile that an op reads from memory."""
        made = Tile("", dtype or memory.dtype, length)
        return Tile(self.result(f"comms.{op} {clauses} : {memory.type} -> {made.type}"), made.dtype, length)

    # Stores.

    def store(self, place: View, value: Value) -> None:
        if self.in_region:
            self._refuse_in_region("write", place.base)
        if isinstance(value, Product):
            return self.store_product(place, value)
        if not place.is_tile:
            self._refuse_rows(place, isinstance(value, Memory))
        value = self.load_view(value)
        memory = self.memory(place.base)
        if place.indices:
            return self._store_element(memory, place, self.scalar(value, memory.dtype, "what is stored"))
        n = self.number(value, "what is stored")
        if not isinstance(place.count, Const):
            self._refuse_length(place, f"{place.base.label}.store(tile, offset, valid=count)")
        if isinstance(n, Tile) and n.length not in (1, place.count.py):
            self.fail(
                f"a tile of {n.length} elements does not fit {place.count.py} of {memory.describe()}",
                "lengths must agree",
            )
        return self.store_tile(memory, place.offset, self.tile(n, place.count.py, memory.dtype))

    def _store_element(self, memory: Memory, place: View, value: Scalar) -> None:
        # A block is many threads on a GPU, of which one stores a tile of one element.
        self.store_tile(memory, self.offset(memory, place.indices), self.tile(value, 1))

    def store_tile(self, memory: Memory, offset: Value, tile: Tile, valid: Value | None = None) -> None:
        if self.in_region:
            self._refuse_in_region("write", memory)
        self.tile_to("tile_store", tile, self.at_offset(memory, offset) + self.valid(valid), memory)

    def tile_to(self, op: str, tile: Tile, clauses: str, memory: Memory) -> None:
        """Emits an op that writes a tile to memory."""
        self.emit(f"comms.{op} {tile.name}, {clauses} : {tile.type}, {memory.type}")
