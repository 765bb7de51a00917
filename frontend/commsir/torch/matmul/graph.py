"""Collectives of a compiled graph and the matmuls beside them become one op.

`wait_tensor(all_gather_into_tensor(x))` that matmuls read, and a matmul whose rows a reduce_scatter or an all_reduce
adds up, where the model says that this is faster. Views that leave the last dimension alone may lie between.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.collectives import Collective, set_value, site_of
from commsir.torch.joined_collectives import JoinedCollectives
from commsir.torch.matmul import model as model
from commsir.torch.matmul import ops as _ops  # noqa: F401  (defines the ops)
from commsir.torch.matmul.model import collective_time, saved_traffic
from commsir.torch.regions import same_sizes

__all__ = ["Fused", "fuse", "why_apart"]

_ATEN: Any = torch.ops.aten
_C10D: Any = torch.distributed.distributed_c10d
_WAIT = torch.ops._c10d_functional.wait_tensor.default
_FUNCTIONAL = "_c10d_functional"
_VIEWS = (_ATEN.reshape.default, _ATEN.view.default, _ATEN._unsafe_view.default)
#: Matmuls of batches, of groups and with scales.
_OTHER_PRODUCTS = ("bmm", "baddbmm", "_scaled_mm", "_grouped_mm", "_scaled_grouped_mm")
_PRODUCTS = (_ATEN.mm.default, _ATEN.addmm.default, _ATEN.bmm.default)
#: What repeats a matrix for each batch, or shows it as one of several.
_REPEATED = (_ATEN.expand.default, _ATEN.unsqueeze.default, *_VIEWS)


@dataclass(frozen=True)
class Fused:
    """What has gone into an op with a collective, and what the model says of it; no names: nothing is gained."""

    names: tuple[str, ...]
    because: str
    #: In each call, in µs, by the model.
    gain: float | None = None


def _value(node: Any) -> Any:
    return node.meta["val"]


def _is_static(*nodes: Node) -> bool:
    return all(isinstance(size, int) for node in nodes for size in _value(node).shape)


def _keeps_rows(node: Node) -> bool:
    """Whether it is a view of the same rows: only the dimensions before the last are put together or taken apart."""
    if node.target not in _VIEWS:
        return False
    before, after = _value(node.args[0]).shape, _value(node).shape
    return bool(before and after and before[-1] == after[-1])


def _rows(node: Node) -> int:
    value = _value(node)
    return int(value.numel() // max(value.shape[-1], 1))


def _of_all_batches(node: Any) -> Node | None:
    """The matrix by which a batched matmul multiplies every batch; None: there are several."""
    size = _value(node).shape[-2:]
    while isinstance(node, Node) and node.target in _REPEATED and _value(node).dim() > 2:
        node = node.args[0]
    return node if isinstance(node, Node) and same_sizes(_value(node).shape, size) else None


@dataclass(frozen=True)
class _Product:
    """A matmul of rows, in batches or not, by a weight of two dimensions, with a bias of one row or none."""

    node: Node
    rows: Node
    weight: Node
    bias: Node | None

    @classmethod
    def of(cls, node: Any) -> _Product | None:
        if not isinstance(node, Node) or node.target not in _PRODUCTS or node.kwargs:
            return None
        if node.target is _ATEN.mm.default:
            return cls(node, node.args[0], node.args[1], None)  # type: ignore[arg-type]
        if node.target is _ATEN.bmm.default:
            matrix = _of_all_batches(node.args[1])
            # Rows that lie elsewhere would have to be copied.
            is_taken = matrix is not None and _value(node.args[0]).is_contiguous()
            return cls(node, node.args[0], matrix, None) if is_taken else None  # type: ignore[arg-type]
        bias, rows, weight = node.args
        return cls(node, rows, weight, bias) if _value(bias).dim() == 1 else None  # type: ignore[arg-type]


def _readers(node: Node) -> list[Node]:
    """Those that read it, past views of its rows."""
    found = list[Node]()
    for user in node.users:
        found += _readers(user) if _keeps_rows(user) else [user]
    return found


def _source(node: Any) -> Node | None:
    """What a view of its rows shows; None where others read it, or a view of it, too."""
    while isinstance(node, Node) and _keeps_rows(node) and len(node.users) == 1:
        node = node.args[0]
    return node if isinstance(node, Node) and len(node.users) == 1 else None


def _shaped(graph: Graph, made: Node, like: Node) -> Node:
    """A result of an op in the shape of `like`."""
    shape = list(_value(like).shape)
    if list(_value(made).shape) == shape:
        return made
    view = graph.call_function(_ATEN.reshape.default, (made, shape))
    view.meta["val"] = _value(like)
    return view


def _erase(graph: Graph, nodes: Iterable[Node]) -> None:
    """Takes out what nobody reads any more, and what it alone had read of such nodes."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        is_ours = node.target in (*_REPEATED, *_PRODUCTS, _WAIT) or getattr(node.target, "namespace", "") == _FUNCTIONAL
        if is_ours and not node.users and not node._erased:
            sources = node.all_input_nodes
            graph.erase_node(node)
            waiting += sources


def _gather(graph: Graph, collective: Collective, everything: list[Collective], before: Any) -> Fused | None:
    node = collective.node
    shard = node.args[0]
    waits = [user for user in node.users if user.target is _WAIT]
    if len(waits) != 1 or len(node.users) != 1 or not isinstance(shard, Node) or _value(shard).dim() < 2:
        return None
    wait = waits[0]
    readers = _readers(wait)
    products = [made for reader in readers if (made := _Product.of(reader)) and _is_of(made, wait)]
    operands = [one for made in products for one in (made.weight, made.bias) if one is not None]
    if not products or not _is_static(shard, *operands) or any(one not in before for one in operands):
        return None
    ranks, k = int(node.args[1]), int(_value(shard).shape[-1])  # type: ignore[arg-type]
    columns = sum(int(_value(made.weight).shape[1]) for made in products)
    choice = model.choose("all_gather", ranks, _rows(shard), columns, k, _value(shard).dtype, _value(shard).device)
    if not choice.blocks:
        return Fused((), str(choice)) if choice.plain or choice.why_not else None
    keeps = len(readers) > len(products)
    weights, biases = [made.weight for made in products], [made.bias for made in products]
    shown = ("all_gather_matmul", [tuple(_value(one).shape) for one in weights], keeps)
    site = site_of(collective, everything, *shown)
    before.move(operands)
    with graph.inserting_before(node):
        fused = graph.call_function(
            torch.ops.commsir.all_gather_matmul.default,
            (shard, weights, biases, keeps, collective.group, site),
        )
        set_value(fused)
        parts = [_part(graph, fused, number) for number in range(len(products) + keeps)]
        results = [_shaped(graph, part, made.node) for part, made in zip(parts, products, strict=False)]
    for result, made in zip(results, products, strict=True):
        made.node.replace_all_uses_with(result)
    _erase(graph, [made.node for made in products])
    if keeps:
        wait.replace_all_uses_with(parts[-1])
        _erase(graph, [wait])
    names = tuple(str(made.node.target).removesuffix(".default") for made in products)
    return Fused(names, str(choice), choice.plain - choice.overlapped)


def _is_of(made: _Product, wait: Node) -> bool:
    """Whether the rows of a matmul, and nothing else of it, are what `wait` gives."""
    node: Any = made.rows
    while isinstance(node, Node) and node is not wait and _keeps_rows(node):
        node = node.args[0]
    others = [made.weight, made.bias]
    return node is wait and made.rows not in others and wait not in others


@dataclass(frozen=True)
class _Summed:
    """A matmul whose rows a collective sums up, and what the model says of the two."""

    product: _Product
    source: Node
    choice: model.Choice

    @classmethod
    def of(cls, collective: Collective) -> _Summed | None:
        node = collective.node
        if collective.reduce_op != "sum" or not isinstance(node.args[0], Node):
            return None
        if any(user.target is not _WAIT for user in node.users):
            return None
        source = _source(node.args[0])
        made = _Product.of(source)
        if source is None or made is None or made.bias is not None:
            return None
        if not _is_static(made.rows, made.weight, node.args[0]):
            return None
        value = _value(made.node)
        n, k = int(value.shape[-1]), int(_value(made.rows).shape[-1])
        ranks = _ranks(collective)
        choice = model.choose(collective.op, ranks, _rows(made.node), n, k, value.dtype, value.device)
        return cls(made, source, choice)


def _ranks(collective: Collective) -> int:
    if collective.op == "reduce_scatter":
        return int(collective.node.args[2])  # type: ignore[arg-type]
    return int(_C10D._resolve_process_group(collective.group).size())


def why_apart(collectives: list[Collective]) -> str:
    """Why several sums that could be one are faster as they are, each overlapped with its matmul; empty: they are not,
    by the model."""
    summed = [_Summed.of(one) for one in collectives]
    choices = [one.choice for one in summed if one is not None and one.choice.blocks]
    if len(choices) < len(summed):
        return ""
    value = _value(collectives[0].node.args[0])
    saved = collective_time(collectives[0].op, _ranks(collectives[0]), value.numel() * value.dtype.itemsize)
    apart = sum(one.overlapped for one in choices)
    together = sum(one.plain for one in choices) - saved * (len(choices) - 1)
    if apart >= together:
        return ""
    return f"{apart:.0f} µs predicted for sums that overlap with their matmuls, {together:.0f} µs for one sum of them"


def _reduce(graph: Graph, collective: Collective, everything: list[Collective], before: Any) -> Fused | None:
    node, summed = collective.node, _Summed.of(collective)
    if summed is None:
        return None
    made, source, choice = summed.product, summed.source, summed.choice
    if not choice.plain:
        return Fused((), choice.why_not) if choice.why_not else None
    if not choice.blocks or choice.plain - choice.overlapped < _arithmetic(collective):
        return Fused((), f"{choice}, beside {_arithmetic(collective):.0f} µs that a kernel with arithmetic may save")
    shown = ("matmul", tuple(_value(made.weight).shape))
    op = getattr(torch.ops.commsir, f"matmul_{collective.op}").default
    with graph.inserting_before(node):
        rows = made.rows
        if _value(rows).dim() > 2:
            rows = graph.call_function(_ATEN.reshape.default, (rows, [_rows(rows), _value(rows).shape[-1]]))
            set_value(rows)
        fused = graph.call_function(op, (rows, made.weight, collective.group, site_of(collective, everything, *shown)))
        set_value(fused)
        result = _shaped(graph, fused, node)
    waits = [user for user in node.users if user.target is _WAIT]
    for wait in waits:
        wait.replace_all_uses_with(result)
    _erase(graph, waits)
    return Fused((str(source.target).removesuffix(".default"),), str(choice), choice.plain - choice.overlapped)


def _arithmetic(collective: Collective) -> float:
    """What a kernel of an all_reduce and the arithmetic after it would save, in µs: it reads and writes rows once less.

    A reduce_scatter leaves a rank so few rows that this is little.
    """
    value = _value(collective.node)
    return saved_traffic(value.numel() * value.dtype.itemsize) if collective.op == "all_reduce" else 0.0


def _part(graph: Graph, fused: Node, number: int) -> Node:
    part = graph.call_function(operator.getitem, (fused, number))
    part.meta["val"] = _value(fused)[number]
    return part


def _other_product(collective: Collective) -> Node | None:
    """A matmul beside a collective that no op takes; None: there is none."""
    source = collective.node.args[0]
    if collective.op != "all_gather":
        beside = [one for one in [_source(source)] if one is not None]
    else:
        beside = [one for wait in collective.node.users for one in _readers(wait)]
    others = (one for one in beside if getattr(one.target, "_opname", "") in _OTHER_PRODUCTS)
    return next((one for one in others if _Product.of(one) is None), None)


def fuse(
    graph: Graph,
    collective: Collective,
    everything: list[Collective],
    before: Any,
    stands: JoinedCollectives | None = None,
) -> Fused | None:
    """Puts an op in the place of a collective and the matmuls beside it; None: there are none, or it is not faster."""
    if not collective.may_be_fused() or stands:
        return None
    if other := _other_product(collective):
        return Fused(
            (), f"{other.target} beside it is not overlapped: aten.mm, aten.addmm, and aten.bmm by one matrix are"
        )
    if collective.op == "all_gather":
        return _gather(graph, collective, everything, before)
    return _reduce(graph, collective, everything, before)
