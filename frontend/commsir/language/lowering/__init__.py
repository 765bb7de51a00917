"""Handlers that translate the language's functions, methods and attributes to ops.

A handler takes the compiler and the values of its arguments, and returns a value, or None where there is none. It
asks the compiler (`..compiler`) for scalars, tiles and memory, and writes the text of ops; no other state is touched.
"""

from ..compiler import Compiler, Head
from . import (  # noqa: F401
    builtins,
    channels,
    collectives,
    mathematics,
    memory,
    one_sided,
    packets,
    synchronization,
    teams,
    tiles,
)

# The compiler, which knows the handlers once this module is imported.
__all__ = ["Compiler", "Head"]
