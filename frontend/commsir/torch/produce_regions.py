"""Arithmetic before a collective as its `produce` region: casts, scales, quantization and norms of the data to send.

The region ends at the collective's input and grows towards the graph's inputs, for as long as nobody else reads what it
makes. What somebody else reads too is made once, outside, and the region begins with it.

Where all that reads the result of an all_gather or all_to_all casts it to a smaller type, as autocast does in front of
matmuls, the region is that cast: less travels.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.capi import element_type
from commsir.torch.collectives import Collective
from commsir.torch.matmul import model
from commsir.torch.regions import CASTS, Argument, Region, Unsupported, is_arithmetic, moves_nothing
from commsir.torch.reporting import described, operation_names

__all__ = ["Produced", "narrow", "narrowed_type", "produce"]

_WAIT = torch.ops._c10d_functional.wait_tensor.default
_CLONE = torch.ops.aten.clone.default
#: What Inductor computes in the kernel of the arithmetic after it, and no region holds.
_LOOKUPS = (torch.ops.aten.embedding.default, torch.ops.aten.index.Tensor)
#: How many nodes a region takes at most.
_MOST_NODES = 64


@dataclass(frozen=True)
class Produced:
    """A region that computes the data that a collective sends."""

    region: Region
    #: The collective's input, and the type in which it travels.
    source: Node
    dtype: torch.dtype
    #: The region's nodes in the graph's order; the last is the collective's input. None, where that is cast alone.
    inside: tuple[Node, ...]
    #: A row of the first is the kernel's input; it also reads the others.
    arguments: tuple[Argument, ...]
    #: What the kernel gains by it, in µs. None: the model has no figure.
    gain: float | None

    @property
    def text(self) -> str:
        return self.region.text([(self.source, element_type(self.dtype))], first=self.arguments[0])

    @property
    def is_cast(self) -> bool:
        """Whether the program's collective is of another type: that of `source`."""
        return not self.inside

    @property
    def names(self) -> tuple[str, ...]:
        if self.is_cast:
            return ("prims.convert_element_type",)
        return operation_names(filter(_is_work, self.inside))


def _is_work(node: Node) -> bool:
    return not moves_nothing(node) and node.target is not _CLONE


def _may_write(node: Node) -> bool:
    """Whether the node may write into a tensor that is read before it."""
    if node.op != "call_function":
        return False
    schema = getattr(node.target, "_schema", None)
    return bool(schema.is_mutable) if schema is not None else isinstance(node.target, torch._ops.HigherOrderOperator)


def _movable(graph: Graph, end: Node) -> dict[Node, None]:
    """Returns the nodes before `end` that would read the same values there."""
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if node is end:
            break
        if _may_write(node):
            found.clear()
        else:
            found[node] = None
    return found


def _is_taken(node: Node) -> bool:
    if node.target is operator.getitem:
        return is_arithmetic(node.all_input_nodes[0]) and node.all_input_nodes[0].target is not operator.getitem
    return (is_arithmetic(node) or moves_nothing(node)) and node.target is not _WAIT


def _chain(source: Node, end: Node, movable: dict[Node, None], refused: dict[Node, str]) -> list[Node]:
    """The nodes that compute `source` and whose results have no other readers, in the graph's order."""
    inside: dict[Node, None] = {}
    waiting = [source]
    while waiting and len(inside) < _MOST_NODES:
        node = waiting.pop()
        if node in inside or node in refused or node not in movable or not _is_taken(node):
            continue
        if all(user is end or user in inside for user in node.users):
            inside[node] = None
            waiting += node.all_input_nodes
    return [node for node in movable if node in inside]


def _translated(chain: Sequence[Node], collective: Collective, columns: int, refused: dict[Node, str]) -> Region | None:
    """Returns the region of a chain, or None and adds the reason to `refused`."""
    value = chain[-1].meta["val"]
    region = Region(columns, value.numel() // columns, [], device=value.device)
    for node in chain:
        try:
            region.add(node)
        except Unsupported as why:
            refused[node] = str(why)
            return None
    return region


def _first(region: Region) -> Argument | None:
    """The argument that has a whole row for each row of the result."""
    rows = (one for one in region.arguments if one.width == region.columns and not one.for_all and one.copied is None)
    return next(rows, None)


def _unsupported_reason(source: Node, end: Node, movable: dict[Node, None], refused: dict[Node, str]) -> str:
    """Returns why the node that computes the collective's input is not fused; empty if it is not arithmetic."""
    if source in refused:
        return f"produce: {refused[source]}"
    if not _is_taken(source) or not _is_work(source):
        return ""
    others = [user for user in source.users if user is not end]
    if others:
        return f"produce: {described(source)} is needed by {described(others[0])} as well"
    if source in movable:
        return ""
    return f"produce: what {described(source)} reads may be written before the collective begins"


def _gain(region: Region, chain: Sequence[Node]) -> float | None:
    """Time saved in µs: a kernel that writes the data to send, and reading it. Values that other kernels computed on
    the way must then be written."""
    value = chain[-1].meta["val"]
    read = [one.node for one in region.arguments if _is_taken(one.node) or one.node.target in _LOOKUPS]
    made = [node.meta["val"] for node in read if all(user in chain for user in node.users)]
    values: list[Any] = [value, *made]
    if value.device.type != "cuda" or not all(isinstance(size, int) for one in values for size in one.shape):
        return None
    sizes = [one.numel() * one.dtype.itemsize for one in values]
    return model.produce_gain(sizes[0], sum(sizes[1:]))


def produce(graph: Graph, collective: Collective, columns: int) -> tuple[Produced | None, str]:
    """Returns the region for rows of `columns` elements, or the reason why there is none.

    Without a reason, no arithmetic precedes the collective.
    """
    end = collective.node
    source = end.args[0]
    assert isinstance(source, Node)
    movable, refused = _movable(graph, end), dict[Node, str]()
    region = None
    while region is None:
        chain = _chain(source, end, movable, refused)
        if not any(map(_is_work, chain)):
            return None, _unsupported_reason(source, end, movable, refused)
        region = _translated(chain, collective, columns, refused)
    first = _first(region)
    if first is None:
        return None, f"produce: nothing that {described(source)} is made of has its rows"
    if region.tiles[source].width != columns:
        return None, f"produce: rows of {described(source)} are made of one element each"
    gain = _gain(region, chain)
    if gain is not None and gain <= 0:
        made = f"{described(chain[0])} is made in passing by the kernel before it"
        cost = f"take {-gain:.1f} µs more" if gain <= -0.05 else "not be faster"
        return None, f"produce: {made}: fused, it would {cost}"
    rest = [one for one in region.arguments if one is not first]
    return Produced(region, source, source.meta["val"].dtype, tuple(chain), (first, *rest), gain), ""


# ---------------------------------------------------------------------------------------------------------------------
# Smaller types
# ---------------------------------------------------------------------------------------------------------------------

#: What float32 is rounded to, once, before or after it has travelled.
_SMALLER = (torch.bfloat16, torch.float16)


def _readers(node: Node) -> list[Node]:
    """What reads a value, past views."""
    return [one for user in node.users for one in (_readers(user) if moves_nothing(user) else [user])]


def narrowed_type(collective: Collective) -> torch.dtype | None:
    """The smaller type that everything which reads the collective's result casts it to; None: there is none."""
    if collective.op not in ("all_gather", "all_to_all") or not collective.whole:
        return None
    if collective.node.meta["val"].dtype is not torch.float32:
        return None
    readers = _readers(collective.node)
    types = {node.meta["val"].dtype if node.target in CASTS else None for node in readers}
    (dtype,) = types if len(types) == 1 else (None,)
    return dtype if dtype in _SMALLER else None


def narrow(collective: Collective, columns: int) -> Produced:
    """The region that casts rows of `columns` elements to the type that travels. Raises Unsupported."""
    source = collective.node.args[0]
    assert isinstance(source, Node) and collective.sent is not None
    value = source.meta["val"]
    region = Region(columns, value.numel() // columns, [], device=value.device)
    region.begin_node(value.shape)
    region.tiles[source] = region.argument(source)
    return Produced(region, source, collective.sent, (), tuple(region.arguments), None)
