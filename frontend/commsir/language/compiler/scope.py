"""Name resolution: the variables of functions being translated, and behind them Python's own scopes."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from .analysis import Liveness
from .values import Undefined, Value

MISSING = object()


class PythonScope:
    """The names that a Python function sees: of the functions around it, its module, and Python's own."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))

    def find(self, name: str) -> Any:
        """The object, or MISSING."""
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:  # not assigned yet
                return MISSING
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return getattr(builtins, name, MISSING)


@dataclass
class Frame:
    """The names of one function while it is translated."""

    variables: dict[str, Value]
    # The scope around: of a function that is written in a kernel the frame there.
    outer: Frame | PythonScope | None
    file: str
    live: Liveness
    # The names that the function assigns: they are its own, before it has done so too.
    own: set[str]
    # Of the function of a collective, or of what that calls.
    in_region: bool = False
    # Of each loop around, the innermost last, the flag that says whether it was left.
    loops: list[str] = field(default_factory=list)

    def find(self, name: str) -> Any:
        """A value, a Python object, or MISSING."""
        if name in self.variables:
            return self.variables[name]
        if name in self.own:
            return Undefined(f"'{name}' has no value yet: it is a variable of this function, which assigns it later")
        return MISSING if self.outer is None else self.outer.find(name)

    def comes_from_region(self, name: str) -> bool:
        """Whether a variable belongs to a collective's function rather than to the enclosing scope."""
        if name in self.variables:
            return self.in_region
        return isinstance(self.outer, Frame) and self.outer.comes_from_region(name)
