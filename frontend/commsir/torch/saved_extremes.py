"""What a forward graph may not put into a kernel, because its backward graph compares it with an extreme.

The gradient of amax goes to the elements that equal it. The backward graph computes these elements again from what the
forward graph saves. If a kernel has computed the extreme from elements with other bits, none equals it, and the
gradient is 0 / 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.regions import moves_nothing
from commsir.torch.reporting import described

__all__ = ["compared_again"]

_aten: Any = torch.ops.aten
_EXTREMES = (_aten.amax.default, _aten.amin.default, _aten.max.default, _aten.min.default)
_SUMS = (_aten.add.Tensor, _aten.add.Scalar, _aten.sub.Tensor, _aten.sub.Scalar)
#: These have the same bits wherever they are computed. Compilers may join a product and a sum.
_EXACT = {
    *(*_EXTREMES, *_SUMS, _aten.mul.Tensor, _aten.mul.Scalar, _aten.neg.default, _aten.abs.default),
    *(_aten.relu.default, _aten.where.self, _aten.maximum.default, _aten.minimum.default),
    *(_aten.clamp.default, _aten.clamp_min.default, _aten.clamp_max.default),
    *(getattr(_aten, name).Scalar for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(getattr(_aten, name).Tensor for name in ("eq", "ne", "lt", "le", "gt", "ge")),
}
_PRODUCTS = (_aten.mul.Tensor, _aten.mul.Scalar)


def compared_again(graph: Graph) -> dict[Node, str]:
    """The nodes whose bits the gradient of a saved extreme needs, and other kernels may not give; and why."""
    saved = _saved_of(graph)
    found: dict[Node, str] = {}
    for extreme in map(_behind_views, saved):
        if extreme.target in _EXTREMES:
            why = f"is computed again for the gradient of {described(extreme)}, which needs the same bits"
            found |= {node: f"{described(node)} {why}" for node in _inexact_behind(extreme, saved)}
    return found


def _saved_of(graph: Graph) -> dict[Node, None]:
    """The results of a forward graph that only its backward graph reads."""
    context = torch._guards.TracingContext.try_get()
    kinds = context.fw_metadata if context else None
    if kinds is None or any(node.op == "placeholder" and node.name.startswith("tangents") for node in graph.nodes):
        return {}
    results = next(node for node in reversed(graph.nodes) if node.op == "output").args[0]
    own = kinds.num_forward + len(kinds.tokens)
    return dict.fromkeys(node for node in tuple(results)[own:] if isinstance(node, Node))


def _behind_views(node: Node) -> Node:
    while node.op == "call_function" and moves_nothing(node):
        node = node.all_input_nodes[0]
    return node


def _inexact_behind(extreme: Node, saved: dict[Node, None]) -> list[Node]:
    """What the extreme's operand is made of, as far as nothing is saved, and may have other bits elsewhere."""
    found, seen, waiting = [], {extreme}, [(extreme, source) for source in extreme.all_input_nodes]
    while waiting:
        reader, node = waiting.pop()
        is_saved = node in saved or any(user in saved and moves_nothing(user) for user in node.users)
        if node in seen or node.op != "call_function" or is_saved:
            continue
        seen.add(node)
        if not _is_exact(node, reader):
            found.append(node)
        waiting += [(node, source) for source in node.all_input_nodes]
    return found


def _is_exact(node: Node, reader: Node) -> bool:
    if moves_nothing(node):
        return True
    value = node.meta.get("val")
    is_rounded = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    is_joined = node.target in _PRODUCTS and reader.target in _SUMS
    return node.target in _EXACT and not is_rounded and not is_joined
