"""Weights that a kernel brings into the L2 cache: those of the matmuls that read its results next.

While ranks wait for each other, the memory of a GPU idles. An argument of a fused collective that its region does not
read is prefetched there (docs/Spec.md, "Rows and tiles of a collective").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.capi import element_type
from commsir.torch.collectives import set_value
from commsir.torch.regions import is_arithmetic, moves_nothing

__all__ = ["Weight", "emit", "weights_behind"]

_aten: Any = torch.ops.aten
#: The operand of each kind of matmul that is its weight, where the other comes from a collective.
_WEIGHTS = {
    _aten.mm.default: 1,
    _aten.addmm.default: 2,
    _aten.bmm.default: 1,
    _aten._scaled_mm.default: 1,
    _aten._scaled_mm_v2.default: 1,
}
#: Bytes that a kernel prefetches at most: an H100 has 50 MiB of L2, and the activations need some.
_MOST_BYTES = 32 << 20
#: How many nodes behind a kernel are looked at.
_MOST_LOOKED_AT = 64


@dataclass(frozen=True)
class Weight:
    """The first `count` elements of an input of the graph, which lies in one piece."""

    node: Node
    count: int

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.node.meta["val"].dtype
        return dtype


def _stored(node: Any) -> Node | None:
    """The input of the graph that an operand is a view of, in any order of dimensions; None: it is another's result."""
    views = (_aten.permute.default, _aten.t.default, _aten.transpose.int)
    while isinstance(node, Node) and (moves_nothing(node) or node.target in views):
        node = node.args[0]
    if not isinstance(node, Node) or node.op not in ("placeholder", "get_attr"):
        return None
    value = node.meta.get("val")
    known = isinstance(value, torch.Tensor) and all(isinstance(size, int) for size in value.shape)
    return node if known and value.is_contiguous() and element_type(value.dtype) else None  # type: ignore[union-attr]


def _matmuls_behind(results: Iterable[Node]) -> list[Node]:
    """Those that read the results, or what follows from them by arithmetic alone; the nearest first."""
    waiting = list(results)
    seen, found = set(waiting), list[Node]()
    for node in waiting:
        for user in node.users if len(seen) < _MOST_LOOKED_AT else ():
            if user in seen:
                continue
            seen.add(user)
            if user.target in _WEIGHTS:
                found.append(user)
            elif is_arithmetic(user) or moves_nothing(user):
                waiting.append(user)
    return found


def weights_behind(results: Iterable[Node]) -> list[Weight]:
    """The weights of the matmuls that read `results`, up to 32 MiB: of the last one, a part."""
    left, weights = _MOST_BYTES, dict[Node, Weight]()
    for matmul in _matmuls_behind(results):
        stored = _stored(matmul.args[_WEIGHTS[matmul.target]])
        if stored is None or stored in weights:
            continue
        value = stored.meta["val"]
        count = min(value.numel(), left // value.element_size())
        if count:
            weights[stored] = Weight(stored, count)
        left -= count * value.element_size()
    return list(weights.values())


def emit(graph: Graph, weight: Weight) -> Node:
    """The weight as an argument of one dimension: a view."""
    flat = graph.call_function(_aten.reshape.default, (weight.node, [-1]))
    set_value(flat)
    if weight.count == weight.node.meta["val"].numel():
        return flat
    part = graph.call_function(_aten.slice.Tensor, (flat, 0, 0, weight.count))
    set_value(part)
    return part
