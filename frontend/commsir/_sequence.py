"""The checker on launches of several kernels, and on what the host does between them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from commsir import _native, errors
from commsir._kernel import Kernel
from commsir.language import diagnostics, python_terms

# The places of ops in a kernel's text, which are numbered in each.
_PLACE = re.compile(r"((?:\bloc\(|^)#)(l\d+\b)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class HostAccess:
    """What the host of each rank does with its own part of a memory between two launches."""

    #: "read" or "write".
    does: str
    #: A window or array of the kernels.
    memory: str

    def __str__(self) -> str:
        return errors.printable(f"{self.does} {self.memory}")


def host_read(memory: str) -> HostAccess:
    """The host of each rank reads its own part of the window or array `memory`, in `check([…])`."""
    return HostAccess("read", memory)


def host_write(memory: str) -> HostAccess:
    """The host of each rank writes its own part of the window or array `memory`, in `check([…])`."""
    return HostAccess("write", memory)


class _Module:
    """The text of the kernels, and the names that they have there."""

    def __init__(self) -> None:
        self.kernels: list[tuple[Kernel, Kernel]] = []
        self.names: list[str] = []
        self.bodies: list[str] = []
        self.places: list[str] = []

    def name(self, kernel: Kernel, ranks: int, blocks: int | None) -> str:
        for (known, _), name in zip(self.kernels, self.names, strict=True):
            if known is kernel:
                return name
        closed = kernel._with(ranks or None, blocks)._closed("check")
        number = len(self.names)
        name = kernel.__name__ if kernel.__name__ not in self.names else f"{kernel.__name__}_{number + 1}"
        text = _PLACE.sub(rf"\g<1>k{number}\2", closed.text())
        body, _, places = text.removeprefix("module {\n").rpartition("\n}\n")
        self.kernels.append((kernel, closed))
        self.names.append(name)
        self.bodies.append(body.replace(f"@{kernel.__name__}(", f"@{name}(", 1))
        self.places.append(places)
        return name

    @property
    def text(self) -> str:
        return "\n".join(["module {", *self.bodies, "}", *self.places])


def _turn(turn: Any, module: _Module, ranks: int, blocks: int | None) -> str:
    """A launch as the library takes it: "b(x=inbox)"."""
    if isinstance(turn, HostAccess):
        return str(turn)
    kernel, memory = turn if isinstance(turn, tuple) and len(turn) == 2 else (turn, {})
    if not isinstance(kernel, Kernel) or not isinstance(memory, Mapping):
        raise errors.UsageError(
            f"the order of launches has {turn!r}: it is a list of kernels, of tuples (kernel, "
            "{argument: memory}), and of host_read(…) and host_write(…)"
        )
    for name in memory:
        if name not in kernel.parameters:
            hint = diagnostics.did_you_mean(str(name), kernel.parameters) or f"it has {', '.join(kernel.parameters)}"
            raise errors.UsageError(f"{kernel.__name__} has no parameter '{name}'; {hint}")
    bound = ", ".join(f"{name}={known}" for name, known in memory.items())
    name = module.name(kernel, ranks, blocks)
    return f"{name}({bound})" if bound else name


def check(
    source: str | Sequence[Any], *, ranks: int = 0, launches: int = 0, any_order: bool = False, **options: Any
) -> _native.CheckReport:
    """Lowers a kernel, or several, and checks them for deadlocks and data races. Raises CheckError if one is refuted.

    Otherwise the report has the verdict, "proven" or "not decided", what the checker followed, its assumptions, and its
    reasons. `launches` is how many launches the proof follows, at most 64. With 0 it follows as many as are needed to
    see what reused memory does. `ranks` is the number of ranks (0: the kernel's own). `options` are those of
    `compile_ir`.

    `source` is a kernel in MLIR; or a list of launches of kernels in Python, which every rank makes in this order again
    and again, or with `any_order` in every order. A launch is a kernel; a tuple of a kernel and a dict from its
    parameters to names of memory, where those differ; or `host_read(name)` or `host_write(name)`, for what the host of
    each rank does between launches with its own part. Windows, arrays, signals and counters of one name are the same
    memory.
    """
    if isinstance(source, str | bytes):
        if any_order:
            raise errors.UsageError("any_order is of launches of several kernels: check([a, b], any_order=True)")
        return _native.check(cast(str, source), ranks=ranks, launches=launches, **options)
    if not isinstance(source, Sequence) or not source:
        raise errors.UsageError(f"check takes a kernel in MLIR or a list of kernels, not {source!r}")
    return _check_launches(source, ranks, launches, any_order, **options)


def _check_launches(
    turns: Sequence[Any], ranks: int, launches: int, any_order: bool, blocks: int | None = None, **options: Any
) -> _native.CheckReport:
    module = _Module()
    listed = ", ".join([_turn(turn, module, ranks, blocks) for turn in turns])
    if not module.kernels:
        raise errors.UsageError("the order of launches has no kernel")
    first = module.kernels[0][1]
    options |= {"blocks": blocks} if blocks else {}
    with diagnostics.in_terms_of(first):
        report = _native.check(
            module.text,
            ranks=ranks or first.attributes.get("ranks", 0),
            launches=launches,
            file=diagnostics.GENERATED,
            order=f"any of {listed}" if any_order else listed,
            **options,
        )
    reasons = tuple(map(python_terms.in_python, report.proof.reasons))
    return dataclasses.replace(report, proof=dataclasses.replace(report.proof, reasons=reasons))
