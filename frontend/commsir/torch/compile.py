"""torch.compile: a collective and the arithmetic after it become one kernel.

    torch.compile(model, options=commsir.torch.compile_options())

An Inductor pass looks for collectives of torch.distributed (functional ones, which compiled code has), takes the
arithmetic that follows as far as a region can hold it, residual additions and norms among it, and puts
`torch.ops.commsir.fused_collective` in their place. `fusions()` says what was fused, what was not, and why.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

import commsir.torch.ops  # noqa: F401  (registers torch.ops.commsir)
from commsir.torch.capi import element_type
from commsir.torch.regions import Region, Unsupported, is_arithmetic

__all__ = ["CollectivePass", "Fusion", "clear_fusions", "compile_options", "disable", "enable", "fusions"]

_log = logging.getLogger("commsir.compile")
_functional = torch.ops._c10d_functional

#: Largest number of results that a kernel writes.
_MOST_OUTPUTS = 4


@dataclass(frozen=True)
class Fusion:
    """What became of one collective of a compiled graph."""

    collective: str
    group: str
    shape: tuple[Any, ...]
    #: The operations that went into the kernel, in order; empty: it stays as it was.
    fused: tuple[str, ...]
    #: Why the region ended where it did, or why there is none.
    because: tuple[str, ...]

    def __str__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        did = f"fused with {', '.join(self.fused)}" if self.fused else "not fused"
        return f"{self.collective} of {shape} over {self.group}: {did}" + "".join(f"\n  {why}" for why in self.because)


_fusions: list[Fusion] = []


def fusions() -> list[Fusion]:
    """What the pass did with each collective that it has met in this process, the oldest first."""
    return list(_fusions)


def clear_fusions() -> None:
    """Forgets what `fusions` tells."""
    _fusions.clear()


# ---------------------------------------------------------------------------------------------------------------------
# Finding regions
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Anchor:
    """A collective in the graph, and the wait for it."""

    node: Node
    wait: Node
    op: str
    reduce_op: str
    #: Its name; a newer torch puts the group itself into a graph that is compiled for several ranks.
    group: Any


def _anchor(node: Node) -> _Anchor | None:
    if node.op != "call_function":
        return None
    a = node.args
    if node.target is _functional.all_reduce.default:
        op, reduce_op, group = "all_reduce", a[1], a[2]
    elif node.target is _functional.reduce_scatter_tensor.default:
        op, reduce_op, group = "reduce_scatter", a[1], a[3]
    elif node.target is _functional.all_gather_into_tensor.default:
        op, reduce_op, group = "all_gather", "", a[2]
    else:
        return None
    waits = [user for user in node.users if user.target is _functional.wait_tensor.default]
    if len(waits) != 1 or len(node.users) != 1:
        return None
    return _Anchor(node, waits[0], op, str(reduce_op), group)


def _begin(anchor: _Anchor) -> Region:
    """The region that holds what arrives and nothing else."""
    source = anchor.node.args[0]
    assert isinstance(source, Node)
    config: Any = torch._inductor.config
    if config.cpp_wrapper:
        raise Unsupported("cpp_wrapper is on, whose code cannot call the fused operation")
    if not isinstance(anchor.group, str):
        raise Unsupported("its group has no name in the graph (torch.compiler.config.compile_on_one_rank)")
    value, result = source.meta["val"], anchor.wait.meta["val"]
    if value.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise Unsupported(f"it is of {value.dtype}: float32, float16 and bfloat16 are taken")
    if anchor.reduce_op not in ("", "sum", "avg", "max", "min"):
        raise Unsupported(f'it reduces by "{anchor.reduce_op}"')
    if value.dim() == 0 or not isinstance(value.shape[-1], int):
        raise Unsupported(f"its last dimension is not known when it is compiled: {list(value.shape)}")
    if value.dim() == 1 and anchor.op != "all_reduce":
        raise Unsupported("it has one dimension, and is cut along it")
    columns = int(value.shape[-1])
    if columns < 2:
        raise Unsupported(f"its rows have {columns} elements: {list(value.shape)}")
    arrives = "f32" if anchor.reduce_op else element_type(value.dtype)
    region = Region(columns, result.numel() // columns, [arrives])
    region.begin(anchor.wait, "%w0", arrives)
    return region


#: Operations that ranks meet in.
_COMMUNICATION = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "commsir", "symm_mem")


def _keeps_its_place(node: Node) -> bool:
    """Whether it begins what other ranks wait for, or does more than give a value."""
    if node.op != "call_function":
        return False
    # Calls of ours in the program are effects.
    effect = node.target is torch.ops.higher_order.with_effects
    return effect or getattr(node.target, "namespace", "") in _COMMUNICATION or node.is_impure()


class _Before:
    """The nodes that are there before a collective begins, or can be moved there. The kernel has to be where that is:
    all ranks begin collectives in one order, but may wait for them, and use their results, in different ones."""

    def __init__(self, graph: Graph, start: Node) -> None:
        self._start = start
        self._places = {node: place for place, node in enumerate(graph.nodes)}
        self._known = {start: False}

    def _is_later(self, node: Node) -> bool:
        return self._places[node] >= self._places[self._start]

    def __contains__(self, node: Node) -> bool:
        waiting = [node]
        while waiting:
            sources = [one for one in waiting[-1].all_input_nodes if self._is_later(one)]
            unknown = [one for one in sources if one not in self._known]
            if unknown and waiting[-1] not in self._known:
                waiting += unknown
                continue
            last = waiting.pop()
            if last not in self._known:
                # To wait earlier than it is written changes nothing.
                moves = last.target is _functional.wait_tensor.default or not _keeps_its_place(last)
                self._known[last] = not self._is_later(last) or moves and all(self._known[one] for one in sources)
        return self._known[node]

    def move(self, nodes: list[Node]) -> None:
        """Puts what is needed for `nodes` before the collective."""
        needed: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if self._is_later(node) and node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        for node in sorted(needed, key=self._places.__getitem__):
            self._start.prepend(node)


def _grow(graph: Graph, anchor: _Anchor, region: Region, before: _Before) -> tuple[list[Node], list[str]]:
    """Adds nodes to the region for as long as it can hold them. Also why it could not hold others."""
    inside: dict[Node, None] = {anchor.wait: None}
    # Nodes that stay outside but need something from inside: what they make cannot be an argument.
    after: set[Node] = set()
    because: list[str] = []
    for node in graph.nodes:
        if node is anchor.wait or not any(source in inside or source in after for source in node.all_input_nodes):
            continue
        if node.op == "output":
            continue
        late = [source for source in node.all_input_nodes if source in after]
        later = [source for source in node.all_input_nodes if source not in inside and source not in before]
        try:
            if late:
                raise Unsupported(f"{node} needs {late[0]}, which comes after the kernel")
            if later:
                raise Unsupported(f"{node} needs {later[0]}, which is there once a later collective has begun")
            region.add(node)
            inside[node] = None
        except Unsupported as why:
            after.add(node)
            if not late:
                because.append(str(why))
    return list(inside), because


def _outputs(inside: list[Node]) -> list[Node]:
    members = set(inside)
    return [node for node in inside if any(user not in members for user in node.users)]


def _prune(inside: list[Node]) -> list[Node]:
    """Without views at the end: they cost nothing outside."""
    kept = list(inside)
    while len(kept) > 1:
        last = [
            node for node in kept[1:] if not any(user in kept for user in node.users) and node.target in _SHAPES_ONLY
        ]
        if not last:
            return kept
        kept = [node for node in kept if node not in last]
    return kept


_SHAPES_ONLY = {
    torch.ops.aten.view.default,
    torch.ops.aten.reshape.default,
    torch.ops.aten._unsafe_view.default,
    torch.ops.aten.unsqueeze.default,
    torch.ops.aten.squeeze.dim,
    torch.ops.aten.alias.default,
}


# ---------------------------------------------------------------------------------------------------------------------
# Putting the kernel in their place
# ---------------------------------------------------------------------------------------------------------------------


def _stored(node: Node) -> str:
    kind = element_type(node.meta["val"].dtype)
    if not kind:
        raise Unsupported(f"{node} is of {node.meta['val'].dtype}, which cannot be stored")
    return kind


def _replace(graph: Graph, anchor: _Anchor, region: Region, inside: list[Node], before: _Before) -> None:
    results = _outputs(inside)
    if len(results) > _MOST_OUTPUTS:
        raise Unsupported(f"{len(results)} of its values are needed elsewhere; a kernel writes {_MOST_OUTPUTS}")
    kinds = [_stored(node) for node in results]
    consume = region.text(list(zip(results, kinds, strict=True)))
    widths = [region.tiles[node].width for node in results]
    source = anchor.node.args[0]
    before.move(region.arguments)
    with graph.inserting_before(anchor.node):
        fused = graph.call_function(
            torch.ops.commsir.fused_collective.default,
            (
                anchor.op,
                source,
                region.arguments,
                anchor.reduce_op,
                consume,
                ",".join(kinds),
                widths,
                False,
                anchor.group,
            ),
        )
        _set_value(fused)
        parts = []
        for number, node in enumerate(results):
            part = graph.call_function(operator.getitem, (fused, number))
            part.meta["val"] = fused.meta["val"][number]
            shape = list(node.meta["val"].shape)
            if list(part.meta["val"].shape) != shape:
                part = graph.call_function(torch.ops.aten.reshape.default, (part, shape))
                part.meta["val"] = node.meta["val"]
            parts.append(part)
    members = set(inside)
    for node, part in zip(results, parts, strict=True):
        node.replace_all_uses_with(part, delete_user_cb=lambda user: user not in members)
    for node in [*reversed(inside), anchor.node]:
        graph.erase_node(node)


def _set_value(node: Node) -> None:
    """What the fake kernel says of the op's results."""

    arguments = map_arg(node.args, lambda one: one.meta["val"])
    mode = torch._guards.detect_fake_mode(arguments)
    assert callable(node.target)
    if mode is None:
        node.meta["val"] = node.target(*arguments)
        return
    with mode:
        node.meta["val"] = node.target(*arguments)


def _sweep(graph: Graph) -> None:
    """Takes out arithmetic without users, which Inductor leaves where it folds: a region of it has no results."""
    for node in reversed(graph.nodes):
        if not node.users and is_arithmetic(node):
            graph.erase_node(node)


def fuse_collectives(graph: Graph) -> int:
    """Fuses what it can; returns the number of kernels."""
    _sweep(graph)
    count = 0
    for node in list(graph.nodes):
        anchor = _anchor(node)
        if anchor is None:
            continue
        done: tuple[str, ...] = ()
        shape = tuple(anchor.wait.meta["val"].shape)
        try:
            region = _begin(anchor)
            before = _Before(graph, anchor.node)
            inside, because = _grow(graph, anchor, region, before)
            inside = _prune(inside)
            if len(inside) == 1:
                raise Unsupported("; ".join(because) or "no arithmetic follows")
            names = tuple(str(one.target).removesuffix(".default") for one in inside[1:])
            _replace(graph, anchor, region, inside, before)
            done, count = names, count + 1
        except Unsupported as why:
            because = [str(why)]
        _fusions.append(Fusion(anchor.op, str(anchor.group), shape, done, tuple(dict.fromkeys(because))))
        _log.info("%s", _fusions[-1])
    if count:
        lint: Any = graph.lint
        lint()
    return count


# ---------------------------------------------------------------------------------------------------------------------
# Inductor
# ---------------------------------------------------------------------------------------------------------------------


class CollectivePass(torch._inductor.custom_graph_pass.CustomGraphPass):
    """The pass, for `torch._inductor.config.post_grad_custom_post_pass`; calls the one that was there first."""

    def __init__(self, before: Any = None) -> None:
        self.before = before
        _lower()

    def __call__(self, graph: Graph) -> None:
        if self.before is not None:
            self.before(graph)
        fuse_collectives(graph)

    def uuid(self) -> Any:
        """For Inductor's cache: changes when the pass does."""
        text = "".join(Path(inspect.getfile(one)).read_text() for one in (Region, Fusion))
        inner = self.before.uuid() if hasattr(self.before, "uuid") else ""
        return hashlib.sha256(f"{text}{inner}".encode()).hexdigest()


_lowered = False


def _lower() -> None:
    """Inductor places the input of a fused collective in symmetric memory, where it decides where it lies."""
    global _lowered
    if _lowered:
        return
    _lowered = True
    from torch._inductor import comm_lowering, ir, virtualized
    from torch._inductor.lowering import add_layout_constraint, constrain_to_fx_strides, register_lowering
    from torch.utils import _pytree as pytree

    op = torch.ops.commsir.fused_collective.default

    def symmetric(x: Any, group: Any) -> bool:
        from torch.distributed._symmetric_memory import is_symm_mem_enabled_for_group

        return (
            x.get_device().type == "cuda"
            and is_symm_mem_enabled_for_group(group)
            and comm_lowering.can_realize_as_comm_buffer(x, ir.CommBufferType.SYMM_MEM)
        )

    add_layout_constraint(op, constrain_to_fx_strides)

    @register_lowering(op, type_promotion_kind=None)
    def _(
        name: str,
        x: Any,
        args: Any,
        reduce_op: str,
        consume: str,
        out_types: str,
        out_columns: Any,
        in_place: bool,
        group: Any,
    ) -> Any:
        if symmetric(x, group):
            comm_lowering.realize_as_comm_buffer(x, ir.CommBufferType.SYMM_MEM, group)
            in_place = True
        graph: Any = virtualized.V.graph
        there = len(graph.operations)
        made = ir.FallbackKernel.create(op, name, x, args, reduce_op, consume, out_types, out_columns, in_place, group)
        if graph.current_node.target is op:  # else its effect, of a call in the program, is seen to
            _keep_order(graph, graph.operations[there:])
        return pytree.tree_map(ir.TensorBox.create, made)


def _keep_order(graph: Any, operations: list[Any]) -> None:
    """The scheduler, too, keeps the order of what ranks meet in: as it does for operations with effects."""
    if not hasattr(graph, "effectful_ops") or not hasattr(graph, "additional_star_deps"):
        return  # another torch
    effect = torch._library.effects.EffectType.ORDERED
    last = graph.effectful_ops.get(effect)
    for operation in operations:
        operation.has_side_effects = lambda: True
        if last is not None:
            graph.additional_star_deps[operation.get_name()].add(last.get_name())
        graph.effectful_ops[effect] = operation


#: Passes that torch calls with more than the graph; () where it has no such kind, or takes one pass alone.
_AWARE: Any = getattr(torch._inductor.custom_graph_pass, "CustomInferenceAwareGraphPass", ())
if not hasattr(torch._inductor.custom_graph_pass, "get_custom_graph_passes"):
    _AWARE = ()


def _behind(before: Any) -> Any:
    """The pass, after what is there already: one pass or, for a newer torch, several, which that calls itself."""
    if isinstance(before, (list, tuple)):
        return [*before, CollectivePass()]
    return [before, CollectivePass()] if isinstance(before, _AWARE) else CollectivePass(before)


def compile_options(**options: Any) -> dict[str, Any]:
    """Options for torch.compile with the pass among them; `options` are Inductor's other ones."""
    before = options.pop("post_grad_custom_post_pass", None)
    return {**options, "post_grad_custom_post_pass": _behind(before)}


def enable() -> None:
    """Adds the pass to every torch.compile of this process from now on."""
    config: Any = torch._inductor.config
    there = config.post_grad_custom_post_pass
    if not any(isinstance(one, CollectivePass) for one in (there if isinstance(there, (list, tuple)) else [there])):
        config.post_grad_custom_post_pass = _behind(there)


def disable() -> None:
    """Undoes `enable`."""
    config: Any = torch._inductor.config
    there = config.post_grad_custom_post_pass
    if isinstance(there, CollectivePass):
        config.post_grad_custom_post_pass = there.before
    elif isinstance(there, (list, tuple)):
        config.post_grad_custom_post_pass = [one for one in there if not isinstance(one, CollectivePass)]
