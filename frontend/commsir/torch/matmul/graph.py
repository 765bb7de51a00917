"""Collectives of a compiled graph and the matmuls next to them become one op.

`wait_tensor(all_gather_into_tensor(x))` that matmuls read, a matmul whose rows a reduce_scatter or an all_reduce adds
up, and an all_to_all_single on either side, where the model says that this is faster. Views that leave the last
dimension alone may lie between; next to an all_to_all_single also the permutation of what ranks sent and experts, and
next to the others what torch makes of another dimension than 0, such as that of the sequence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.collectives import Collective, named_argument, set_value, site_of
from commsir.torch.gather_layouts import GatherConcat
from commsir.torch.joined_collectives import JoinedCollectives
from commsir.torch.matmul import model as model
from commsir.torch.matmul import ops as _ops  # noqa: F401  (defines the ops)
from commsir.torch.matmul.factor import BLOCK, padded
from commsir.torch.matmul.model import collective_time, saved_traffic
from commsir.torch.regions import Unsupported, moves_nothing, same_sizes
from commsir.torch.reporting import described

__all__ = ["Fused", "fuse", "why_apart"]

_ATEN: Any = torch.ops.aten
_C10D: Any = torch.distributed.distributed_c10d
_WAIT = torch.ops._c10d_functional.wait_tensor.default
_FUNCTIONAL = "_c10d_functional"
_VIEWS = (_ATEN.reshape.default, _ATEN.view.default, _ATEN._unsafe_view.default)
#: What repeats a matrix for each batch, or shows it as one of several.
_REPEATED = (_ATEN.expand.default, _ATEN.unsqueeze.default, *_VIEWS)
_PERMUTE, _CLONE = _ATEN.permute.default, _ATEN.clone.default
#: The shapes that scales may have.
_Shapes = tuple[tuple[Any, ...], ...]
#: What lays out rows that are gathered, or shared out, along another dimension than 0.
_LAYOUT = (_ATEN.cat.default, _ATEN.split.Tensor, operator.getitem)


@dataclass(frozen=True)
class Fused:
    """What has gone into an op with a collective, and what the model says of it; no names: nothing is gained."""

    names: tuple[str, ...]
    because: str
    #: In each call, in µs, by the model.
    gain: float | None = None
    #: Another collective whose result the op makes as well.
    other: Collective | None = None


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
    return math.prod(map(int, _value(node).shape[:-1]))


def _of_all_batches(node: Any) -> Node | None:
    """The matrix by which a batched matmul multiplies every batch; None: there are several."""
    size = _value(node).shape[-2:]
    while isinstance(node, Node) and node.target in _REPEATED and _value(node).dim() > 2:
        node = node.args[0]
    return node if isinstance(node, Node) and same_sizes(_value(node).shape, size) else None


@dataclass(frozen=True)
class _Product:
    """A matmul of rows by a weight, or by one for each group of rows, as `factor.Factor` has them."""

    node: Node
    rows: Node
    weight: Node
    bias: Node | None = None
    ends: Node | None = None
    #: Rows of a group, where that is known.
    group_rows: int = 0
    row_scale: Node | None = None
    scale: Node | None = None
    #: The scales of the weight lie transposed.
    is_scale_turned: bool = False
    #: Of the result; None: that of the rows.
    dtype: torch.dtype | None = None
    is_fast: bool = False

    @classmethod
    def of(cls, node: Any) -> _Product | None:
        """None: it is no matmul. Raises Unsupported with the reason if it is one that no op takes."""
        rule = _RULES.get(node.target) if isinstance(node, Node) else None
        return rule(node) if rule else None

    @property
    def operands(self) -> list[Node]:
        """All but the rows."""
        given = (self.weight, self.bias, self.ends, self.row_scale, self.scale)
        return [one for one in given if one is not None]

    @property
    def shared(self) -> tuple[Any, ...]:
        """What one op has once for all of its factors."""
        return (self.ends, self.group_rows, self.row_scale, self.dtype, self.is_fast)

    @property
    def groups(self) -> model.Groups:
        shape = _value(self.weight).shape
        return model.Groups(int(shape[0]) if len(shape) > 2 else 1, self.group_rows)

    @property
    def columns(self) -> int:
        return int(_value(self.weight).shape[-1])

    @property
    def name(self) -> str:
        return str(self.node.target).removesuffix(".default")

    def shown(self) -> tuple[Any, ...]:
        """What all ranks have to want alike, in addition to the shapes of the rows."""
        return (self.name, tuple(_value(self.weight).shape), self.group_rows, self.dtype, self.is_fast)

    def seen_scale(self, graph: Graph) -> Node | None:
        """The scales of the weight as `Factor` has them."""
        if not self.is_scale_turned:
            return self.scale
        view = graph.call_function(_PERMUTE, (self.scale, [1, 0]))
        set_value(view)
        return view

    def choose(self, op: str, ranks: int, rows: int, columns: int) -> model.Choice:
        given, made = _value(self.rows), _value(self.node)
        sizes = (rows, columns, int(given.shape[-1]))
        return model.choose(op, ranks, *sizes, given.dtype, given.device, self.groups, made.dtype)


def _refuse(node: Node, why: str) -> Unsupported:
    return Unsupported(f"{described(node)} next to it is not overlapped: {why}")


def _mm(node: Node) -> _Product:
    return _Product(node, node.args[0], node.args[1])  # type: ignore[arg-type]


def _addmm(node: Node) -> _Product:
    bias, rows, weight = node.args
    if node.kwargs or _value(bias).dim() != 1:
        raise _refuse(node, "it scales, or adds more than one row")
    return _Product(node, rows, weight, bias)  # type: ignore[arg-type]


def _bmm(node: Node) -> _Product:
    rows, weight = node.args[:2]
    matrix = _of_all_batches(weight)
    # Rows that lie elsewhere would have to be copied.
    if not _value(rows).is_contiguous():
        raise _refuse(node, "the rows of its batches do not lie one after the other")
    if matrix is not None:
        return _Product(node, rows, matrix)  # type: ignore[arg-type]
    size = _value(rows).shape[1]
    if not isinstance(size, int) or size == 0:
        raise _refuse(node, "the rows of a batch are not known when it is compiled")
    return _Product(node, rows, weight, group_rows=size)  # type: ignore[arg-type]


def _baddbmm(node: Node) -> _Product:
    raise _refuse(node, "it adds a tensor to the products of all batches")


def _dtype_of(node: Node) -> torch.dtype | None:
    made, given = _value(node).dtype, _value(node.args[0]).dtype
    return None if made == given else made


def _grouped_mm(node: Node) -> _Product:
    rows, weight = node.args[:2]
    ends = named_argument(node, "offs")
    if named_argument(node, "bias") is not None:
        raise _refuse(node, "it has a bias")
    sizes = _value(rows).dim(), _value(weight).dim()
    if sizes == (3, 3) and ends is None and node.target is _ATEN._grouped_mm.default:
        made = _bmm(node)
        return replace(made, dtype=_dtype_of(node))
    if sizes != (2, 3) or ends is None:
        raise _refuse(node, "its groups are not groups of rows")
    return _Product(node, rows, weight, ends=ends, dtype=_dtype_of(node))  # type: ignore[arg-type]


def _scaled(node: Node, made: _Product, scales: tuple[_Shapes, _Shapes]) -> _Product:
    """With scales of one element each, or of one of these shapes."""
    if named_argument(node, "scale_result") is not None:
        raise _refuse(node, "its result has a scale")
    given = named_argument(node, "scale_a"), named_argument(node, "scale_b")
    for one, shapes in zip(given, scales, strict=True):
        if _value(one).numel() != 1 and tuple(_value(one).shape) not in shapes:
            shown = tuple(_value(one).shape)
            raise _refuse(node, f"its scales are of {shown}: one, or one for each row or block of {BLOCK}, is taken")
    is_fast = bool(named_argument(node, "use_fast_accum"))
    return replace(made, row_scale=given[0], scale=given[1], dtype=_dtype_of(node), is_fast=is_fast)


def _blocks(size: Any) -> Any:
    return -(-size // BLOCK)


def _scaled_mm(node: Node) -> _Product:
    rows, weight = node.args[:2]
    made = _Product(node, rows, weight, named_argument(node, "bias"))  # type: ignore[arg-type]
    (count, k), n = _value(rows).shape, made.columns
    of_rows, of_columns = ((count, 1), (count, _blocks(k))), ((1, n), (_blocks(k), n), (_blocks(k), _blocks(n)))
    return _scaled(node, made, (of_rows, of_columns))


#: What torch calls one scale, one for each row, and one for each block of 1 by 128 and of 128 by 128.
_ONE, _EACH_ROW, _BY_ROWS, _BY_BLOCKS = 0, 1, 4, 5


def _scaled_mm_v2(node: Node) -> _Product:
    recipes = [tuple(named_argument(node, f"recipe_{side}")) for side in "ab"]
    rows, weight = node.args[:2]
    made = _Product(node, rows, weight, named_argument(node, "bias"), dtype=_dtype_of(node))  # type: ignore[arg-type]
    (count, k), n = _value(rows).shape, made.columns
    blocks = _blocks(k)
    known: dict[Any, tuple[tuple[Any, ...], ...]] = {
        ((_ONE,), (_ONE,)): ((), ()),
        ((_EACH_ROW,), (_EACH_ROW,)): ((count, 1), (1, n)),
        ((_BY_ROWS,), (_BY_ROWS,)): ((count, blocks), (n, blocks)),
        ((_BY_ROWS,), (_BY_BLOCKS,)): ((count, blocks), (padded(blocks), _blocks(n))),
    }
    shapes = known.get(tuple(recipes))
    if shapes is None:
        raise _refuse(node, f"its scales are of the recipes {recipes[0]} and {recipes[1]}")
    if any(named_argument(node, f"swizzle_{side}") not in ([], [0]) for side in "ab"):
        raise _refuse(node, "its scales are swizzled")
    if named_argument(node, "contraction_dim"):
        raise _refuse(node, "it names the dimensions that are summed over")
    (row_scale,), (scale,) = (named_argument(node, f"scale_{side}") for side in "ab")
    given = [tuple(_value(one).shape) for one in (row_scale, scale)]
    if recipes[0] != (_ONE,) and given != list(shapes):
        raise _refuse(node, f"its scales are of {given[0]} and {given[1]}: {shapes[0]} and {shapes[1]} are taken")
    is_fast, is_turned = bool(named_argument(node, "use_fast_accum")), recipes[1] == (_BY_ROWS,)
    return replace(made, row_scale=row_scale, scale=scale, is_scale_turned=is_turned, is_fast=is_fast)


def _scaled_grouped_mm(node: Node) -> _Product:
    made = _grouped_mm(node)
    shape = _value(made.weight).shape
    return _scaled(node, made, (((_value(made.rows).shape[0],),), ((shape[0], shape[-1]),)))


_RULES: dict[Any, Callable[[Node], _Product]] = {
    _ATEN.mm.default: _mm,
    _ATEN.addmm.default: _addmm,
    _ATEN.bmm.default: _bmm,
    _ATEN.baddbmm.default: _baddbmm,
    _ATEN._scaled_mm.default: _scaled_mm,
    _ATEN._scaled_mm_v2.default: _scaled_mm_v2,
    _ATEN._grouped_mm.default: _grouped_mm,
    _ATEN._scaled_grouped_mm.default: _scaled_grouped_mm,
}


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
        is_begun = getattr(node.target, "namespace", "") == _FUNCTIONAL
        is_ours = is_begun or node.target in (*_REPEATED, *_RULES, *_LAYOUT, _WAIT, _PERMUTE, _CLONE)
        if is_ours and not node.users and not node._erased:
            sources = node.all_input_nodes
            graph.erase_node(node)
            waiting += sources


# ---------------------------------------------------------------------------------------------------------------------
# Rows of experts
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Order:
    """How rows travel, and how a matmul has them: [ranks, experts, rows, ...] and [experts, ranks x rows, ...]. Of
    rows that are gathered or shared out along another dimension than 0, `experts` is the product of those before it."""

    ranks: int
    experts: int
    rows: int

    def of_matmul(self, graph: Graph, node: Node) -> Node:
        """What travels, as a matmul has it."""
        return self._permuted(graph, node, [self.ranks, self.experts], [self.experts, self.ranks * self.rows])

    def of_travel(self, graph: Graph, node: Node) -> Node:
        """What a matmul has, as it travels."""
        return self._permuted(graph, node, [self.experts, self.ranks], [self.ranks * self.experts * self.rows])

    def _permuted(self, graph: Graph, node: Node, begin: list[int], end: list[int]) -> Node:
        last = _value(node).shape[-1]
        for target, given in (
            (_ATEN.reshape.default, [*begin, self.rows, last]),
            (_PERMUTE, [1, 0, 2, 3]),
            (_ATEN.reshape.default, [*end, last]),
        ):
            node = graph.call_function(target, (node, given))
            set_value(node)
        return node


def _swapped(node: Node) -> tuple[int, ...] | None:
    """Of a permutation of the first two of four dimensions: the sizes before it."""
    if node.target is not _PERMUTE or [int(dim) % 4 for dim in node.args[1]] != [1, 0, 2, 3]:  # type: ignore[union-attr, arg-type]
        return None
    return tuple(_value(node.args[0]).shape) if _is_static(node) else None


def _readers_of_experts(reader: Node, ranks: int) -> tuple[_Order, list[Node]] | None:
    """What reads the rows that have arrived, by experts."""
    while reader.target is _CLONE and len(reader.users) == 1:
        (reader,) = reader.users
    sizes = _swapped(reader)
    if sizes is None or sizes[0] != ranks:
        return None
    found = list[Node]()
    for user in _readers(reader):
        found += _readers(user) if user.target is _CLONE else [user]
    return _Order(*sizes[:3]), found


def _source_of_experts(node: Any, ranks: int) -> tuple[_Order, Node] | None:
    """The matmul of experts whose rows travel, one rank's after the other's; nobody else reads them."""
    while isinstance(node, Node) and (_keeps_rows(node) or node.target is _CLONE) and len(node.users) == 1:
        node = node.args[0]
    sizes = _swapped(node) if isinstance(node, Node) and len(node.users) == 1 else None
    source = _source(node.args[0]) if sizes and sizes[1] == ranks else None
    return (_Order(ranks, sizes[0], sizes[2]), source) if sizes and source is not None else None


# ---------------------------------------------------------------------------------------------------------------------
# Rows along another dimension
# ---------------------------------------------------------------------------------------------------------------------


def _order_along(shape: Any, dim: int, ranks: int) -> _Order:
    """Of tensors of that shape, which all ranks have, joined along `dim`."""
    return _Order(ranks, math.prod(shape[:dim]), math.prod(shape[dim:-1]))


def _concatenated(wait: Node, ranks: int) -> tuple[_Order, Node] | None:
    """The concatenation of what has arrived along another dimension than 0, if nothing else reads it."""
    layout = next(iter(wait.users)) if len(wait.users) == 1 else None
    if layout is None or layout.target is not _ATEN.split.Tensor or not _is_static(wait):
        return None
    found = {user for part in layout.users for user in part.users}
    made = GatherConcat.of(next(iter(found))) if len(found) == 1 else None
    if made is None or made.wait is not wait or not made.keeps_rows:
        return None
    shard = [_value(wait).shape[0] // ranks, *_value(wait).shape[1:]]
    return _order_along(shard, made.dim, ranks), made.node


def _shared_out(node: Any, ranks: int) -> tuple[_Order, Node] | None:
    """The tensor whose parts along another dimension than 0 are put one after the other, if nothing else reads it."""
    if not isinstance(node, Node) or node.target is not _ATEN.cat.default or len(node.users) != 1:
        return None
    parts: Any = node.args[0]
    split: Any = parts[0].args[0] if isinstance(parts[0], Node) and parts[0].args else None
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
    if dim != 0 or not isinstance(split, Node) or split.target is not _ATEN.split.Tensor or len(parts) != ranks:
        return None
    whole: Any = split.args[0]
    along = (int(split.args[2]) if len(split.args) > 2 else 0) % max(_value(whole).dim(), 1)  # type: ignore[arg-type]
    is_whole = len(split.users) == ranks == len(split.meta["val"]) and all(
        one.target is operator.getitem and one.args == (split, place) and len(one.users) == 1
        for place, one in enumerate(parts)
    )
    if not is_whole or not _is_static(whole) or not 0 < along < _value(whole).dim() - 1 or len(whole.users) != 1:
        return None
    return _order_along(_value(parts[0]).shape, along, ranks), whole


# ---------------------------------------------------------------------------------------------------------------------
# Rows that arrive
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arrivals:
    """The rows that a collective brings, and the matmuls of them that one op can do."""

    shard: Node
    wait: Node
    products: tuple[_Product, ...]
    #: Whether something else reads the rows.
    keeps: bool
    order: _Order | None
    #: Why other matmuls of them are left; empty: there are none.
    left: str

    @classmethod
    def of(cls, collective: Collective) -> _Arrivals | None:
        node = collective.node
        shard = node.args[0]
        waits = [user for user in node.users if user.target is _WAIT]
        if len(waits) != 1 or len(node.users) != 1 or not isinstance(shard, Node) or _value(shard).dim() < 2:
            return None
        readers, rows = _readers(waits[0]), waits[0]
        order = None
        if collective.op == "all_gather" and (along := _concatenated(waits[0], _ranks(collective))):
            order, rows = along
            readers = _readers(rows)
        if collective.op == "all_to_all" and len(readers) == 1:
            of_experts = _readers_of_experts(readers[0], _ranks(collective))
            order, readers = of_experts or (None, readers)
        found, left = list[_Product](), ""
        for reader in readers:
            try:
                made = _Product.of(reader)
            except Unsupported as why:
                left, made = left or str(why), None
            if made and order:
                made = _in_order(made, order)
            if made and (collective.op == "all_to_all" and order or _is_of(made, rows)):
                found.append(made)
        found = [made for made in found if made.shared == found[0].shared]
        keeps = len(readers) > len(found)
        # Rows in the order of experts are not what an op returns.
        is_lost = keeps and order is not None and collective.op == "all_to_all"
        return cls(shard, waits[0], () if is_lost else tuple(found), keeps, order, left)


def _in_order(made: _Product, order: _Order) -> _Product | None:
    """The same matmul of rows in the order in which they travel. One weight multiplies them in any order, but each row
    must keep its scale."""
    if made.group_rows == 0:
        has_own_scales = made.row_scale is not None and _value(made.row_scale).numel() != 1
        return None if made.ends is not None or has_own_scales else made
    is_whole = tuple(_value(made.node).shape[:-1]) == (order.experts, order.ranks * order.rows)
    if not is_whole or made.group_rows != order.ranks * order.rows:
        return None
    return replace(made, group_rows=order.rows)


def _is_same_scale(node: Node) -> bool:
    """Whether it shows the scales that it is given, or copies them to lie by columns."""
    is_turn = node.target is _PERMUTE and list(node.args[1]) in ([1, 0], [-1, -2])  # type: ignore[arg-type]
    return is_turn or moves_nothing(node) or node.target in (_WAIT, _CLONE)


def _scale_shard(
    products: Iterable[_Product], collective: Collective, everything: list[Collective]
) -> Collective | None:
    """The all_gather of the rows' scales, if it begins right after that of the rows and nothing else reads it."""
    found = everything[everything.index(collective) + 1 :][:1]
    if collective.op != "all_gather" or not found or found[0].node.args[1:] != collective.node.args[1:]:
        return None
    begun, readers = found[0].node, [made.node for made in products]
    scale: Any = next(iter(products)).row_scale
    is_turned = False
    while isinstance(scale, Node) and scale is not begun:
        if any(user not in readers for user in scale.users) or not _is_same_scale(scale):
            return None
        is_turned ^= scale.target is _PERMUTE
        readers, scale = [scale], scale.args[0]
    is_known = scale is begun and not is_turned and found[0].op == "all_gather" and begun.users.keys() == set(readers)
    given = begun.args[0]
    # One scale would be that of all rows.
    is_taken = is_known and isinstance(given, Node) and _is_static(given) and _value(given).numel() > 1
    return found[0] if is_taken else None


def _where_not(products: Iterable[_Product], before: Any) -> str:
    """Why operands are not there when the collective begins; empty: they are."""
    for made in products:
        for one in made.operands:
            if one not in before:
                needs = f"it needs {described(one)}, {before.why_not(one)}"
                return f"{described(made.node)} next to it is not overlapped: {needs}"
    return ""


def _multiply_arrivals(graph: Graph, collective: Collective, everything: list[Collective], before: Any) -> Fused | None:
    given = _Arrivals.of(collective)
    if given is None or not given.products:
        return Fused((), given.left) if given and given.left else None
    shard, products, keeps = given.shard, given.products, given.keeps
    operands = [one for made in products for one in made.operands]
    if not _is_static(shard, *operands):
        return None
    scales_of = _scale_shard(products, collective, everything) if products[0].row_scale is not None else None
    if scales_of:
        whole_scale: Any = products[0].row_scale
        shard_of_scale: Any = scales_of.node.args[0]
        products = tuple(replace(made, row_scale=shard_of_scale) for made in products)
        operands = [one for made in products for one in made.operands]
    if late := _where_not(products, before):
        return Fused((), late)
    ranks, is_gather = _ranks(collective), collective.op == "all_gather"
    rows = _rows(shard) if is_gather else _rows(shard) // ranks
    columns = sum(made.columns for made in products)
    choice = products[0].choose("all_gather" if is_gather else "all_to_all_before", ranks, rows, columns)
    if not choice.blocks:
        return Fused((), str(choice)) if choice.plain or choice.why_not else None
    op = f"{collective.op}_matmul"
    site = site_of(collective, everything, op, [made.shown() for made in products], keeps)
    before.move(operands)
    ends, group_rows, row_scale, dtype, is_fast = products[0].shared
    weights, biases = [made.weight for made in products], [made.bias for made in products]
    with graph.inserting_before(collective.node):
        scales = None if row_scale is None else [made.seen_scale(graph) for made in products]
        fused = graph.call_function(
            getattr(torch.ops.commsir, op).default,
            (
                shard,
                weights,
                biases,
                keeps,
                collective.group,
                site,
                ends,
                group_rows,
                row_scale,
                scales,
                dtype,
                is_fast,
            ),
        )
        set_value(fused)
        parts = [_part(graph, fused, number) for number in range(len(products) + keeps)]
        made_of = [given.order.of_matmul(graph, part) if given.order else part for part in parts[: len(products)]]
        results = [_shaped(graph, part, made.node) for part, made in zip(made_of, products, strict=True)]
    for result, made in zip(results, products, strict=True):
        made.node.replace_all_uses_with(result)
    _erase(graph, [made.node for made in products])
    if scales_of:
        _erase(graph, [whole_scale])
    if keeps:
        given.wait.replace_all_uses_with(parts[-1])
        _erase(graph, [given.wait])
    names = tuple(made.name for made in products)
    return Fused(names, str(choice), choice.plain - choice.overlapped, scales_of)


def _is_of(made: _Product, wait: Node) -> bool:
    """Whether the rows of a matmul, and nothing else of it, are what `wait` gives."""
    node: Any = made.rows
    while isinstance(node, Node) and node is not wait and _keeps_rows(node):
        node = node.args[0]
    return node is wait and made.rows not in made.operands and wait not in made.operands


# ---------------------------------------------------------------------------------------------------------------------
# Products that are sent
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sent:
    """A matmul whose rows a collective sums up or exchanges, and what the model says of the two."""

    product: _Product
    choice: model.Choice
    order: _Order | None = None

    @classmethod
    def of(cls, collective: Collective) -> _Sent | None:
        """Raises Unsupported if no op takes the matmul that is there."""
        node = collective.node
        if not isinstance(node.args[0], Node) or any(user.target is not _WAIT for user in node.users):
            return None
        source, order = _source(node.args[0]), None
        if collective.op == "all_to_all" and (found := _source_of_experts(node.args[0], _ranks(collective))):
            order, source = found
        elif collective.op == "reduce_scatter" and (along := _shared_out(node.args[0], _ranks(collective))):
            order, source = along[0], _source(along[1])
        made = _Product.of(source)
        if made and order:
            made = _in_order(made, order)
        if made is None or not _is_static(made.rows, *made.operands, node.args[0]):
            return None
        if made.bias is not None:
            raise _refuse(made.node, "it has a bias")
        op = "all_to_all_behind" if collective.op == "all_to_all" else collective.op
        return cls(made, made.choose(op, _ranks(collective), _rows(made.node), made.columns), order)


def _ranks(collective: Collective) -> int:
    if collective.op in ("all_gather", "reduce_scatter"):
        return int(collective.node.args[1 if collective.op == "all_gather" else 2])  # type: ignore[arg-type]
    return int(_C10D._resolve_process_group(collective.group).size())


def why_apart(collectives: list[Collective]) -> str:
    """Why several sums that could be one are faster as they are, each overlapped with its matmul; empty: they are not,
    by the model."""
    try:
        summed = [_Sent.of(one) for one in collectives]
    except Unsupported:
        return ""
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


def _send_products(graph: Graph, collective: Collective, everything: list[Collective]) -> Fused | None:
    if collective.op != "all_to_all" and collective.reduce_op != "sum":
        return None
    node, sent = collective.node, _Sent.of(collective)
    if sent is None:
        return None
    made, choice = sent.product, sent.choice
    if not choice.plain:
        return Fused((), choice.why_not) if choice.why_not else None
    if not choice.blocks or choice.plain - choice.overlapped < _arithmetic(collective):
        return Fused((), f"{choice}, plus {_arithmetic(collective):.0f} µs that a kernel with arithmetic may save")
    op = getattr(torch.ops.commsir, f"matmul_{collective.op}").default
    site = site_of(collective, everything, "matmul", made.shown())
    with graph.inserting_before(node):
        rows = made.rows
        if sent.order:
            rows = sent.order.of_travel(graph, rows)
        elif _value(rows).dim() > 2:
            rows = graph.call_function(_ATEN.reshape.default, (rows, [_rows(rows), _value(rows).shape[-1]]))
            set_value(rows)
        ends, group_rows, row_scale, dtype, is_fast = made.shared
        factor = (ends, group_rows, row_scale, made.seen_scale(graph), dtype, is_fast)
        fused = graph.call_function(op, (rows, made.weight, collective.group, site, *factor))
        set_value(fused)
        result = _shaped(graph, fused, node)
    waits = [user for user in node.users if user.target is _WAIT]
    for wait in waits:
        wait.replace_all_uses_with(result)
    _erase(graph, waits)
    return Fused((made.name,), str(choice), choice.plain - choice.overlapped)


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


def _left_to_the_operation(collective: Collective) -> Fused | None:
    """Why no matmul overlaps with an operation of another library that gathers its rows; None: none follows."""
    waits = [user for user in collective.node.users if user.target is _WAIT]
    behind = [one for wait in waits for one in _readers(wait) if one.target in _RULES]
    if not behind:
        return None
    why = f"{described(behind[0])} next to it is not overlapped: that takes torch's all_gather, not {{}}"
    return Fused((), why.format(collective.foreign.operation if collective.foreign else ""))


def fuse(
    graph: Graph,
    collective: Collective,
    everything: list[Collective],
    before: Any,
    stands: JoinedCollectives | None = None,
) -> Fused | None:
    """Puts an op in the place of a collective and the matmuls next to it; None: there are none, or it is not faster."""
    if not collective.may_be_fused() or not collective.whole or stands:
        return None
    if collective.foreign and collective.op == "all_gather":
        return _left_to_the_operation(collective)
    moves = collective.op in ("all_gather", "all_to_all")
    found = _multiply_arrivals(graph, collective, everything, before) if moves else None
    if collective.op == "all_gather" or (found and found.names):
        return found
    try:
        return _send_products(graph, collective, everything) or found
    except Unsupported as why:
        return Fused((), str(why))
