"""Replaces several collectives of a graph by one.

A sum of all_reduces, `all_reduce(a) + all_reduce(b) + ...`, becomes one all_reduce of `a + b + ...`, for example for
the gradients of q, k and v, of gate and up, of attention and MLP in parallel, and of shared and routed experts.
reduce_scatter is treated alike. Equal collectives of one tensor are replaced by one, whose result all of them use.
A sum of an all_reduce over its first dimensions, as over experts, is the all_reduce of that sum, which is smaller.
An all_reduce of which the program reads the rank's own part alone is a reduce_scatter.

Other ranks may have compiled something else and run the collectives one by one, on values that need not be equal there.
So the remaining collective records what it replaces, and until all ranks agree (agreement.py), each of the replaced
ones runs as the process group's own collective, with its own result. That requires that they begin directly one after
the other; if another collective begins in between, they stay.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch.collectives import Collective, collectives_of, is_communication, set_value
from commsir.torch.regions import Unsupported, moves_nothing, reduced_dims, same_sizes, slice_of
from commsir.torch.reporting import described

__all__ = ["JoinedCollectives", "join"]

#: Of sums that could be one: why they are faster as they are; empty: they are not.
WhyApart = Callable[[list[Collective]], str]

_ADD = torch.ops.aten.add.Tensor
_RESHAPE = torch.ops.aten.reshape.default
_SUM = torch.ops.aten.sum.dim_IntList
_WAIT = torch.ops._c10d_functional.wait_tensor.default
_SCATTER = torch.ops._c10d_functional.reduce_scatter_tensor.default
_SLICE, _SPLIT = torch.ops.aten.slice.Tensor, torch.ops.aten.split.Tensor
_C10D: Any = torch.distributed.distributed_c10d


@dataclass(frozen=True)
class JoinedCollectives:
    """The collectives that one collective replaces."""

    #: The inputs of those that are summed up, or of one whose result is summed up over its first dimensions.
    parts: tuple[Node, ...] = ()
    #: Or others like itself, of the same input.
    others: tuple[Node, ...] = ()
    #: Whether the result of one is summed up over its first dimensions, before it is sent.
    sums_first: bool = False
    #: Of an all_reduce whose own part alone is read: the dimension that ranks divide.
    own_dim: int | None = None

    @property
    def count(self) -> int:
        return len(self.parts) or 1 + len(self.others)


def _value(node: Node) -> Any:
    return node.meta["val"]


def _dtype(node: Any) -> torch.dtype | None:
    """Returns the type of a tensor, or None for a number, which may be unknown at compile time."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value.dtype if isinstance(value, torch.Tensor) else None


def _takes(collective: Collective) -> bool:
    """Whether a kernel can replace it, which ranks agree on."""
    if not collective.may_be_fused():
        return False
    try:
        collective.begin()
    except Unsupported:
        return False
    return True


@dataclass(frozen=True)
class _GraphCollectives:
    """The collectives of a graph, and all nodes that ranks meet in, in order."""

    known: dict[Node, Collective]
    order: tuple[Node, ...]

    @classmethod
    def of(cls, graph: Graph) -> _GraphCollectives:
        known = {one.node: one for one in collectives_of(graph)}
        order = (node for node in graph.nodes if node in known or (is_communication(node) and node.target is not _WAIT))
        return cls(known, tuple(order))

    def left(self) -> list[Collective]:
        """The collectives that still exist."""
        return [one for one in self.known.values() if not one.node._erased]

    def between(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that begin between the first and the last of `nodes`, and are none of them."""
        members = dict.fromkeys(nodes)
        left = [node for node in self.order if not node._erased]
        places = [place for place, node in enumerate(left) if node in members]
        return [node for node in left[places[0] : places[-1]] if node not in members]

    def runs(self, nodes: Iterable[Node]) -> Iterator[list[Node]]:
        """Runs of two or more collectives that begin one right after the other, in the graph's order."""
        members = set(nodes)
        left = (node for node in self.order if not node._erased)
        for is_member, run in groupby(left, members.__contains__):
            found = list(run)
            if is_member and len(found) > 1:
                yield found


# ---------------------------------------------------------------------------------------------------------------------
# The same collective of the same tensor
# ---------------------------------------------------------------------------------------------------------------------


def _join_same(begun: _GraphCollectives) -> dict[Node, JoinedCollectives]:
    alike: dict[Any, list[Node]] = {}
    for one in begun.left():
        alike.setdefault((one.node.target, one.foreign_text, one.node.args), []).append(one.node)
    made: dict[Node, JoinedCollectives] = {}
    for nodes in (some for some in alike.values() if len(some) > 1 and _takes(begun.known[some[0]])):
        for first, *others in begun.runs(nodes):
            made[first] = JoinedCollectives(others=tuple(others))
    return made


# ---------------------------------------------------------------------------------------------------------------------
# Sums
# ---------------------------------------------------------------------------------------------------------------------


def _is_sum(node: Any, like: Node | None = None) -> bool:
    """Whether it adds two tensors of its own type, and nobody else reads what `like`, the sum of it, reads."""
    if not isinstance(node, Node) or node.target is not _ADD or node.kwargs or node.args[0] is node.args[1]:
        return False
    if _dtype(node) is None or not all(_dtype(one) == _dtype(node) for one in node.args):
        return False
    return like is None or (len(node.users) == 1 and _dtype(node) == _dtype(like))


def _sums_of(root: Node) -> list[Node]:
    """Returns the additions of a tree, starting from the root."""
    found = [root]
    for node in found:
        found += [one for one in node.args if isinstance(one, Node) and _is_sum(one, root)]
    return found


def _leaves(root: Node) -> list[Node]:
    """Returns the summands of a tree of additions."""
    tree = dict.fromkeys(_sums_of(root))
    return [one for node in tree for one in node.all_input_nodes if one not in tree]


def _begun_by(leaf: Node) -> Node | None:
    """The collective whose result this is, past views, where nobody else reads it."""
    node = leaf
    waited = False
    while len(node.users) == 1 and moves_nothing(node):
        waited = waited or node.target is _WAIT
        source = node.args[0]
        assert isinstance(source, Node)
        node = source
    return node if waited and len(node.users) == 1 else None


def _group_of(collective: Collective) -> Any:
    """Properties that must be equal for collectives to be joined; shapes are equal if results are added."""
    return collective.op, collective.group, collective.foreign_text, collective.node.args[1:], _dtype(collective.node)


def _without(graph: Graph, leaf: Node) -> None:
    """Removes a leaf from its tree of additions."""
    (parent,) = leaf.users
    others = [one for one in parent.args if one is not leaf]
    (other,) = others
    assert isinstance(other, Node)
    parent.replace_all_uses_with(other)
    graph.erase_node(parent)
    while not leaf.users:
        source = leaf.all_input_nodes[0]
        graph.erase_node(leaf)
        if not moves_nothing(leaf):
            break
        leaf = source


def _total(graph: Graph, last: Node, parts: list[Node]) -> Node:
    """The sum of this rank's parts, right before the collective `last`, in the shape of its input."""
    shape = _value(parts[-1]).shape

    def made(target: Any, *given: Any) -> Node:
        node = graph.call_function(target, given)
        set_value(node)
        return node

    with graph.inserting_before(last):
        rows = [one if same_sizes(_value(one).shape, shape) else made(_RESHAPE, one, list(shape)) for one in parts]
        return reduce(lambda a, b: made(_ADD, a, b), rows)


def _summed_chain(collective: Collective) -> list[Node]:
    """What follows an all_reduce up to a sum over the first dimensions of its result, if nothing else reads that: views
    of sizes that are known, and the sum."""
    chain = list[Node]()
    node = collective.node
    while len(node.users) == 1 and (not chain or moves_nothing(chain[-1])):
        (node,) = node.users
        if node.op != "call_function" or len(node.all_input_nodes) != 1:
            return []
        chain.append(node)
    if not chain or chain[-1].target is not _SUM or chain[-1].kwargs.get("dtype") is not None:
        return []
    value, made = _value(chain[-1].all_input_nodes[0]), _value(chain[-1])
    dims = reduced_dims(chain[-1], value.dim())
    is_of_first = 0 < len(dims) < value.dim() and dims == list(range(len(dims)))
    has_rows = made.dim() > 0 and isinstance(made.shape[-1], int) and made.shape[-1] > 1
    return chain if is_of_first and has_rows and made.dtype == value.dtype else []


def _sum_first(graph: Graph, begun: _GraphCollectives) -> dict[Node, Node]:
    """Moves sums over the first dimensions of all_reduces before these. Returns the collectives, with the inputs that
    they had."""
    found: dict[Node, Node] = {}
    for one in begun.left():
        chain = _summed_chain(one) if one.op == "all_reduce" and one.reduce_op == "sum" and _takes(one) else []
        if not chain:
            continue
        before, last = one.node.all_input_nodes[0], chain[-1]
        given = before
        with graph.inserting_before(one.node):
            for node in chain:
                if node.target is _WAIT:
                    continue
                given = graph.node_copy(node, lambda source, given=given: given)  # type: ignore[misc]
                set_value(given)
        found[one.node] = before
        one.node.args = (given, *one.node.args[1:])
        (wait,) = one.node.users
        for node in (one.node, wait):
            set_value(node)
        last.replace_all_uses_with(wait)
        for node in reversed(chain):
            if node is not wait:
                graph.erase_node(node)
    return found


def _join_sums(
    graph: Graph,
    begun: _GraphCollectives,
    why: dict[Node, str],
    why_apart: WhyApart,
    had: dict[Node, Node],
) -> dict[Node, JoinedCollectives]:
    made: dict[Node, JoinedCollectives] = {}
    for root in list(graph.nodes):
        # Nodes of trees that are done are gone.
        if not root._erased and _is_sum(root) and not any(_is_sum(user) and _is_sum(root, user) for user in root.users):
            made.update(_join_tree(graph, root, begun, why, why_apart, had))
    return {
        **{node: JoinedCollectives((before,), sums_first=True) for node, before in had.items() if not node._erased},
        **made,
    }


def _join_tree(
    graph: Graph,
    root: Node,
    begun: _GraphCollectives,
    why: dict[Node, str],
    why_apart: WhyApart,
    had: dict[Node, Node],
) -> dict[Node, JoinedCollectives]:
    groups: dict[Any, dict[Node, Node]] = {}
    for leaf in _leaves(root):
        one = begun.known.get(_begun_by(leaf))  # type: ignore[arg-type]
        if one is not None and one.reduce_op == "sum" and same_sizes(_value(leaf).shape, _value(root).shape):
            groups.setdefault(_group_of(one), {})[one.node] = leaf
    made: dict[Node, JoinedCollectives] = {}
    for leaves in (some for some in groups.values() if len(some) > 1 and _takes(begun.known[next(iter(some))])):
        others = ", ".join(described(node) for node in begun.between(leaves))
        for node in leaves:
            why[node] = f"it is added to others of its kind, but others begin between them: {others}"
        for run in begun.runs(leaves):
            if reason := "" if begun.known[run[0]].foreign else why_apart([begun.known[node] for node in run]):
                why.update(dict.fromkeys(run, reason))
            else:
                made[run[-1]] = _join_run(graph, run, leaves, had)
    for node in made:
        why.pop(node, None)
    return made


def _join_run(graph: Graph, run: list[Node], leaves: dict[Node, Node], had: dict[Node, Node]) -> JoinedCollectives:
    """One collective, in the place of the last, of the sum of their inputs. `had`: the inputs that some had."""
    parts = tuple(one.all_input_nodes[0] for one in run)
    last, whole = run[-1], tuple(had.get(one, part) for one, part in zip(run, parts, strict=True))
    last.args = (_total(graph, last, list(parts)), *last.args[1:])
    for one in run[:-1]:
        _without(graph, leaves[one])
    # Sums may have become smaller: what was added to a whole result is now added to a row.
    node = leaves[last]
    while len(node.users) == 1 and _is_sum(user := next(iter(node.users))):
        for one in reversed(_sums_of(user)):
            set_value(one)
        node = user
    return JoinedCollectives(whole, sums_first=any(one in had for one in run))


# ---------------------------------------------------------------------------------------------------------------------
# Own parts
# ---------------------------------------------------------------------------------------------------------------------


def _own_part(node: Node, rank: int, ranks: int) -> tuple[int, list[Node]] | None:
    """The dimension of which a node takes the rank's own part, and the nodes that are this part."""
    source = node.args[0]
    if node.target not in (_SLICE, _SPLIT) or not isinstance(source, Node) or len(node.args) < 2:
        return None
    shape = _value(source).shape
    dim: Any = (node.args[1] if node.target is _SLICE else (*node.args[2:], 0)[0]) % max(len(shape), 1)  # type: ignore[operator]
    size = shape[dim]
    if not isinstance(size, int) or size % ranks:
        return None
    own = size // ranks
    if node.target is _SLICE:
        given = slice_of(node)
        if not all(one is None or isinstance(one, int) for one in given):
            return None
        taken = range(size)[slice(*given)]
        return (dim, [node]) if taken == range(own * rank, own * (rank + 1)) else None
    is_own = node.args[1] == own and all(user.args[1] == rank for user in node.users)
    return (dim, list(node.users)) if is_own else None


def _own_reader(collective: Collective, rank: int, ranks: int) -> tuple[int, list[Node]] | None:
    """The same of all that reads the collective's result."""
    waits = list(collective.node.users)
    if len(waits) != 1 or waits[0].target is not _WAIT or not waits[0].users:
        return None
    found = [_own_part(user, rank, ranks) for user in waits[0].users]
    parts = [one for one in found if one is not None]
    if len(parts) < len(found) or len({dim for dim, _ in parts}) > 1:
        return None
    nodes = [node for _, some in parts for node in some]
    last = _value(nodes[0]).shape[-1] if nodes and all(node.users for node in nodes) else 1
    return (parts[0][0], nodes) if isinstance(last, int) and last > 1 and _value(nodes[0]).dim() > 1 else None


def _scatter_own(
    graph: Graph, begun: _GraphCollectives, done: Iterable[Node], why_apart: WhyApart
) -> dict[Node, JoinedCollectives]:
    """Replaces all_reduces of which the own part alone is read by reduce_scatters."""
    made: dict[Node, JoinedCollectives] = {}
    known = set(done)
    for one in begun.left():
        if one.op != "all_reduce" or one.foreign or one.node in known or not _takes(one):
            continue
        group = _C10D._resolve_process_group(one.group)
        ranks = int(group.size())
        found = _own_reader(one, int(group.rank()), ranks) if ranks > 1 else None
        if found is None or why_apart([one]):  # It overlaps with its matmul.
            continue
        dim, readers = found
        source = one.node.all_input_nodes[0]
        with graph.inserting_before(one.node):
            given = source if dim == 0 else _divided(graph, source, dim, ranks)
            scattered = graph.call_function(_SCATTER, (given, one.reduce_op, ranks, one.group))
            scattered.meta = {**one.node.meta}
            set_value(scattered)
        (wait,) = one.node.users
        with graph.inserting_before(wait):
            result = graph.call_function(_WAIT, (scattered,))
            result.meta = {**wait.meta}
            set_value(result)
        for node in readers:
            node.replace_all_uses_with(result)
        for node in [*readers, *wait.users, wait, one.node]:
            if not node._erased:
                graph.erase_node(node)
        made[scattered] = JoinedCollectives((source,), own_dim=dim)
    return made


def _divided(graph: Graph, source: Node, dim: int, ranks: int) -> Node:
    """The parts along a dimension, one after the other along the first."""
    split = graph.call_function(_SPLIT, (source, _value(source).shape[dim] // ranks, dim))
    set_value(split)
    parts = []
    for number in range(ranks):
        parts.append(graph.call_function(operator.getitem, (split, number)))
        parts[-1].meta["val"] = split.meta["val"][number]
    whole = graph.call_function(torch.ops.aten.cat.default, (parts,))
    set_value(whole)
    return whole


def join(graph: Graph, why_apart: WhyApart, sums: bool = True) -> tuple[dict[Node, JoinedCollectives], dict[Node, str]]:
    """Takes out the collectives that others can stand for. Returns those others, with what each stands for, and why
    some that are added up stay. `sums`: sums of sums, too, whose addends are added up before they are sent;
    `why_apart` says why some are faster as they are, or nothing."""
    why: dict[Node, str] = {}
    begun = _GraphCollectives.of(graph)
    had = _sum_first(graph, begun) if sums else {}
    made = _join_sums(graph, begun, why, why_apart, had) if sums else {}
    made |= _join_same(begun)
    others = [other for one in made.values() for other in one.others]
    return made | _scatter_own(graph, begun, [*made, *others], why_apart), why
