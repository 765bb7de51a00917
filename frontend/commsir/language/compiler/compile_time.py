"""Values known at compile time: Python objects, named dimensions, tuple elements."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from .. import diagnostics, extents
from ..dtypes import DType, as_dtype
from ..extents import DerivedDim, Dim
from ..parameters import Parameter
from .memory import MemoryAccess
from .values import Argument, Const, Memory, Peers, Range, Seq, Tile, Value, Window, whole_tile


def _instead_of_items(value: Value) -> str:
    if isinstance(value, Range | Peers):
        return "loop over it alone, and count in a variable: i = 0 before the loop, i += 1 in it"
    if isinstance(value, Memory | Window):
        return f"a part of it is a tile, which sum, min and max take: {whole_tile(value)}"
    if isinstance(value, Tile):
        return "reduce it: t.sum(), t.max(), (t == x).any()"
    if isinstance(value, Const) and isinstance(value.py, dict | set | frozenset | str):
        return "make a tuple of it outside the kernel: NAMES = tuple(…)"
    return "write several values, or a tuple of them: max(a, b), (a, b)"


_OPERATORS = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "//": ast.FloorDiv}


class CompileTimeValues(MemoryAccess):
    """The layer that knows Python's objects."""

    def __init__(self, ranks: int | None = None) -> None:
        super().__init__(ranks)
        # The kernel's, for dimensions that are named.
        self.parameters: Mapping[str, Parameter] = {}
        self.arguments: Mapping[str, Argument] = {}
        # The numbers that dimensions are known to have, and those that collectives say they have.
        self.dims: Mapping[str, int] = {}
        self.inferred: dict[str, int] = {}

    def python(self, found: Any, node: ast.AST | None = None) -> Value:
        """Converts a Python object that a kernel refers to into a constant."""
        if isinstance(found, Value):
            return found
        if isinstance(found, Dim):
            return self._dimension(found, node)
        if isinstance(found, DerivedDim):
            return self._calculated(found, node)
        if type(found).__module__ == "numpy" and hasattr(found, "item") and getattr(found, "shape", None) == ():
            return Const(found.item())
        if hasattr(found, "__dlpack__") or type(found).__name__ == "ndarray":
            self.fail("an array from outside cannot be used in a kernel", "pass it as an argument", node)
        return Const(found)

    def _dimension(self, name: Dim, node: ast.AST | None) -> Value:
        """Returns the size of a named dimension, taken from the first parameter that has it."""
        if (number := self.dims.get(name)) is not None:
            return Const(number)
        for parameter, spec in self.parameters.items():
            if name in spec.shape and isinstance(base := self.arguments[parameter], Memory | Window):
                return self.extent(base, spec.shape.index(name))
        if name == extents.RANKS:
            return self.team_number("size", self.team("world"))
        parts = [str(d) for spec in self.parameters.values() for d in spec.shape if name in extents.names_in(d)]
        if parts:
            hint = f"it is fixed with the kernel: k.specialize({name}=…)"
            self.fail(f"the dimension '{name}' is not known by {parts[0]} alone", hint, node)
        self.fail(f"the dimension '{name}' is not one of this kernel's parameters", node=node)

    def _calculated(self, extent: DerivedDim, node: ast.AST | None) -> Value:
        left, right = self.python(extent.left, node), self.python(extent.right, node)
        return self.binary(_OPERATORS[extent.symbol](), left, right)

    def infer(self, extent: extents.Extent, number: int) -> None:
        """Infers a named dimension from the requirement that a parameter's dimension equals that number."""
        solved = extents.solve(extent, number, {**self.dims, **self.inferred})
        if solved is not None and solved[1] >= 0:
            self.inferred[solved[0]] = solved[1]

    def items(self, value: Value, node: ast.AST | None = None) -> tuple[Value, ...]:
        """Returns the elements of a tuple, of a list, or of a range of known numbers."""
        items = self.items_if_known(value)
        if items is None:
            self.fail(f"{value.describe()} has no elements that are known", _instead_of_items(value), node)
        return items

    def items_if_known(self, value: Value) -> tuple[Value, ...] | None:
        if isinstance(value, Seq):
            return value.items
        if isinstance(value, Range):
            bounds = [v.py for v in (value.start, value.stop, value.step) if isinstance(v, Const)]
            value = Const(range(*bounds)) if len(bounds) == 3 and all(isinstance(b, int) for b in bounds) else value
        if isinstance(value, Const) and isinstance(value.py, tuple | list | range):
            return tuple(map(self.python, value.py))
        return None

    def known(self, value: Value, what: str, kind: type | tuple[type, ...], hint: str = "") -> Any:
        """Requires a constant of a Python type and returns it."""
        if isinstance(value, Const) and isinstance(value.py, kind) and not (isinstance(value.py, bool) and kind is int):
            return value.py
        names = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        wanted = f"a Python {names}" if isinstance(value, Const) else "known when the kernel is compiled"
        self.fail(f"{what} is {value.describe()}; it must be {wanted}", hint)

    def choice(self, value: Value, what: str, known: Sequence[str], hint: str = "") -> str:
        """Requires a constant string that is one of the choices; otherwise the error shows `hint`."""
        text = value.py if isinstance(value, Const) else None
        if text not in known:
            close = diagnostics.did_you_mean(str(text), known, 0.75)
            names = ", ".join(name or '""' for name in known)
            self.fail(f"{what} is {value.describe()}", f"{close} it is one of {names}{hint}".strip())
        return str(text)

    def element_type(self, value: Value, what: str = "the type of the elements") -> DType:
        dtype = as_dtype(value.py) if isinstance(value, Const) else None
        if dtype is None:
            self.fail(f"{what} is {value.describe()}", "write f32, bf16, i32, …")
        return dtype
