"""Subscripts: parts of arrays, elements of tuples, cells of signals, slots of channels."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from . import analysis, hints
from .emitter import Line, may_be_repeated
from .for_loops import ForLoops
from .values import (
    Cell,
    Cells,
    Channel,
    Const,
    Matrix,
    Memory,
    Product,
    Scalar,
    Seq,
    Slot,
    Tile,
    Value,
    View,
    Window,
    whole_tile,
)


class Subscripts(ForLoops):
    """The layer that knows subscripts."""

    def subscript(self, base: Value, key: ast.expr, node: ast.Subscript) -> Value:
        """Resolves `base[key]`. For memory, the caller decides whether to load or store."""
        self.place = self.at(node)
        if isinstance(base, Memory | Window):
            return self._view(base, key)
        base = self.load_view(base)
        if isinstance(base, Tile) and isinstance(key, ast.Slice):
            return self._part_of_tile(base, key)
        if isinstance(base, Seq) or isinstance(base, Const) and hasattr(base.py, "__getitem__"):
            return self._static_item(base, key)
        index = self.expression(key) if not isinstance(key, ast.Slice | ast.Tuple) else None
        if isinstance(base, Cells) and index is not None:
            self._known_cell(base, index)
            return Cell(base, self.index(index, f"the cell of '{base.label}'"))
        if isinstance(base, Channel) and index is not None:
            return Slot(base, self.index(index, "the slot"))
        if isinstance(base, Tile):
            if base.length == 1 and index == Const(0):
                return self.scalar(base)
            self.fail(
                "a tile has no subscripts but slices",
                "t[3:4] is a tile of one; t.sum() and t.max() reduce a tile",
                node,
            )
        hint = hints.OF_PRODUCT if isinstance(base, Product) else ""
        self.fail(f"{base.describe()} has no subscripts", hint, node)

    def _part_of_tile(self, base: Tile, key: ast.Slice) -> Tile:
        """`t[8:16]`: places that are known, as the length of a tile is."""
        known = self._known_bounds(key)
        if known is None:
            self.fail(
                "a part of a tile begins and ends at numbers that are known when the kernel is compiled",
                "load a part of the array: x[i:i + 64]",
                key,
            )
        begin, end, step = slice(*known).indices(base.length)
        if step != 1:
            self.fail("a slice has no step: a tile is contiguous", "", key)
        bounds = [bound for bound in known[:2] if bound is not None]
        if end <= begin or any(not -base.length <= bound <= base.length for bound in bounds):
            self.fail(
                f"a slice of elements {begin} to {end} of {base.describe()}",
                "a slice has at least one element, and stays in the tile",
                key,
            )
        return self.part(base, begin, end - begin)

    def _known_bounds(self, key: ast.Slice) -> list[int | None] | None:
        """Returns begin, end and step of a slice; None if one of them is no integer that is known."""
        parts = [self.expression(part) if part else Const(None) for part in (key.lower, key.upper, key.step)]
        known = [part.py for part in parts if isinstance(part, Const) and isinstance(part.py, int | None)]
        if known[2:] == [0]:
            self.fail("a slice with a step of 0", "leave the step out", key)
        return known if len(known) == len(parts) else None

    def _known_cell(self, cells: Cells, index: Value) -> None:
        if isinstance(index, Const) and isinstance(index.py, int) and not 0 <= index.py < cells.count:
            self.fail(
                f"cell {index.py} of {cells.describe()}, which has {cells.count}",
                f"annotate it as {cells.kind.capitalize()}[{index.py + 1}]",
            )

    def _static_item(self, base: Value, key: ast.expr) -> Value:
        if isinstance(key, ast.Slice):
            known = self._known_bounds(key)
            if known is None:
                self.fail("a slice of a tuple needs integers that are known when the kernel is compiled", node=key)
            return Seq(self.items(base, key)[slice(*known)])
        index = self.expression(key)
        if not isinstance(index, Const):
            self.fail(
                "the index of the element must be known when the kernel is compiled",
                "put the values in an array and pass it",
                key,
            )
        try:
            if isinstance(base, Seq):
                item: Value = base.items[index.py]
                return item
            assert isinstance(base, Const)
            return self.python(base.py[index.py], key)
        except (LookupError, TypeError) as error:
            self.fail(f"no element {index.py!r}: {error}", node=key)

    def _view(self, base: Memory | Window, key: ast.expr) -> View:
        keys = list(key.elts) if isinstance(key, ast.Tuple) else [key]
        rank = len(base.shape)
        if not keys:
            self.fail(
                f"no subscript for {base.describe()}", f"a part of it is {base.label}[i] or {base.label}[i:i + 64]", key
            )
        if len(keys) > rank:
            self.fail(
                f"{len(keys)} subscripts for {base.describe()}, which has {rank} dimension{'s' * (rank != 1)}", node=key
            )
        if len(keys) == rank and not any(isinstance(k, ast.Slice) for k in keys):
            indices = tuple(self._one(base, axis, k) for axis, k in enumerate(keys))
            return View(base, Const(0), Const(1), indices)
        if any(isinstance(k, ast.Slice) for k in keys[:-1]):
            return self._rows_and_columns(base, keys, key)
        last = keys[-1]
        if not isinstance(last, ast.Slice):
            indices = tuple(self._one(base, axis, k) for axis, k in enumerate(keys))
            start = self.offset(base, indices)
            whole = self._whole_matrix(base, indices) if len(keys) == rank - 2 else None
            return View(base, start, self.stride(base, len(keys) - 1), matrix=whole)
        indices = tuple(self._one(base, axis, k) for axis, k in enumerate(keys[:-1]))
        start, count = self._slice(base, len(keys) - 1, last)
        self.check_axis(base, len(keys) - 1, start, count)
        place = self.offset(base, (*indices, start))
        part = None
        if len(keys) == rank - 1:
            row, columns = self._matrix_row(base, (*indices, start)), self.extent(base, rank - 1)
            part = Matrix(base, row, Const(0), count, columns, (self._most_of(last), None))
        return View(base, place, self.multiply(count, self.stride(base, len(keys) - 1)), matrix=part)

    def _matrix_row(self, base: Memory | Window, indices: Sequence[Value]) -> Value:
        """Returns the row that subscripts of all dimensions but the last select, counted through all of them."""
        row: Value = Const(0)
        for axis, index in enumerate(indices):
            row = self.add(self.multiply(row, self.extent(base, axis)), index)
        return row

    def _whole_matrix(self, base: Memory | Window, indices: Sequence[Value]) -> Matrix:
        """Returns the matrix that subscripts of all dimensions but the last two select."""
        rows, columns = (self.extent(base, axis) for axis in (len(base.shape) - 2, len(base.shape) - 1))
        return Matrix(base, self._matrix_row(base, (*indices, Const(0))), Const(0), rows, columns)

    def _rows_and_columns(self, base: Memory | Window, keys: Sequence[ast.expr], node: ast.expr) -> View:
        """`x[i:i + 64, k:k + 64]`: a matrix, whose rows are not contiguous."""
        rows, columns = keys[-2:]
        if len(keys) < len(base.shape) or any(isinstance(k, ast.Slice) for k in keys[:-2]):
            self.fail("only the last subscript may be a slice: a tile is contiguous", "load row by row", node)
        if not isinstance(rows, ast.Slice) or not isinstance(columns, ast.Slice):
            self.fail(
                "only the last subscript may be a slice: a tile is contiguous",
                "load row by row; a matrix has two slices: x[i:i + 64, k:k + 1]",
                node,
            )
        axis = len(keys) - 2
        indices = tuple(self._one(base, at, k) for at, k in enumerate(keys[:-2]))
        first, count = self._slice(base, axis, rows)
        self.check_axis(base, axis, first, count)
        start, width = self._slice(base, axis + 1, columns)
        bounds = (self._most_of(rows), self._most_of(columns))
        part = Matrix(base, self._matrix_row(base, (*indices, first)), start, count, width, bounds)
        return View(base, Const(0), Const(None), matrix=part)

    def _most_of(self, key: ast.Slice) -> int | None:
        """Returns the n of `i:min(i + n, end)`, or of `0:min(n, end)`: the largest length of the slice."""
        upper = key.upper
        if not isinstance(upper, ast.Call) or not analysis.is_extremum(upper):
            return None
        if "max" in (upper.func.attr if isinstance(upper.func, ast.Attribute) else ast.unparse(upper.func)):
            return None
        first = self._if_constant(key.lower) if key.lower else Const(0)
        distances = (self._distance(ast.Slice(key.lower, end)) or self._between(first, end) for end in upper.args)
        known = [d.py for d in distances if d is not None and isinstance(d.py, int) and d.py > 0]
        return min(known, default=None)

    def _between(self, first: Const | None, end: ast.expr) -> Const | None:
        """Returns the distance of two constants that are no negative numbers, which count from an array's end."""
        last = self._if_constant(end) if first else None
        if first is None or last is None or not isinstance(first.py, int) or not isinstance(last.py, int):
            return None
        return Const(last.py - first.py) if first.py >= 0 and last.py >= 0 else None

    def _one(self, base: Memory | Window, axis: int, key: ast.expr) -> Value:
        """A single subscript; a negative number counts from the end."""
        index = self.load_view(self.expression(key))
        if isinstance(index, Seq) or index == Const(None):
            self.fail(
                f"a subscript is {index.describe()}",
                f"a subscript is a number, and the last may be a slice: {whole_tile(base)}",
                key,
            )
        index = self.number(index, "a subscript")
        if isinstance(index, Tile):
            if index.length != 1:
                self.fail(
                    f"a subscript is {index.describe()}",
                    "a subscript names one place; choose elements with where(condition, a, b)",
                    key,
                )
            index = self.scalar(index)
        if not isinstance(index, Const):
            place = self.index(index, "a subscript")
            self.check_axis(base, axis, place, Const(1))
            return place
        if not isinstance(index.py, int):
            self.fail(f"a subscript is {index.describe()}, not an integer", "convert it: int(…)", key)
        size = self.extent(base, axis)
        if isinstance(size, Const) and not -size.py <= index.py < size.py:
            self.fail(f"{index.py} is out of bounds: {base.describe()} has {size.py} along dimension {axis}", node=key)
        return self.add(size, index) if index.py < 0 else index

    def _slice(self, base: Memory | Window, axis: int, key: ast.Slice) -> tuple[Value, Value]:
        """Start and count. The count is known for constants and for `i:i + n`."""
        if key.step is not None:
            self.fail("a slice has no step: a tile is contiguous", "write for i in range(start, stop, step)", key)
        lines: list[Line] = []
        with self.emitter.into(lines):
            start = self.expression(key.lower) if key.lower else Const(0)
        self.emitter.splice(lines)
        once = all(may_be_repeated(line.text) for line in lines)  # Else the same text is another number.
        size = self.extent(base, axis)
        if not isinstance(start, Const) and once and (distance := self._distance(key)) is not None:
            return start, self._known_slice(base, axis, start, distance, size, key)
        stop = self.expression(key.upper) if key.upper else size
        start, stop = self._from_end(start, size), self._from_end(stop, size)
        count = self.subtract(stop, start)
        is_whole = key.lower is None and key.upper is None
        if is_whole and count == Const(0):  # Matrices may have no rows or no columns; a tile of these is refused.
            return start, count
        if isinstance(count, Const):
            self._known_slice(base, axis, start, count, size, key)
        elif isinstance(count, Scalar):
            count = Scalar(count.name, count.dtype, True)
        return start, count

    def _known_slice(
        self, base: Memory | Window, axis: int, start: Value, count: Const, size: Value, key: ast.AST
    ) -> Const:
        if not isinstance(count.py, int) or count.py <= 0:
            self.fail(f"a slice of {count.py} elements", "a slice has at least one element", key)
        if isinstance(start, Const) and start.py < 0:
            self.fail(f"a slice that begins {-start.py} before {base.describe()} along dimension {axis}", node=key)
        end = start.py + count.py if isinstance(start, Const) else count.py
        if isinstance(size, Const) and end > size.py:
            self.fail(
                f"a slice that ends at {end} of {base.describe()}, which has {size.py} along dimension {axis}", node=key
            )
        return count

    def _from_end(self, value: Value, size: Value) -> Value:
        negative = isinstance(value, Const) and isinstance(value.py, int) and value.py < 0
        return self.add(size, value) if negative else value

    def _distance(self, key: ast.Slice) -> Const | None:
        """Returns the n of `i:i + n`, `i * n:(i + 1) * n` or `i * n:i * n + n`, if it is a constant."""
        lower, upper = key.lower, key.upper
        if lower is None or upper is None or not isinstance(upper, ast.BinOp):
            return None
        if isinstance(upper.op, ast.Add):
            for start, more in ((upper.left, upper.right), (upper.right, upper.left)):
                if ast.dump(start) == ast.dump(lower):
                    return self._if_constant(more)
        if isinstance(upper.op, ast.Mult) and isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Mult):
            plus, same = upper.left, ast.dump(lower.right) == ast.dump(upper.right)
            if same and isinstance(plus, ast.BinOp) and isinstance(plus.op, ast.Add):
                is_next = ast.dump(plus.left) == ast.dump(lower.left) and self._if_constant(plus.right) == Const(1)
                return self._if_constant(upper.right) if is_next else None
        return None

    def _if_constant(self, node: ast.expr) -> Const | None:
        lines: list[Line] = []
        with self.emitter.into(lines):
            value = self.expression(node)
        return value if isinstance(value, Const) and not lines else None
