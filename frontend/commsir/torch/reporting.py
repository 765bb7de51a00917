"""Results of the torch.compile pass for each collective, as data and as a table.

One list holds an entry per collective of each compiled graph. `fusions()` and `report()` both read it.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import torch
from torch.fx import Graph, Node

from commsir.errors import printable

__all__ = [
    "Fusion",
    "Report",
    "clear_fusions",
    "copy_source",
    "described",
    "drop",
    "fusions",
    "graph_name",
    "note",
    "operation_names",
    "report",
    "set_measured",
    "source_of",
]


@dataclass(frozen=True)
class Fusion:
    """The pass's result for one collective of a compiled graph."""

    collective: str
    group: str
    shape: tuple[Any, ...]
    #: The operations that went into the kernel, in order; empty: it stays as it was.
    fused: tuple[str, ...]
    #: Why the region ended where it did, or why there is none.
    because: tuple[str, ...]
    #: How many collectives of the program this one stands for.
    joined: int = 1
    #: The element type of the result, as torch spells it, without "torch.".
    dtype: str = ""
    #: The graph it is in: its number since `clear_fusions()`, or in this process, and "forward" or "backward".
    graph: str = ""
    #: The line of the model that asks for it, "file:line: code", and the module it belongs to; empty: unknown.
    source: str = ""
    module: str = ""
    #: What the fusion gains in each call, in µs, by the model (docs/TorchCompile.md). None: the model has no figure,
    #: as for CPU tensors.
    predicted: float | None = None
    #: The same as `measure` found it. None: not measured.
    measured: float | None = None
    #: The operations that the kernel does before it sends, in order.
    produced: tuple[str, ...] = ()
    #: What to run to measure it (measuring.Call). None: nothing to measure.
    call: Any = field(default=None, repr=False, compare=False)

    @property
    def is_changed(self) -> bool:
        """Whether a CommsIR kernel, or one collective for several, replaces it."""
        return bool(self.fused or self.produced) or self.joined > 1

    def __str__(self) -> str:
        did = ("fused with " if self.fused else "") + _into(self) if self.fused or self.produced else "not fused"
        if self.joined > 1:
            did = f"one in place of {self.joined}, {did}"
        where = f"{self.collective} of {_sizes(self.shape)} over {self.group}"
        return printable(f"{where}: {did}" + "".join(f"\n  {why}" for why in self.because))


def _into(one: Fusion) -> str:
    """The operations of both regions."""
    consumed, produced = ", ".join(one.fused), ", ".join(one.produced)
    return "; ".join([*([consumed] if consumed else []), *([f"produce: {produced}"] if produced else [])])


def _sizes(shape: tuple[Any, ...]) -> str:
    return "x".join(str(size) for size in shape)


class Report(Sequence[Fusion]):
    """The entries, oldest first. `str` gives a table, `as_dicts` plain data."""

    def __init__(self, entries: Sequence[Fusion]) -> None:
        self._entries = tuple(entries)

    @overload
    def __getitem__(self, index: int) -> Fusion: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Fusion]: ...

    def __getitem__(self, index: int | slice) -> Fusion | Sequence[Fusion]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def as_dicts(self) -> list[dict[str, Any]]:
        """One dictionary an entry, with what JSON holds: symbolic sizes become strings."""
        regions = ("fused", "produced", "because")
        names = ("graph", "collective", "group", "dtype", "joined", *regions, "predicted", "measured")
        return [
            {
                **{name: getattr(one, name) for name in names},
                "shape": [size if isinstance(size, int) else str(size) for size in one.shape],
                "source": one.source,
                "module": one.module,
            }
            for one in self._entries
        ]

    def __str__(self) -> str:
        if not self._entries:
            return (
                "no collectives: no graph went through the pass in this process (graphs from Inductor's cache do not)"
            )
        return printable("\n".join(line for graph in self._graphs() for line in _lines_of(*graph)))

    def _graphs(self) -> Iterator[tuple[str, list[Fusion]]]:
        for name in dict.fromkeys(one.graph for one in self._entries):
            yield name, [one for one in self._entries if one.graph == name]


_HEADS = ("collective", "of", "fused with", "gain (µs)", "measured", "from")


def _lines_of(name: str, entries: list[Fusion]) -> Iterator[str]:
    changed = sum(one.is_changed for one in entries)
    saved = sum(one.joined - 1 for one in entries)
    yield f"graph {name}: {len(entries)} collectives, {changed} fused" + (f", {saved} saved" if saved else "")
    alike: dict[Any, list[Fusion]] = {}
    for one in entries:
        alike.setdefault(_likeness(one), []).append(one)
    rows = [_HEADS, *(_cells(one, 1 + len(more)) for one, *more in alike.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADS))]
    reasons = [(), *(some[0].because for some in alike.values())]
    for row, because in zip(rows, reasons, strict=True):
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield from (f"      {why}" for why in because)


def _likeness(one: Fusion) -> Any:
    """The same for what a model's layers have in common: names of nodes and modules differ in numbers alone."""
    because, module = re.sub(r"_\d+\b", "", "; ".join(one.because)), re.sub(r"\d+", "#", one.module)
    gains = tuple(map(_microseconds, (one.predicted, one.measured)))
    kind = (one.collective, _sizes(one.shape), one.dtype, one.joined)
    return kind, one.fused, one.produced, because, one.source, module, gains


def _cells(one: Fusion, count: int) -> tuple[str, ...]:
    """The cells of so many collectives that are alike."""
    into = _into(replace(one, fused=_shortened(one.fused), produced=_shortened(one.produced))) or "-"
    return (
        (f"{count} x " if count > 1 else "") + one.collective + (f" (for {one.joined})" if one.joined > 1 else ""),
        f"{_sizes(one.shape)} {one.dtype}",
        into,
        _microseconds(one.predicted),
        _microseconds(one.measured),
        one.source or one.module or "-",
    )


def _shortened(names: tuple[str, ...], most: int = 6) -> tuple[str, ...]:
    kept = tuple(re.sub(r"^(aten|prims)\.|\.\w+$", "", name) for name in names)
    return kept if len(kept) <= most else (*kept[: most - 1], f"{len(kept) - most + 1} more")


def _microseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


# ---------------------------------------------------------------------------------------------------------------------
# The list
# ---------------------------------------------------------------------------------------------------------------------

_entries: list[Fusion] = []
_graphs = 0


def note(entry: Fusion) -> None:
    """Adds an entry."""
    _entries.append(entry)


def drop(count: int) -> None:
    """Forgets all entries but the first `count`."""
    del _entries[count:]


def set_measured(number: int, gain: float) -> None:
    """Sets the measured gain of an entry, in µs per call."""
    _entries[number] = replace(_entries[number], measured=gain)


def fusions() -> list[Fusion]:
    """The pass's results for all collectives in this process, oldest first."""
    return list(_entries)


def report() -> Report:
    """Each collective of each graph that this process has compiled: what it is fused with, what that gains, or why it
    is left, and the line of the model that asks for it. Print it for a table; `as_dicts()` gives data."""
    return Report(_entries)


def clear_fusions() -> None:
    """Clears the data of `fusions` and `report`, which then number graphs from 0 again."""
    global _graphs
    _entries.clear()
    _graphs = 0


def graph_name(graph: Graph) -> str:
    """Returns a name for the next graph that the pass processes."""
    global _graphs
    _graphs += 1
    given = [node.name for node in graph.nodes if node.op == "placeholder"]
    return f"{_graphs - 1}, {'backward' if any(name.startswith('tangents') for name in given) else 'forward'}"


# ---------------------------------------------------------------------------------------------------------------------
# Where it comes from
# ---------------------------------------------------------------------------------------------------------------------

#: File, line, function and code, which generated code has not.
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in ([^\n]*)(?:\n[ \t]*(?!File "|[ \t])([^\n]*))?')
#: What `source_of` reads of a node.
_SOURCE = ("stack_trace", "nn_module_stack", "fwd_nn_module_stack")
_TORCH = os.path.dirname(torch.__file__)


def source_of(node: Node) -> tuple[str, str]:
    """The line of the program that makes the node, "file:line: code", and the module whose call it is in. Dynamo keeps
    no frames of code that `exec` made: the line is that of its caller, or empty."""
    written = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    own = [frame for frame in written if not frame[0].startswith(_TORCH)]
    # Libraries put collectives around the calls of modules: the line is that of the module which makes the call.
    forwards = [frame for frame in own if frame[2] == "forward"]
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    modules = list(stack.values()) if isinstance(stack, dict) else []
    # Any other forward is that of an autograd function. The module that is compiled is not in the stack.
    frames = forwards or own
    found = (_frames_of(value[1], frames) for value in reversed(modules))
    own = next(filter(None, found), frames if modules else forwards[:1]) or own
    line = f"{os.path.basename(own[-1][0])}:{own[-1][1]}: {own[-1][3].strip()}" if own else ""
    names = [str(value[0]) for value in modules]
    return line, re.sub(r"^L\['(\w+)'\]\.?|_modules\[?'?|'\]", r"", names[-1]) if names else ""


def copy_source(node: Node, made: Node) -> None:
    """The line of a node becomes that of one made in its place."""
    made.meta.update({key: node.meta[key] for key in _SOURCE if key in node.meta})


def described(node: Node) -> str:
    """The operation that makes a value, and the line of the program that asks for it: "aten.relu at model.py:7"."""
    if node.op == "placeholder":
        return f"an input of the graph{_shape_of(node)}"
    if node.op == "output":
        return "the program's result"
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return described(node.args[0])
    place = ":".join(source_of(node)[0].split(":")[:2])
    # Calls with effects have the operation among their arguments.
    called = [one for one in (node.target, *node.args[:2]) if isinstance(one, torch._ops.OpOverload)]
    name = str(called[0]).removesuffix(".default") if called else getattr(node.target, "__name__", str(node.target))
    if name == "commsir.fused_collective":  # The program knows only the collective that the kernel has replaced.
        name = str(node.args[0])
    return f"{name} at {place}" if place else name


def operation_names(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The names of the operations, "aten.relu", in order. Taking one of several results is none."""
    return tuple(str(one.target).removesuffix(".default") for one in nodes if one.target is not operator.getitem)


def _shape_of(node: Node) -> str:
    value = node.meta.get("val")
    return f" of shape {[*value.shape]}" if isinstance(value, torch.Tensor) else ""


def _frames_of(kind: Any, frames: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The frames of the forward of a class of modules, which Dynamo gives as such or by name; if there are none, those
    in its file."""
    module, _, name = (kind.__module__, "", "") if isinstance(kind, type) else str(kind).rpartition(".")
    defined = kind if isinstance(kind, type) else getattr(sys.modules.get(module), name, None)
    code = getattr(inspect.unwrap(getattr(defined, "forward", _frames_of)), "__code__", None)
    lines = {line for _, _, line in code.co_lines()} if code else set()
    its = [frame for frame in frames if code and frame[0] == code.co_filename and int(frame[1]) in lines]
    file = str(getattr(sys.modules.get(module), "__file__", None))
    return its or [frame for frame in frames if frame[0] == file]
