"""CommsIR: collective kernels that are checked, run on N ranks without a GPU, and compiled for GPUs.

>>> import commsir
>>> commsir.simulate(source, ranks=8, arrays={"x": shards, "y": results})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsir import errors
from commsir._native import CheckReport, check, explain, simulate, version
from commsir._native import compile as compile_ir
from commsir.errors import (
    AbortedError,
    BoundsError,
    CheckError,
    CommsError,
    CompileError,
    DeadlockError,
    DisagreementError,
    LimitError,
    MismatchError,
    UsageError,
)

if TYPE_CHECKING:
    from commsir._replay import replay
    from commsir.doctor import doctor
    from commsir.group import Group

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "BoundsError",
    "CheckError",
    "CheckReport",
    "CommsError",
    "CompileError",
    "DeadlockError",
    "DisagreementError",
    "Group",
    "LimitError",
    "MismatchError",
    "UsageError",
    "check",
    "compile_ir",
    "doctor",
    "errors",
    "explain",
    "replay",
    "simulate",
    "version",
]

#: Names whose modules are imported when they are first used, so that `import commsir` stays quick.
_LAZY = {"replay": "commsir._replay", "doctor": "commsir.doctor", "Group": "commsir.group"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'commsir' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
