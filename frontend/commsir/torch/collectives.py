"""Finds collectives in FX graphs: which ones can begin a region, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from commsir.torch.agreement import digest_of
from commsir.torch.capi import element_type
from commsir.torch.foreign_calls import ForeignCall
from commsir.torch.regions import Region, Unsupported

__all__ = [
    "FOREIGN",
    "WHY_LEFT",
    "Collective",
    "collectives_of",
    "is_communication",
    "named_argument",
    "operation_of",
    "registered",
    "set_value",
    "site_of",
]

#: Keys of a node's `meta`: the call of another library's operation that it replaces, and why a call is not replaced.
FOREIGN, WHY_LEFT = "commsir_foreign", "commsir_why_left"
#: Operations of other libraries that are registered as collectives, and what foreign_collectives.py knows of them.
registered: dict[Any, Any] = {}

_functional = torch.ops._c10d_functional
#: Operations that ranks meet in.
_COMMUNICATION = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "commsir", "symm_mem", "_dtensor")
#: Of those, the ones that are no collectives.
_NO_COLLECTIVES = ("wait_tensor", "_wrap_tensor_autograd", "_unfused", "_nothing")
#: What an operation of somebody else's is called that may be a collective.
_NAMES = ("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "all_to_all", "alltoall")
_FUSED: dict[Any, str] = {
    _functional.all_reduce.default: "all_reduce",
    _functional.reduce_scatter_tensor.default: "reduce_scatter",
    _functional.all_gather_into_tensor.default: "all_gather",
    _functional.all_to_all_single.default: "all_to_all",
}
_WRITERS = (torch.ops.higher_order.auto_functionalized, torch.ops.higher_order.auto_functionalized_v2)
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: What arrives as it was sent may be of these types, too.
_QUANTIZED = (torch.float8_e4m3fn, torch.float8_e5m2, torch.int8)
_REDUCE_OPS = ("", "sum", "avg", "max", "min")


@dataclass(frozen=True)
class Collective:
    """A collective in a graph; `whole` where it has the form that regions begin with."""

    node: Node
    op: str
    reduce_op: str
    #: Its name; a newer torch puts the group itself into a graph that is compiled for several ranks.
    group: Any
    whole: bool
    #: The type that travels in place of the input's: everything that reads the result casts it to that.
    sent: torch.dtype | None = field(default=None, compare=False)
    #: The call of another library's operation that it stands for.
    foreign: ForeignCall | None = None

    @property
    def foreign_text(self) -> str:
        """That call as text; empty: it is torch's."""
        return self.foreign.text() if self.foreign else ""

    @property
    def value(self) -> torch.Tensor | None:
        """Fake value of its result, or of the first one."""
        value = first_tensor(self.node.meta.get("val"))
        if value is None:  # What writes into its arguments.
            value = first_tensor([one.meta.get("val") for one in self.node.all_input_nodes])
        return value

    @property
    def shape(self) -> tuple[Any, ...]:
        """Shape of its result, or of the first one."""
        return () if self.value is None else tuple(self.value.shape)

    def may_be_fused(self) -> bool:
        """Whether a rank can have a kernel in its place, by all that is the same on every rank."""
        # Splits of an all_to_all need not be the same on every rank.
        is_taken = self.whole or self.op == "all_to_all"
        if not is_taken or not isinstance(self.group, str) or _has_cpp_wrapper():
            return False
        return self._takes(self.node.meta["val"].dtype) and self.reduce_op in _REDUCE_OPS

    def _takes(self, dtype: torch.dtype) -> bool:
        return dtype in _FLOATS or (not self.reduce_op and dtype in _QUANTIZED)

    def begin(self, columns: int | None = None, rounded: frozenset[Node] = frozenset()) -> Region:
        """The region that holds what arrives and nothing else; `columns`: of its rows, if not the last dimension's;
        `rounded`: nodes that the region stores."""
        if not self.whole:
            raise Unsupported(self._partial_reason())
        if _has_cpp_wrapper():
            raise Unsupported("cpp_wrapper is on, whose code cannot call the fused operation")
        if not isinstance(self.group, str):
            raise Unsupported("its group has no name in the graph (torch.compiler.config.compile_on_one_rank)")
        source = self.node.args[0]
        assert isinstance(source, Node)
        value, result = source.meta["val"], self.node.meta["val"]
        if not self._takes(value.dtype):
            taken = "" if self.reduce_op else ", and of what is not reduced fp8 and int8,"
            raise Unsupported(f"it is of {value.dtype}: float32, float16 and bfloat16{taken} are taken")
        if self.reduce_op not in _REDUCE_OPS:
            raise Unsupported(f'it reduces by "{self.reduce_op}"')
        if value.dim() == 0:
            raise Unsupported("it is one number: there are no rows in a tensor without dimensions")
        if not isinstance(value.shape[-1], int):
            raise Unsupported(f"its last dimension is not known when it is compiled: {list(value.shape)}")
        if value.dim() == 1 and self.op != "all_reduce":
            raise Unsupported("it has one dimension, and is cut along it")
        if columns is None:
            columns = int(value.shape[-1])
        if columns < 2:
            raise Unsupported(f"its rows have {columns} elements: {list(value.shape)}")
        arrives = "f32" if self.reduce_op else element_type(self.sent or value.dtype)
        region = Region(columns, result.numel() // columns, [arrives], rounded=rounded)
        region.begin(self.node, "%w0", arrives)
        return region

    def row_sizes(self) -> Iterator[int]:
        """Elements that rows may have: those of the last dimension, parts of it, or of several last ones together."""
        shape = self.node.args[0].meta["val"].shape  # type: ignore[union-attr]
        last = shape[-1] if len(shape) else 1
        if not isinstance(last, int):
            return
        yield from (part for part in range(2, last + 1) if last % part == 0)
        # The first dimension is what ranks share out, or gather along.
        for size in reversed(shape[0 if self.op == "all_reduce" else 1 : -1]):
            if not isinstance(size, int):
                return
            last *= size
            yield last

    def _partial_reason(self) -> str:
        if why := self.node.meta.get(WHY_LEFT):
            return str(why)
        if self.op == "all_to_all":
            return "its parts are not of one size that is known when it is compiled"
        target = operation_of(self.node)
        taken = "regions begin with all_reduce, reduce_scatter_tensor, all_gather_into_tensor and all_to_all_single"
        if target.namespace == "commsir":
            return "it is a call of torch.ops.commsir in the program, which is left as it is"
        if target.namespace not in _COMMUNICATION and not target._schema.is_mutable:
            return (
                "the pass knows only the name of this operation: commsir.torch.register_collective says which "
                "collective it is; or a pass before this one writes torch.distributed's functional collective"
            )
        if "coalesced" in self.op:
            return f"it takes several tensors at once; {taken} of one tensor"
        if self.op.endswith(("_", "_out")) or target._schema.is_mutable:
            return f"it writes into a tensor that it is given; {taken} that make their result"
        return f"{taken}, not with {self.op}"


def _has_cpp_wrapper() -> bool:
    config: Any = torch._inductor.config
    return bool(config.cpp_wrapper)


def first_tensor(value: Any) -> torch.Tensor | None:
    """Returns the first tensor of a possibly nested value."""
    if isinstance(value, (list, tuple)):
        return next((found for found in map(first_tensor, value) if found is not None), None)
    return value if isinstance(value, torch.Tensor) else None


def operation_of(node: Node) -> Any:
    """Returns the called operation, without a wrapper for effects, or for writing into its arguments."""
    if node.target is torch.ops.higher_order.with_effects:
        return node.args[1]
    if node.target in _WRITERS:
        return node.args[0]
    return node.target


def _is_named_as_collective(target: Any) -> bool:
    """Whether it is an operation of another library that may be a collective, by its name."""
    if target in registered:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target.namespace in ("aten", "prims", *_COMMUNICATION):
        return False
    return any(one in target._opname for one in _NAMES)


def is_communication(node: Node) -> bool:
    """Whether other ranks may wait for the operation."""
    if node.op != "call_function":
        return False
    target = operation_of(node)
    return getattr(target, "namespace", "") in _COMMUNICATION or _is_named_as_collective(target)


def named_argument(node: Node, *names: str) -> Any:
    """The argument of a call with one of these names; None: it has none."""
    schema = getattr(operation_of(node), "_schema", None)
    given = node.args if operation_of(node) is node.target else node.args[2:]
    for place, argument in enumerate(schema.arguments if schema else ()):
        if argument.name in names:
            return node.kwargs.get(argument.name, given[place] if place < len(given) else argument.default_value)
    return None


def _collective(node: Node) -> Collective | None:
    target = operation_of(node)
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return None
    name = target._opname
    if not is_communication(node) or (target.namespace in _COMMUNICATION and name in _NO_COLLECTIVES):
        return None
    reduce_op, group = named_argument(node, "reduce_op"), named_argument(node, "group_name", "group", "process_group")
    op = _FUSED.get(node.target)
    whole = op is not None and (op != "all_to_all" or _has_equal_parts(node))
    return Collective(node, op or name, str(reduce_op or ""), group, whole, foreign=node.meta.get(FOREIGN))


def _has_equal_parts(node: Node) -> bool:
    """Whether an all_to_all_single sends as much to each rank, and gets as much."""
    sizes: list[Any] = [*node.args[1], *node.args[2]]  # type: ignore[misc]
    return all(isinstance(size, int) for size in sizes) and len(set(sizes)) == 1


def collectives_of(graph: Graph) -> Iterator[Collective]:
    """Returns all collectives of the graph, in the order in which they begin."""
    for node in list(graph.nodes):
        if made := _collective(node):
            yield made


def site_of(collective: Collective, all_of_graph: list[Collective], *what: Any) -> str:
    """A name for the place, and for what is there; on all ranks the same where they have compiled the same. It tells
    graphs apart by the collectives of the group that they have."""

    def sizes(one: Collective) -> tuple[Any, ...]:
        # Ranks need not have come to know the same sizes as constants.
        return tuple(size if isinstance(size, int) else "?" for size in one.shape)

    # Other libraries' operations need not be known on every rank.
    own = [one for one in all_of_graph if one.group == collective.group and _library(one) == _library(collective)]
    kinds = [(one.op, one.reduce_op, sizes(one)) for one in own]
    place = digest_of(kinds, own.index(collective), *what)
    return collective.foreign.at(place) if collective.foreign else place


def _library(one: Collective) -> str:
    """The operation of another library that it is; empty: torch's."""
    if one.foreign:
        return one.foreign.operation
    target = operation_of(one.node)
    return "" if target.namespace in _COMMUNICATION else str(target.name())


def set_value(node: Node) -> None:
    """Sets the op's result as its fake kernel describes it."""

    arguments = map_arg(node.args, lambda one: one.meta["val"])
    named = map_arg(node.kwargs, lambda one: one.meta["val"])
    mode = torch._guards.detect_fake_mode([arguments, named])
    assert callable(node.target)
    if mode is None:
        node.meta["val"] = node.target(*arguments, **named)
        return
    with mode:
        node.meta["val"] = node.target(*arguments, **named)
