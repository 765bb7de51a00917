"""Handles defects of the pass: the graph is compiled unchanged, one warning is printed, and a reproducer is saved.

A kernel of the pass that cannot be made is one, too: its collective and its arithmetic run one after the other.
COMMSIR_TORCH_STRICT=1 raises instead, as our tests do.
"""

from __future__ import annotations

import functools
import operator
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx import graph as fx_graph

from commsir._switches import is_off

__all__ = ["program", "report_kernel", "run_contained", "run_guarded"]

_C10D: Any = torch.distributed.distributed_c10d
_Names: Any = fx_graph._Namespace
#: Libraries whose operations are there once torch and this package are imported.
_KNOWN = ("aten", "prims", "prim", "_c10d_functional", "_c10d_functional_autograd", "c10d", "symm_mem", "commsir")
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


def foreign(library, name, overload):
    """An operation of another library. Import that above, and register its collectives as the model does."""
    found = getattr(getattr(torch.ops, library), name, None)
    return unknown if found is None else getattr(found, overload)


'''


def _is_strict() -> bool:
    return bool(os.environ.get("COMMSIR_TORCH_STRICT")) and not is_off("COMMSIR_TORCH_STRICT")


def run_contained(graph: Graph, change: Callable[[], None], settings: str = "") -> str:
    """Runs `change`, which changes the graph. If it raises, restores the graph and returns what went wrong. `settings`
    are the pass's arguments, as source."""
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
        repeat = functools.partial(_repeated_by, "python", lambda: program(graph, settings))
        _warn(said, "The graph is compiled without it", repeat)
        return said


def run_guarded(what: str, change: Callable[[], Any], instead: str = "Calls are written without it") -> bool:
    """Runs an optional step and returns whether it succeeded. The warning says `what` the step does, and what happens
    `instead`."""
    try:
        change()
        return True
    except Exception as error:
        if _is_strict():
            raise
        said = f"{what}: {type(error).__name__}: {error}"
        _warn(said, instead, lambda: "Please report it with the model")
        return False


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


def report_kernel(error: RuntimeError, call: tuple[Any, ...], ranks: int, produce: str = "", sources: int = 0) -> None:
    """Says once that no kernel can be made of a region. `call`: the arguments of `fused_collective` up to `symmetric`;
    `ranks`: of its group. Raises `error` under COMMSIR_TORCH_STRICT=1."""
    if _is_strict():
        raise error
    how = f"torchrun --nproc-per-node {ranks}" if ranks > 1 else "python"
    _warn(
        f"no kernel can be made of {'an' if call[0][0] == 'a' else 'a'} {call[0]} and its arithmetic: {error}",
        "The arithmetic runs after the collective",
        lambda: _repeated_by(how, lambda: kernel_program(call, produce, sources)),
    )


def _repeated_by(how: str, write: Callable[[], str]) -> str:
    """Writes the program that repeats a defect, which `how` runs, and says where it is."""
    try:
        text = write()
        path = Path(tempfile.mkdtemp(prefix="commsir-pass-")) / "repeat.py"
        path.write_text(text, encoding="utf-8")
        return f"`{how} {path}` repeats it; please report it with that file"
    except Exception as error:  # It is about something else.
        return f"no program could be written that repeats it ({error}); please report it with the model"


def _warn(said: str, instead: str, repeats: Callable[[], str]) -> None:
    """Warns once of a defect. `instead`: what is done now; `repeats`: how to repeat it."""
    if said in _told:
        return
    _told.add(said)
    warnings.warn(
        f"commsir: the pass for torch.compile has a defect ({said}). {instead}, and results are right. {repeats()}. "
        "COMMSIR_TORCH_STRICT=1 raises where it happens.",
        RuntimeWarning,
        stacklevel=3,
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
        if target.namespace not in _KNOWN:
            return f"foreign({target.namespace!r}, {target._opname!r}, {target._overloadname!r})"
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


def _groups_of(graph: Graph) -> dict[str, int]:
    """The process groups that are named in the graph, and how many ranks they have."""
    names = {one for node in graph.nodes for one in (*node.args, *node.kwargs.values()) if isinstance(one, str)}
    known = {str(group.group_name): int(group.size()) for group in _C10D._world.pg_map}
    return {name: size for name, size in sorted(known.items()) if name in names}


def program(graph: Graph, settings: str = "") -> str:
    """A program that rebuilds the graph, without its data, and runs the pass with these settings on it."""
    sizes = _groups_of(graph)
    lines = [f'dist.init_process_group("fake", store=FakeStore(), rank=0, world_size={max(sizes.values(), default=1)})']
    lines += [
        f"torch._C._distributed_c10d._register_process_group({name!r}, dist.new_group(list(range({size}))))"
        for name, size in sizes.items()
        if name != "0"
    ]
    lines += map(_line, graph.nodes)
    lines += [f"commsir.torch.CollectivePass({settings}).change(graph)", "print(commsir.torch.report())"]
    return _HEAD + "\n".join(lines) + "\n"


_KERNEL_HEAD = '''"""Repeats that CommsIR makes no kernel of a region. Its data is ones."""

import os

import commsir.torch
import commsir.torch.ops
import torch
import torch.distributed as dist

if "RANK" in os.environ:
    dist.init_process_group("commsir")
else:
    dist.init_process_group("commsir", store=dist.HashStore(), rank=0, world_size=1)


def ones(shape, dtype, device):
    return torch.ones(shape, device=device).to(dtype)


'''


def kernel_program(call: tuple[Any, ...], produce: str, sources: int) -> str:
    """A program that makes the call of `fused_collective` again, on data of the same shapes."""

    def shown(tensor: torch.Tensor) -> str:
        return f'ones({list(tensor.shape)}, {tensor.dtype}, "{tensor.device}")'

    op, source, args, *texts = call
    given = ", ".join(map(shown, args))
    rest = "".join(f"    {text!r},\n" for text in texts)
    tail = f'    dist.group.WORLD.group_name,\n    "",\n    None,\n    {produce!r},\n    {sources},\n'
    head = f"made = torch.ops.commsir.fused_collective(\n    {op!r},\n    {shown(source)},\n    [{given}],\n"
    end = "print([tuple(one.shape) for one in made])\ndist.destroy_process_group()\n"
    return f"{_KERNEL_HEAD}{head}{rest}{tail})\n{end}"
