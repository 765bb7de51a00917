"""Products of matrices: `y[i:i + 128, j:j + 128] = a[i:i + 128] @ b[:, j:j + 128]`, which become comms.contract.

A product is stored where it is assigned to a part of an array. Where it gets a name instead, it lies in scratch memory
of f32, whose rows are tiles.
"""

from __future__ import annotations

import dataclasses

from ..dtypes import BF16, F8, F8E5M2, F16, F32, INDEX
from .subscripts import Subscripts
from .values import Const, Matrix, Memory, Product, Tile, Value, View, Window

_ONE_TYPE = (BF16, F16, F32)
_F8 = (F8, F8E5M2)


class Matrices(Subscripts):
    """The layer that knows products of matrices."""

    # Operands.

    def matrix(self, value: Value, what: str) -> Matrix:
        """A part of an array as a matrix."""
        if isinstance(value, View) and value.matrix is not None:
            return value.matrix
        if isinstance(value, Memory) and value.filled:
            rows, columns = value.filled
            return Matrix(value, Const(0), Const(0), rows, columns, (value.shape[0], value.shape[1]))
        if isinstance(value, Memory | Window) and len(value.shape) == 2:
            rows, columns = (self.extent(value, axis) for axis in (0, 1))
            return Matrix(value, Const(0), Const(0), rows, columns)
        self.fail(f"{what} is {value.describe()}, which is not a matrix", _instead_of_matrix(value))

    def transposed(self, value: Value) -> Value | None:
        """Returns the matrix that `.T` refers to, or None if the part of an array is not a matrix."""
        is_matrix = isinstance(value, View) and value.matrix is not None
        if not is_matrix and not (isinstance(value, Memory | Window) and len(value.shape) == 2):
            return None
        part = self.matrix(value, "this")
        turned = dataclasses.replace(part, transposed=not part.transposed)
        return View(part.base, Const(0), Const(None), matrix=turned)

    def product(self, a: Value, b: Value) -> Product:
        if self.in_region:
            self.fail("the function of a collective has no '@'", "multiply before or after the collective")
        lhs, rhs = self.matrix(a, "the left side of '@'"), self.matrix(b, "the right side of '@'")
        x, y = lhs.base.dtype, rhs.base.dtype
        if not (x is y and x in _ONE_TYPE) and not (x in _F8 and y in _F8):
            self.fail(
                f"'@' of matrices of {x.name} and {y.name}",
                "both have one type of bf16, f16 and f32, or each is f8 or f8e5m2",
            )
        self._agree_sizes(lhs.width, rhs.height, "'@' of a matrix of {} columns and one of {} rows")
        return Product(lhs, rhs)

    def _agree_sizes(self, a: Value, b: Value, text: str) -> None:
        """Requires two sizes to be equal: at compile time if they are known, otherwise at run time."""
        if isinstance(a, Const) and isinstance(b, Const):
            if a.py != b.py:
                self.fail(text.format(a.py, b.py), "they must agree")
            return
        x, y, zero = self.index(a, "a size"), self.index(b, "a size"), self.constant(0, INDEX)
        if x.name != y.name:
            for one, other in ((x, y), (y, x)):
                self.check_bounds("sizes of matrices that must agree", zero, one, other)

    # Where products are stored.

    def store_product(self, place: Value, product: Product, accumulate: bool = False) -> None:
        """`place = a @ b`, or `place += a @ b`."""
        if self.in_region:
            self.fail("the function of a collective cannot store", "return the tile, and name the array in outs=(…)")
        out = self.matrix(place, "where the product is stored")
        if out.transposed:
            self.fail("a product is stored as it is", "swap the operands: y = b.T @ a.T")
        if any(part.base is out.base for part in product.addends):
            self.fail(
                f"{out.base.describe()} is added to a product that is stored there",
                "write y[…] += a @ b, or give the product an array of its own",
            )
        self._agree_sizes(product.lhs.height, out.rows, "a product of {} rows to a place of {}")
        self._agree_sizes(product.rhs.width, out.columns, "a product of {} columns to a place of {}")
        self._contract(product, out, accumulate)

    def hold_product(self, product: Product) -> Memory:
        """Stores the product in scratch memory."""
        sizes = self._product_tile(product, None)
        held = Memory("", sizes, F32, "product", filled=(product.lhs.height, product.rhs.width))
        held = dataclasses.replace(held, name=self.result(f"comms.scratch : {held.type}"))
        self._contract(product, self.matrix(held, "this"), accumulate=False)
        return held

    def add_product(self, held: Memory, product: Product) -> None:
        """`c += a @ b` of an array that has a name."""
        if len(held.shape) != 2:
            self.fail(f"{held.describe()} is not a matrix", _instead_of_matrix(held))
        self.store_product(View(held, Const(0), Const(None), matrix=self.matrix(held, "this")), product, True)

    def _product_tile(self, product: Product, out: Matrix | None) -> tuple[int, int]:
        """Returns the largest numbers of rows and columns of the product."""
        rows = [product.lhs.most_height, out.most_rows if out else None]
        columns = [product.rhs.most_width, out.most_columns if out else None]
        known = [min((n for n in sizes if n is not None), default=None) for sizes in (rows, columns)]
        if known[0] is None or known[1] is None:
            self.fail(
                f"the most {'rows' if known[0] is None else 'columns'} that this product can have must be known when "
                "the kernel is compiled",
                "write i:i + 128, or i:min(i + 128, n) where the last part is shorter",
            )
        return known[0], known[1]

    def add_to_product(self, a: Value, b: Value) -> Product | None:
        product, addend = (a, b) if isinstance(a, Product) else (b, a)
        if not isinstance(product, Product):
            return None
        if isinstance(addend, Product):
            self.fail("the sum of two products", "store the first, and add the second: y[…] = a @ b, y[…] += c @ d")
        is_matrix = isinstance(addend, View) and addend.matrix is not None
        if not is_matrix and not (isinstance(addend, Memory | Window) and len(addend.shape) == 2):
            return None
        return self.plus(product, addend)

    def plus(self, product: Product, addend: Value) -> Product:
        """A product to which a part of an array is added where it is stored."""
        part = self.matrix(addend, "what is added to a product")
        if part.transposed:
            self.fail("what is added to a product is transposed", "add parts of arrays as they lie in memory")
        if part.base.dtype not in _ONE_TYPE:
            self.fail(f"{part.base.dtype.name} added to a product", "addends are f32, bf16 or f16")
        self._agree_sizes(product.lhs.height, part.rows, "a product of {} rows plus {} rows")
        self._agree_sizes(product.rhs.width, part.columns, "a product of {} columns plus {} columns")
        return dataclasses.replace(product, addends=(*product.addends, part))

    def scaled(self, product: Product, scales: tuple[Value, ...]) -> Product:
        """The same product of fp8 operands with scales, those of the left one first."""
        if len(scales) != 2:
            self.fail(f"{len(scales)} arrays of scales", "give those of both sides: scales=(left, right)")
        given = list[Memory | Window]()
        for side, scale, part in zip(("left", "right"), scales, (product.lhs, product.rhs), strict=True):
            if part.base.dtype not in _F8:
                self.fail(f"scales of a matrix of {part.base.dtype.name}", "operands of f8 and f8e5m2 have scales")
            if not isinstance(scale, Memory | Window):
                self.fail(
                    f"the scales of the {side} operand are {scale.describe()}",
                    f"give the whole array: its first scale is that of the first element of {part.base.label}",
                )
            if scale.dtype is not F32:
                self.fail(f"the scales of the {side} operand are {scale.dtype.name}", "scales are f32")
            given.append(scale)
        return dataclasses.replace(product, scales=tuple(given))

    def _contract(self, product: Product, out: Matrix, accumulate: bool) -> None:
        lhs, rhs = product.lhs, product.rhs
        if out.base.dtype not in _ONE_TYPE:
            self.fail(f"a product stored as {out.base.dtype.name}", "store it as f32, bf16 or f16")
        m, n = self._product_tile(product, out)
        operands = [self._matrix_text(part) for part in (lhs, rhs, out)]
        (a, a_type), (b, b_type), (c, c_type) = operands
        text = f"comms.contract {a}, {b} to {c} tile [{m}, {n}] depth {self.index(lhs.width, 'the depth').name}"
        for word, count, most in (("rows", out.rows, m), ("columns", out.columns, n)):
            if count != Const(most):
                text += f" {word} {self.index(count, word).name}"
        scales = [self._known_memory(scale) for scale in product.scales]
        if scales:
            text += f" scaled by {', '.join(scale.name for scale in scales)}"
        addends = [self._matrix_text(part) for part in product.addends]
        if addends:
            text += " plus " + ", ".join(place for place, _ in addends)
        flags = (("accumulate", accumulate), ("transpose_lhs", lhs.transposed), ("transpose_rhs", rhs.transposed))
        if given := [flag for flag, is_set in flags if is_set]:
            text += f" {{{', '.join(given)}}}"
        plus = f" scaled by {', '.join(scale.type for scale in scales)}" if scales else ""
        plus += f" plus {', '.join(kind for _, kind in addends)}" if addends else ""
        self.emit(f"{text} : {a_type}, {b_type}, {c_type}{plus}")

    def _known_memory(self, value: Memory | Window) -> Memory:
        memory = self.memory(value)
        if any(size is None for size in memory.shape):
            self.fail(f"the dimensions of {memory.describe()} are not known", "fix them: kernel.specialize(n=64)")
        return memory

    def _matrix_text(self, part: Matrix) -> tuple[str, str]:
        memory = self._known_memory(part.base)
        row, column = (self.index(place, "a subscript").name for place in (part.row, part.column))
        return f"{memory.name}[{row}, {column}]", memory.type


def _instead_of_matrix(value: Value) -> str:
    if isinstance(value, Memory | Window):
        one = f"{value.label}[i]" if len(value.shape) > 2 else f"{value.label}[r:r + 1], of two dimensions"
        return f"a matrix is an array of two dimensions, or a part of one: {one}"
    if isinstance(value, View):
        label = value.base.label
        return f"a matrix has rows and columns, both slices: {label}[i:i + 64, k:k + 64], or {label}[i:i + 64]"
    if isinstance(value, Product):
        return "store the first product, h[i:i + 64, :] = a @ b, and multiply that: h[i:i + 64] @ c"
    if isinstance(value, Tile):
        return "a tile is one row: multiply parts of arrays, x[i:i + 64] @ w, and store a tile that is computed first"
    return "multiply parts of arrays, such as x[i:i + 64, :] @ w[:, j:j + 64]"
