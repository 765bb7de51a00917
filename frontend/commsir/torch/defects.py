"""Handles defects of the pass: the graph is compiled unchanged, one warning is printed, and a reproducer is saved.

COMMSIR_TORCH_STRICT=1 raises instead, as our tests do.
"""

from __future__ import annotations

import operator
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx import graph as fx_graph

__all__ = ["run_contained", "program"]

_C10D: Any = torch.distributed.distributed_c10d
_Names: Any = fx_graph._Namespace
#: What has been warned of.
_told: set[str] = set()

_HEAD = '''"""Repeats a defect of CommsIR's pass for torch.compile, in one process and without data."""

import operator

import commsir.torch
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

mode = FakeTensorMode()
graph = torch.fx.Graph()


def tensor(shape, stride, dtype, device):
    with mode:
        return torch.empty_strided(shape, stride, dtype=dtype, device=device)


def made(node, value):
    node.meta["val"] = value
    return node


def unknown(*arguments):
    """Stands for a function that has no name in torch.ops."""


'''


def _is_strict() -> bool:
    return os.environ.get("COMMSIR_TORCH_STRICT") == "1"


def run_contained(graph: Graph, change: Callable[[], None], groups: Iterable[str]) -> str:
    """Runs `change`, which changes the graph. Where it raises, the graph is as it was, and what went wrong is returned;
    `groups`: the names of the process groups that the graph's collectives are over."""
    if _is_strict():
        change()
        return ""
    saved, values = Graph(), dict[Node, Node]()
    output = saved.graph_copy(graph, values)
    try:
        change()
        return ""
    except Exception as error:
        _restore(graph, saved, output)
        said = f"{type(error).__name__}: {error}"
        _report(said, graph, groups)
        return said


def _restore(graph: Graph, saved: Graph, output: Any) -> None:
    meta = dict(graph.output_node().meta)
    for node in reversed(graph.nodes):
        node.args, node.kwargs = (), {}
    for node in list(graph.nodes):
        graph.erase_node(node)
    graph._graph_namespace = _Names()  # Nodes get the names that they had.
    values: dict[Node, Node] = {}
    graph.graph_copy(saved, values)
    made = graph.output(torch.fx.node.map_arg(output, values.__getitem__))
    made.meta.update(meta)
    graph.lint()  # type: ignore[no-untyped-call, unused-ignore]


def _report(said: str, graph: Graph, groups: Iterable[str]) -> None:
    if said in _told:
        return
    _told.add(said)
    try:
        path = Path(tempfile.mkdtemp(prefix="commsir-pass-")) / "repeat.py"
        path.write_text(program(graph, groups))
        how = f"`python {path}` repeats it; please report it with that file"
    except Exception as error:  # It is about something else.
        how = f"no program could be written that repeats it ({error}); please report it with the model"
    warnings.warn(
        f"commsir: the pass for torch.compile has a defect ({said}). The graph is compiled without it, and results are "
        f"right. {how}. COMMSIR_TORCH_STRICT=1 raises where it happens.",
        RuntimeWarning,
        stacklevel=2,
    )


# ---------------------------------------------------------------------------------------------------------------------
# The program
# ---------------------------------------------------------------------------------------------------------------------


def _as_source(value: Any) -> str:
    """Returns Python source that creates a node's value or an argument."""
    if isinstance(value, torch.Tensor):
        sizes = [[int(size) for size in sizes] for sizes in (value.shape, value.stride())]
        return f'tensor({sizes[0]}, {sizes[1]}, {value.dtype}, "{value.device}")'
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_as_source, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if inner else "()"
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return repr(value.node.hint)
    if isinstance(value, float):
        return f'float("{value}")'
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    return value.name if isinstance(value, Node) else repr(value)


def _target(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target.namespace}.{target._opname}.{target._overloadname}"
    is_operator = getattr(operator, getattr(target, "__name__", ""), None) is target
    return f"operator.{target.__name__}" if is_operator else "unknown"


def _line(node: Node) -> str:
    if node.op == "output":
        return f"graph.output({_as_source(node.args[0])})"
    if node.op != "call_function":
        return f"{node.name} = made(graph.placeholder({node.name!r}), {_as_source(node.meta.get('val'))})"
    named = ", ".join(f"{key!r}: {_as_source(value)}" for key, value in node.kwargs.items())
    call = f"graph.call_function({_target(node.target)}, {_as_source(node.args)}, {{{named}}})"
    return f"{node.name} = made({call}, {_as_source(node.meta.get('val'))})"


def program(graph: Graph, groups: Iterable[str]) -> str:
    """A program that rebuilds the graph, without its data, and runs the pass on it."""
    sizes = {name: int(_C10D._resolve_process_group(name).size()) for name in sorted(set(groups))}
    lines = [f'dist.init_process_group("fake", store=FakeStore(), rank=0, world_size={max(sizes.values(), default=1)})']
    lines += [
        f"torch._C._distributed_c10d._register_process_group({name!r}, dist.new_group(list(range({size}))))"
        for name, size in sizes.items()
        if name != "0"
    ]
    lines += map(_line, graph.nodes)
    lines += ["commsir.torch.CollectivePass().change(graph)", "print(commsir.torch.report())"]
    return _HEAD + "\n".join(lines) + "\n"
