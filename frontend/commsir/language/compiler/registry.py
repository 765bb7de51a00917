"""Handlers: what implements the functions, methods and attributes of the language, and Python's that kernels know.

`..lowering` fills the tables, the compiler reads them.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from .. import functions
from .values import Const, Value

Handler = Callable[..., Value | None]
H = TypeVar("H", bound=Handler)

FUNCTIONS: dict[Any, tuple[inspect.Signature, Handler]] = {}
METHODS: dict[tuple[type[Value], str], tuple[inspect.Signature, Handler]] = {}
# Parameters of functions that are memory: a part of it that is given for one is no value to load.
MEMORY_PARAMETERS: dict[Any, tuple[str, ...]] = {}
ATTRIBUTES: dict[tuple[type[Value], str], Handler] = {}


def function(implemented: Any) -> tuple[inspect.Signature, Handler] | None:
    """The signature and handler of a Python object that kernels can call."""
    try:
        return FUNCTIONS.get(implemented)
    except TypeError:  # not hashable
        return None


def takes_one(name: str) -> bool:
    """Whether `name` is a function of one value, as exp is: torch and NumPy have it as a method."""
    found = next((f for f in functions.ALL if f.__name__ == name), getattr(builtins, name, None))
    known = function(found)
    return known is not None and len(known[0].parameters) == 1


#: What torch calls functions of the language that have another name there.
_IN_TORCH = {"clamp": "clip", "round": "rint", "absolute": "abs"}


def function_of_torch(found: Any) -> tuple[inspect.Signature, Handler] | None:
    """Same, for a torch function that the language supports: torch.exp, torch.where, torch.maximum, …"""
    name, torch = getattr(found, "__name__", ""), sys.modules.get("torch")
    if torch is None or not name or getattr(torch, name, None) is not found:
        return None
    own = _IN_TORCH.get(name, name)
    known = getattr(functions, own, None) or getattr(builtins, own, None)
    return function(known) if known in (*functions.ALL, builtins.abs) else None


def own_signature(handler: Handler, skipped: int) -> inspect.Signature:
    """Returns the handler's parameters after the leading ones, with Python's default values."""
    parameters = list(inspect.signature(handler).parameters.values())[skipped:]
    return inspect.Signature(
        [
            p.replace(annotation=p.empty, default=p.default.py if isinstance(p.default, Const) else p.default)
            for p in parameters
        ]
    )


def names() -> list[str]:
    """Returns the functions that a kernel can use without an import."""
    known = [f.__name__ for f in functions.ALL]
    return known + [name for name, f in vars(builtins).items() if callable(f) and function(f) is not None]


def lowers(*implemented: Any, variadic: bool = False, memory: tuple[str, ...] = ()) -> Callable[[H], H]:
    """Registers the handler of functions.

    Functions of the language have the signature that they declare; Python's have that of the handler. A `variadic`
    handler gets all arguments as one Seq. `memory` names the parameters that are parts of memory.
    """

    def register(handler: H) -> H:
        for one in implemented:
            declared = one in functions.ALL
            signature = functions.plain(inspect.signature(one)) if declared else own_signature(handler, 1)
            if variadic:
                only = next(iter(signature.parameters.values()))
                signature = inspect.Signature([only.replace(kind=only.VAR_POSITIONAL)])
            FUNCTIONS[one] = (signature, handler)
            MEMORY_PARAMETERS[one] = memory
        return handler

    return register


def lowers_method(*kinds: type[Value], name: str, of: Callable[..., Any] | None = None) -> Callable[[H], H]:
    """The handler of a method: of that of a function of the language, whose first argument comes before the dot."""

    def register(handler: H) -> H:
        signature = own_signature(handler, 2)
        if of is not None:
            declared = functions.plain(inspect.signature(of))
            signature = declared.replace(parameters=list(declared.parameters.values())[1:])
        for kind in kinds:
            METHODS[kind, name] = (signature, handler)
        return handler

    return register


def lowers_attribute(*kinds: type[Value], name: str) -> Callable[[H], H]:
    def register(handler: H) -> H:
        for kind in kinds:
            ATTRIBUTES[kind, name] = handler
        return handler

    return register
