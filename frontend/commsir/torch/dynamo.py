"""Makes Dynamo treat process groups of Python classes like those in C++.

It traces what is Python, and would go from a compiled function into a group's locks and queues. Of a group in C++ it
knows who is in it; what torch makes no functional collective of breaks the graph there, and runs as it stands.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

import torch
import torch.distributed

from commsir.torch.import_hooks import when_imported

dist: Any = torch.distributed

__all__ = ["opaque"]

_Given = TypeVar("_Given")

#: Where Dynamo tells process groups from other objects.
_MODULE = "torch._dynamo.variables.distributed"


def opaque(given: _Given) -> _Given:
    """Keeps Dynamo out of a function, or of the methods that a class defines, but not of its subclasses' methods.

    For those that programs or C++ may call while a compiled function runs, or that are dropped there.
    """
    for member in list(vars(given).values()) if isinstance(given, type) else [given]:
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, FunctionType):
            _disable_tracing(function)
    return given


def _disable_tracing(function: Any) -> None:
    """Like `torch.compiler.disable`, without importing Dynamo and without a wrapper around each call."""
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = "commsir: the calls of a process group are not traced"
    # It also takes what C++ calls while a compiled function runs, as DDP does in its forward pass.
    frames: Any = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))


def _accept_subclasses(module: Any) -> None:
    """Makes torch 2.11 accept subclasses of ProcessGroup, as newer releases do; it tests for exact types."""
    if variable := getattr(module, "ProcessGroupVariable", None):
        known = variable.is_process_group
        variable.is_process_group = staticmethod(lambda value: isinstance(value, dist.ProcessGroup) or known(value))


# Somebody imports it, which takes a second: programs that compile nothing do not.
when_imported(_MODULE, _accept_subclasses)
