"""all_gather along another dimension than 0, which torch writes as an all_gather along 0, a split and a concatenation.

    cat(split(wait_tensor(all_gather_into_tensor(x))), dim)

Where the pieces lie one after the other anyway, that is a view. Elsewhere what is done element by element, or with rows
that stay whole, is the same before the concatenation: there a region can hold it. It is the same before a permutation
of the dimensions, too, which is a view of what a kernel writes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Container
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
import torch.distributed._functional_collectives
from torch.fx import Graph, Node

from commsir.torch.collectives import set_value
from commsir.torch.regions import (
    cuts_last_dim,
    is_arithmetic,
    is_elementwise,
    is_part,
    is_row_statistic,
    moves_nothing,
    parts_alone,
    reduced_dims,
    same_sizes,
)
from commsir.torch.reporting import described

__all__ = ["GatherConcat", "let_trace", "sink", "sink_permutations"]

funcol: Any = torch.distributed._functional_collectives
_ATEN: Any = torch.ops.aten
_CAT: Any = torch.ops.aten.cat.default
_WAIT = torch.ops._c10d_functional.wait_tensor.default
_GATHER = torch.ops._c10d_functional.all_gather_into_tensor.default


def let_trace() -> None:
    """Has Dynamo trace `all_gather_tensor` along another dimension than 0: it breaks the graph at the function by which
    torch 2.11 lays out what has arrived."""
    original = getattr(funcol, "_maybe_view_chunk_cat", None)
    if original is None or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def _maybe_view_chunk_cat(res: torch.Tensor, group_size: int, gather_dim: int) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            return original(res, group_size, gather_dim)
        return torch.cat(res.chunk(group_size), gather_dim) if gather_dim else res

    funcol._maybe_view_chunk_cat = _maybe_view_chunk_cat


@dataclass(frozen=True)
class GatherConcat:
    """A concatenation of the gathered pieces, or of values computed from them."""

    node: Node
    wait: Node
    dim: int
    #: Rows of a piece.
    size: Any

    @classmethod
    def of(cls, node: Node) -> GatherConcat | None:
        if node.target is not _ATEN.cat.default or not isinstance(node.args[0], (list, tuple)):
            return None
        pieces = node.args[0]
        split = pieces[0].args[0] if pieces and isinstance(pieces[0], Node) and pieces[0].args else None
        if not isinstance(split, Node) or split.target is not _ATEN.split.Tensor or len(split.args) != 2:
            return None
        wait, size = split.args
        if not isinstance(wait, Node) or wait.target is not _WAIT or not _is_begun_by_gather(wait):
            return None
        if len(pieces) != len(split.meta["val"]) or not all(
            isinstance(one, Node) and one.target is operator.getitem and one.args == (split, place)
            for place, one in enumerate(pieces)
        ):
            return None
        given: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        return cls(node, wait, int(given) % node.meta["val"].dim(), size)

    @property
    def keeps_rows(self) -> bool:
        """Whether rows of the last dimension stay whole."""
        return self.dim < int(self.node.meta["val"].dim()) - 1

    def is_view(self) -> bool:
        """Whether the pieces lie one after the other in the result."""
        before = self.node.meta["val"].shape[: self.dim]
        return all(isinstance(size, int) for size in before) and prod(before) == 1


def _is_begun_by_gather(wait: Node) -> bool:
    begun = wait.args[0]
    return isinstance(begun, Node) and begun.target is _GATHER


def _takes(node: Node, gathered: GatherConcat, mapped: dict[Node, Node]) -> bool:
    """Whether the node does the same with the pieces as with what they make up."""
    value, whole = node.meta.get("val"), gathered.node.meta["val"].shape
    if not isinstance(value, torch.Tensor):
        return False
    fits = _has_rows_of(value.shape, whole, gathered) and (is_elementwise(node) or moves_nothing(node))
    if gathered.keeps_rows and not fits:
        # A number for each row, kept as a dimension.
        fits = same_sizes(value.shape, [*whole[:-1], 1]) and (is_elementwise(node) or is_row_statistic(node))
    most = 1 if gathered.keeps_rows else 0

    def is_small(value: Any) -> bool:
        return not isinstance(value, torch.Tensor) or value.dim() <= most

    return fits and all(one in mapped or is_small(one.meta.get("val")) for one in node.all_input_nodes)


def _has_rows_of(shape: Any, whole: Any, gathered: GatherConcat) -> bool:
    """Whether a tensor has the gathered shape; or, where rows are joined, the same rows in another shape."""
    if gathered.keeps_rows or not len(shape) or _unknown_sizes(shape) > 1:
        return same_sizes(shape, whole)
    return same_sizes(shape[-1:], whole[-1:]) and same_sizes([prod(shape)], [prod(whole)])


def _unknown_sizes(shape: Any) -> int:
    """How many sizes are not known when it is compiled."""
    return sum(not isinstance(size, int) for size in shape)


def _movable_nodes(graph: Graph, gathered: GatherConcat) -> list[Node]:
    """Returns the operations that can be applied to the pieces, as long as one tensor remains to concatenate."""
    found: dict[Node, Node] = {gathered.node: gathered.node}
    best = 0
    for node in graph.nodes:
        if node in found or not any(one in found for one in node.all_input_nodes):
            continue
        if not _takes(node, gathered, found):
            continue
        found[node] = node
        needed = [one for one in found if any(user not in found for user in one.users)]
        if len(needed) == 1 and needed[0] is not gathered.node and not moves_nothing(needed[0]):
            best = len(found)
    return list(found)[1:best]


def _concatenated(graph: Graph, pieces: Node, like: GatherConcat) -> Node:
    """Returns the pieces in the layout of `like`."""
    split = graph.call_function(_ATEN.split.Tensor, (pieces, like.size))
    set_value(split)
    parts = []
    for place in range(len(split.meta["val"])):
        parts.append(graph.call_function(operator.getitem, (split, place)))
        parts[-1].meta["val"] = split.meta["val"][place]
    made = graph.call_function(_ATEN.cat.default, (parts, like.dim))
    set_value(made)
    return made


def _erase(graph: Graph, node: Node) -> None:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if not one.users and not one._erased and one.target is not _WAIT:
            sources = one.all_input_nodes
            graph.erase_node(one)
            waiting += [source for source in sources if source.target in (operator.getitem, _ATEN.split.Tensor)]


def _sink(graph: Graph, gathered: GatherConcat) -> GatherConcat | None:
    """Moves what can be done with the pieces before the concatenation, and returns that of what they become."""
    inside = _movable_nodes(graph, gathered)
    if not inside:
        return None
    mapped = {gathered.node: gathered.wait}
    for node in inside:
        if moves_nothing(node):
            mapped[node] = mapped[node.all_input_nodes[0]]
            continue
        with graph.inserting_before(node):
            mapped[node] = graph.node_copy(node, lambda one: mapped.get(one, one))
            set_value(mapped[node])
    members = set(inside)
    (last,) = (node for node in inside if any(user not in members for user in node.users))
    with graph.inserting_before(last):
        whole = made = _concatenated(graph, mapped[last], gathered)
        if not same_sizes(whole.meta["val"].shape, last.meta["val"].shape):
            made = graph.call_function(_ATEN.reshape.default, (whole, _known_shape(last)))
            made.meta = {**last.meta}
    last.replace_all_uses_with(made)
    for node in reversed(inside):
        graph.erase_node(node)
    _erase(graph, gathered.node)
    return GatherConcat(whole, mapped[last], gathered.dim, gathered.size)


def _is_same_of_all(pieces: list[Any]) -> bool:
    """Whether it is one operation of each piece that nothing else reads, with the same other operands."""

    def shown(node: Node) -> Any:
        return node.target, node.args[1:], node.kwargs

    return all(
        isinstance(one, Node)
        and is_elementwise(one)
        and one.all_input_nodes == [one.args[0]]
        and len(one.users) == 1
        and shown(one) == shown(pieces[0])
        for one in pieces
    )


def _joined_unaries(graph: Graph, node: Node) -> Node:
    """Has operations that Inductor has moved before a concatenation follow it again, if that is of gathered pieces.
    Returns the concatenation."""
    pieces: list[Any] = list(node.args[0]) if isinstance(node.args[0], (list, tuple)) else []
    chain = list[Node]()
    while pieces and _is_same_of_all(pieces):
        chain.append(pieces[0])
        pieces = [one.args[0] for one in pieces]
    if node.target is not _ATEN.cat.default or not chain:
        return node
    with graph.inserting_before(node):
        made = whole = graph.call_function(_CAT, (pieces, *node.args[1:]), dict(node.kwargs))
        set_value(whole)
        if GatherConcat.of(whole) is None:
            graph.erase_node(whole)
            return node
        for one in reversed(chain):
            target: Any = one.target
            made = graph.call_function(target, (made, *one.args[1:]), dict(one.kwargs))
            set_value(made)
    moved = list(node.args[0])  # type: ignore[arg-type]
    node.replace_all_uses_with(made)
    graph.erase_node(node)
    while moved and moved[0] not in pieces:
        sources = [one.args[0] for one in moved]
        for one in moved:
            graph.erase_node(one)
        moved = sources
    return whole


def _first_reader(node: Node) -> Node | None:
    """Returns the first reader, past views, or None if the program returns the value."""
    for user in node.users:
        found = _first_reader(user) if moves_nothing(user) else user
        if found is not None and found.op != "output":
            return found
    return None


#: What only changes where elements lie.
_LAYOUTS = (_ATEN.permute.default, _ATEN.clone.default, _ATEN.expand.default)


def _unsupported_reason(gathered: GatherConcat) -> str:
    """Returns why nothing can be moved before the concatenation."""
    reader = first = _first_reader(gathered.node)
    while reader is not None and reader.target in _LAYOUTS:
        reader = _first_reader(reader)
    if reader is None:
        return "nothing follows: the program returns what is gathered"
    what = described(reader)
    if not is_arithmetic(reader):
        return f"{what} is not among the operations that regions hold"
    if reader is not first:
        return f"{what} has what is gathered in another order of dimensions"
    views = {one: one for one in reader.all_input_nodes if _comes_from(one, gathered.node)}
    if _takes(reader, gathered, {gathered.node: gathered.node, **views}):
        return f"{what} could be done with the pieces, but what is gathered is read elsewhere, too"
    if not is_elementwise(reader):
        return f"{what} needs what all ranks have sent, along dimension {gathered.dim}"
    beside = [one for one in reader.all_input_nodes if not _comes_from(one, gathered.node)]
    if not _has_rows_of(reader.meta["val"].shape, gathered.node.meta["val"].shape, gathered) or not beside:
        return f"{what} has what is gathered in another shape, {list(reader.meta['val'].shape)}"
    return f"{what} needs {described(beside[0])}, which is not in pieces"


def _comes_from(node: Node, source: Node) -> bool:
    """Whether it is `source`, past views."""
    while node is not source and moves_nothing(node):
        node = node.all_input_nodes[0]
    return node is source


# ---------------------------------------------------------------------------------------------------------------------
# Reductions of rows of which each rank has sent a part
# ---------------------------------------------------------------------------------------------------------------------

#: And what reduces parts of them.
_REDUCTIONS: dict[Any, Any] = {
    _ATEN.amax.default: _ATEN.amax.default,
    _ATEN.amin.default: _ATEN.amin.default,
    _ATEN.sum.dim_IntList: _ATEN.sum.dim_IntList,
    _ATEN.mean.dim: _ATEN.sum.dim_IntList,
}
#: Of those, the ones that round: in float32 alone, as a sum of sums is rounded once more.
_ROUNDED = (_ATEN.sum.dim_IntList, _ATEN.mean.dim)


@dataclass
class _Parts:
    """Arithmetic of rows that are concatenated of parts, and the same of the parts. `of[node]` is that of a node."""

    graph: Graph
    gathered: GatherConcat
    of: dict[Node, Node | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.of[self.gathered.node] = self.gathered.wait

    def takes(self, node: Node) -> bool:
        """Whether it works element by element on whole rows, with numbers as other operands."""
        value, row = node.meta.get("val"), self.gathered.node.meta["val"].shape[-1]
        if not isinstance(value, torch.Tensor) or not (is_elementwise(node) or moves_nothing(node)):
            return False
        if value.dim() == 0 or not same_sizes(value.shape[-1:], [row]):
            return False
        values = [one.meta.get("val") for one in node.all_input_nodes if one not in self.of]
        return all(not isinstance(one, torch.Tensor) or one.dim() == 0 for one in values)

    def part(self, node: Node) -> Node:
        """The node of the parts. They lie in the shape in which they arrive: views of whole rows change nothing."""
        made = self.of[node]
        if made is None and moves_nothing(node):
            made = self.part(node.all_input_nodes[0])
        elif made is None:
            given = {one: self.part(one) for one in node.all_input_nodes if one in self.of}
            with self.graph.inserting_before(node):
                made = self.graph.node_copy(node, lambda one: given.get(one, one))
            set_value(made)
        self.of[node] = made
        return made

    def reduce(self, node: Node) -> None:
        """Reduces parts of rows, which a region holds, and then what all ranks' parts have come to."""
        target = _REDUCTIONS[node.target]
        source = self.part(node.all_input_nodes[0])
        with self.graph.inserting_before(node):
            parts = _call(self.graph, target, source, [-1], True)
            ranks = len(self.gathered.node.args[0])  # type: ignore[arg-type]
            flat = _call(self.graph, _ATEN.reshape.default, parts, [ranks, -1])
            total = _call(self.graph, target, flat, [0])
            if node.target is _ATEN.mean.dim:
                total = _call(self.graph, _ATEN.div.Scalar, total, self.gathered.node.meta["val"].shape[-1])
            made = self.graph.call_function(_ATEN.reshape.default, (total, _known_shape(node)))
            made.meta = {**node.meta}
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)


def _known_shape(node: Node) -> list[int]:
    """The shape of its result; -1 for sizes that are not known when it is compiled."""
    return [size if isinstance(size, int) else -1 for size in node.meta["val"].shape]


def _is_of_rows(node: Node) -> bool:
    """Whether it reduces whole rows, and parts of them round no more."""
    source = node.all_input_nodes[0].meta["val"] if node.target in _REDUCTIONS else None
    if source is None or node.kwargs.get("dtype") is not None or reduced_dims(node, source.dim()) != [source.dim() - 1]:
        return False
    if _known_shape(node).count(-1) > 1:
        return False
    return node.target not in _ROUNDED or source.dtype is torch.float32


def _reduce_parts(graph: Graph, gathered: GatherConcat) -> bool:
    """Splits reductions of rows that are gathered along the last dimension; whether there are any."""
    if gathered.keeps_rows:
        return False
    parts = _Parts(graph, gathered)
    found = list[Node]()
    for node in graph.nodes:
        if node.op != "call_function" or node in parts.of or not any(one in parts.of for one in node.all_input_nodes):
            continue
        if _is_of_rows(node):
            found.append(node)
        elif parts.takes(node):
            parts.of[node] = None
    for node in found:
        parts.reduce(node)
    return bool(found)


def sink(graph: Graph) -> dict[Node, str]:
    """Moves what follows an all_gather along another dimension than 0 in front of its concatenation. Returns the
    collectives where nothing could be moved, and why."""
    left: dict[Node, str] = {}
    for node in list(graph.nodes):
        if node._erased or node.target is not _ATEN.cat.default:
            continue
        node = _joined_unaries(graph, node)
        gathered = GatherConcat.of(node)
        if gathered is None:
            continue
        if gathered.is_view():
            with graph.inserting_before(node):
                view = graph.call_function(_ATEN.reshape.default, (gathered.wait, list(node.meta["val"].shape)))
            view.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(view)
            _erase(graph, node)
            continue
        moved = _sink(graph, gathered)
        if not _reduce_parts(graph, moved or gathered) and not moved:
            left[gathered.wait.all_input_nodes[0]] = _unsupported_reason(gathered)
    return left


# ---------------------------------------------------------------------------------------------------------------------
# Permutations of dimensions
# ---------------------------------------------------------------------------------------------------------------------


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(dim) for dim in range(len(order)))


def _dims(node: Node) -> int:
    return int(node.meta["val"].dim())


def _call(graph: Graph, target: Any, *given: Any) -> Node:
    made = graph.call_function(target, given)
    set_value(made)
    return made


@dataclass
class _Permuted:
    """Nodes of a graph that are permutations of others: `of[node]` is such another, and the order of its dimensions."""

    graph: Graph
    #: What permutations are looked at of.
    known: Container[Node]
    of: dict[Node, tuple[Node, tuple[int, ...]]] = field(default_factory=dict)
    #: Whether arithmetic has moved.
    has_moved: bool = False

    def add_permutation(self, node: Node) -> None:
        source, dims = node.args
        assert isinstance(source, Node)
        order = tuple(int(dim) % _dims(source) for dim in dims)  # type: ignore[union-attr, arg-type]
        if source in self.of:
            first, before = self.of[source]
            self.of[node] = first, tuple(before[dim] for dim in order)
        elif source in self.known:
            self.of[node] = source, order

    def add_arithmetic(self, node: Node) -> None:
        """What is made element by element of permuted tensors, or of rows that the permutation leaves whole."""
        orders = {self.of[one][1] for one in node.all_input_nodes if one in self.of}
        if len(orders) != 1 or not isinstance(node.meta.get("val"), torch.Tensor):
            return
        (order,) = orders
        if not self._takes(node, order):
            return
        with self.graph.inserting_before(node):
            given = {one: self._given(one, order) for one in node.all_input_nodes}
            made = self.graph.node_copy(node, given.__getitem__)
        set_value(made)
        self.of[node] = made, order
        # Copies and parts alone gain nothing where they are.
        self.has_moved = self.has_moved or (node.target is not _ATEN.clone.default and not is_part(node))

    def add_split(self, node: Node) -> None:
        """Parts of a permuted tensor, each by itself."""
        if node.all_input_nodes[0] in self.of:
            for part in parts_alone(self.graph, node):
                self.add_arithmetic(part)

    def _takes(self, node: Node, order: tuple[int, ...]) -> bool:
        if _dims(node) != len(order) or any(self._is_too_long(one, order) for one in node.all_input_nodes):
            return False
        if is_row_statistic(node) or cuts_last_dim(node):
            return order[-1] == len(order) - 1
        if not is_elementwise(node):
            return False
        # Rows and what each row has one of are permuted alike.
        shape = node.meta["val"].shape
        return any(same_sizes(one.meta["val"].shape, shape) for one in node.all_input_nodes if one in self.of)

    def _is_too_long(self, node: Node, order: tuple[int, ...]) -> bool:
        value = node.meta.get("val")
        return isinstance(value, torch.Tensor) and node not in self.of and value.dim() > len(order)

    def _given(self, node: Node, order: tuple[int, ...]) -> Node:
        """An operand as it lies before the permutation."""
        if node in self.of:
            return self.of[node][0]
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            return node
        whole = node
        for _ in range(len(order) - value.dim()):
            whole = _call(self.graph, _ATEN.unsqueeze.default, whole, 0)
        back = _inverse(order)
        if all(statically_one(size) or back[dim] == dim for dim, size in enumerate(whole.meta["val"].shape)):
            moved = [whole.meta["val"].shape[dim] for dim in back]
            if same_sizes(moved, whole.meta["val"].shape):
                return node if whole is node else whole
        return _call(self.graph, _ATEN.permute.default, whole, list(back))

    def write(self) -> None:
        """Has what is needed elsewhere read by a permutation of what was moved, and takes out the rest."""
        for node, (source, order) in self.of.items():
            if all(user in self.of for user in node.users):
                continue
            with self.graph.inserting_before(node):
                made = source
                if order != tuple(range(len(order))):
                    made = self.graph.call_function(_ATEN.permute.default, (source, list(order)))
                    made.meta = {**node.meta}
                    set_value(made)
            node.replace_all_uses_with(made, delete_user_cb=lambda user: user not in self.of)
        for node in reversed(list(self.of)):
            if not node.users:
                self.graph.erase_node(node)

    def drop_copies(self) -> None:
        """Takes out what was made in front of permutations, where nothing reads it."""
        for made in {source: None for source, _ in reversed(self.of.values())}:
            if made.target is _ATEN.clone.default and not made.users:
                self.graph.erase_node(made)


def statically_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def sink_permutations(graph: Graph, known: Container[Node]) -> None:
    """Moves arithmetic in front of permutations of the dimensions of `known` nodes, and what follows from them."""
    permuted = _Permuted(graph, known)
    for node in list(graph.nodes):
        if node._erased:
            continue
        if node.target is _ATEN.permute.default:
            permuted.add_permutation(node)
        elif node.target in (_ATEN.split.Tensor, _ATEN.split_with_sizes.default):
            permuted.add_split(node)
        elif node.op == "call_function":
            permuted.add_arithmetic(node)
    if permuted.has_moved:
        permuted.write()
    else:
        permuted.drop_copies()
