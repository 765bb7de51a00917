"""State shared by all layers of the compiler, errors, and declarations of functions in higher layers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NoReturn

from .. import diagnostics
from ..source import Place
from .emitter import Emitter
from .scope import Frame
from .values import Memory, Product, Scalar, Tile, Value


class Translation:
    """The state of one translation."""

    # The names of the function that is being translated.
    frame: Frame

    def __init__(self, ranks: int | None = None) -> None:
        self.emitter = Emitter()
        self.ranks = ranks
        # Where in the source what is emitted now comes from.
        self.place: Place = ("", 0, 0)
        # The calls that are being inlined: the function's name, and where it is called.
        self.calls: list[tuple[str, Place]] = []
        # In the function of a collective, which sees nothing but its tiles and constants.
        self.in_region = False
        # What that function uses of the kernel around it: the value, and the tile that the function gets of it.
        self.captures: dict[str, tuple[Scalar | Tile, Tile]] = {}
        # Channels so far, which the runtime tells apart by number.
        self.channels = 0

    def at(self, node: ast.AST) -> Place:
        return (self.frame.file, getattr(node, "lineno", self.place[1]), getattr(node, "col_offset", 0) + 1)

    def fail(self, message: str, hint: str = "", node: ast.AST | None = None) -> NoReturn:
        # The ends of a long chain say what is called and by whom; what is between repeats itself.
        shown = self.calls if len(self.calls) <= 8 else [*self.calls[:4], *self.calls[-4:]]
        notes = [(f"called here, as '{name}'", place) for name, place in reversed(shown)]
        raise diagnostics.compile_error(message, self.at(node) if node else self.place, hint, notes)

    def emit(self, text: str) -> None:
        """Emits an op, or the end of one, located at the statement being translated."""
        self.emitter.emit(text, self.place)

    def result(self, text: str) -> str:
        """Emits an op of one result, whose name is returned."""
        return self.emitter.result(text, self.place)

    # What layers ask of those above them.

    def load_view(self, value: Value) -> Value:
        """Loads the part of an array as a tile or scalar; returns other values unchanged."""
        raise NotImplementedError

    def product(self, a: Value, b: Value) -> Product:
        """`a @ b`."""
        raise NotImplementedError

    def add_to_product(self, a: Value, b: Value) -> Product | None:
        """`a @ b + d`, or `d + a @ b`; None: it is no sum of a product and a matrix."""
        raise NotImplementedError

    def store_product(self, place: Value, product: Product, accumulate: bool = False) -> None:
        """`place = a @ b`, or `place += a @ b`."""
        raise NotImplementedError

    def hold_product(self, product: Product) -> Memory:
        """Stores a product in scratch memory."""
        raise NotImplementedError

    def expression(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def test(self, node: ast.expr) -> Value:
        """Evaluates an expression of which only the truth value is used."""
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt]) -> None:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value) -> None:
        raise NotImplementedError
