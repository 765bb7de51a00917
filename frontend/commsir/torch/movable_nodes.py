"""Which nodes of a graph come before a collective begins, or can be moved there."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from commsir.torch.collectives import is_communication
from commsir.torch.reporting import described

__all__ = ["WAIT", "Hoister"]

WAIT = torch.ops._c10d_functional.wait_tensor.default


def _is_random(node: Node) -> bool:
    """Whether the node only draws random numbers."""
    schema = getattr(node.target, "_schema", None)
    is_mutable = schema is not None and schema.is_mutable
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not is_mutable


def _is_pinned(node: Node) -> bool:
    """Whether the node begins an operation that other ranks wait for, or has effects."""
    if node.op != "call_function":
        return False
    # Calls of ours in the program are effects.
    effect = node.target is torch.ops.higher_order.with_effects
    return effect or is_communication(node) or _is_random(node) or node.is_impure()


class Hoister:
    """The nodes that come before a collective begins, or can be moved there.

    The kernel must be at that place: all ranks begin collectives in one order, but may wait for them, and use their
    results, in different orders.
    """

    def __init__(self, graph: Graph, start: Node) -> None:
        self._start = start
        self._places = {node: place for place, node in enumerate(graph.nodes)}
        #: What random numbers were drawn by, or may have been, right before a node draws some.
        self._drawn_before: dict[Node, Node] = {}
        drawn: Node | None = None
        for node in self._places:
            if _is_random(node) or (_is_pinned(node) and not is_communication(node)):
                if drawn is not None:
                    self._drawn_before[node] = drawn
                drawn = node
        #: What keeps a node behind that place; None: nothing.
        self._known: dict[Node, Node | None] = {start: start}

    def _is_later(self, node: Node) -> bool:
        return self._places[node] >= self._places[self._start]

    def __contains__(self, node: Node) -> bool:
        return self._appended(node) is None

    def why_not(self, node: Node) -> str:
        """Returns why a node cannot be moved before the collective."""
        last = self._appended(node)
        assert last is not None
        if last is self._start:
            return f"which needs {described(last)} itself"
        if last.target is torch.ops.higher_order.with_effects or is_communication(last):
            return "which is there once a later collective has begun"
        what = f"for which {described(last)} " if last is not node else "which "
        return f"{what}has an effect after the collective has begun"

    def _needed_by(self, node: Node) -> list[Node]:
        """What has to be there before it: what it reads, and of random numbers those that are drawn earlier."""
        earlier = self._drawn_before.get(node) if _is_random(node) else None
        return [*node.all_input_nodes, *([] if earlier is None else [earlier])]

    def _appended(self, node: Node) -> Node | None:
        waiting = [node]
        while waiting:
            last = waiting[-1]
            sources = [one for one in self._needed_by(last) if self._is_later(one)]
            unknown = [one for one in sources if one not in self._known]
            if unknown and last not in self._known:
                waiting += unknown
                continue
            waiting.pop()
            if last not in self._known:
                # To wait earlier than it is written changes nothing.
                stays = last.target is not WAIT and _is_pinned(last) and not _is_random(last)
                blocks = [self._known[one] for one in sources if self._known[one] is not None]
                self._known[last] = (
                    None if not self._is_later(last) else last if stays else blocks[0] if blocks else None
                )
        return self._known[node]

    def move(self, nodes: list[Node]) -> None:
        """Puts what is needed for `nodes` before the collective."""
        needed: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if self._is_later(node) and node not in needed:
                needed.add(node)
                waiting += self._needed_by(node)
        for node in sorted(needed, key=self._places.__getitem__):
            self._start.prepend(node)
