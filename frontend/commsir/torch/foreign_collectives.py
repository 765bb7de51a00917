"""Operations of other libraries that the pass treats as torch's collectives."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.errors import UsageError
from commsir.torch.collectives import FOREIGN, WHY_LEFT, operation_of, registered, set_value
from commsir.torch.foreign_calls import ForeignCall
from commsir.torch.regions import Unsupported, same_sizes

__all__ = ["Replacement", "announce", "group_of", "is_any_in", "register_collective", "restore", "uuid", "write"]

_C10D: Any = torch.distributed.distributed_c10d
_FUNCTIONAL: Any = torch.ops._c10d_functional
#: How they are called: the collective, then its arguments behind the input; "ranks" and "reduce" stand for those.
_OWN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "all_reduce": (_FUNCTIONAL.all_reduce.default, ("reduce",)),
    "reduce_scatter": (_FUNCTIONAL.reduce_scatter_tensor.default, ("reduce", "ranks")),
    "all_gather": (_FUNCTIONAL.all_gather_into_tensor.default, ("ranks",)),
}
_GROUPS = ("group_name", "group", "process_group")
#: A call of an operation that writes into an argument: the result, and then what it has written.
_WRITER = torch.ops.higher_order.auto_functionalized_v2
_RESHAPE = torch.ops.aten.reshape.default

#: From the value of the operation's group argument to the process group, or its name.
Groups = Mapping[Any, Any] | Callable[[Any], Any]


@dataclass(frozen=True)
class _Registration:
    op: str
    reduce_op: str
    groups: Groups | None

    def key(self) -> Any:
        """Key for Inductor's cache; None: changes of the groups are not detectable."""
        if callable(self.groups):
            return None
        names = sorted((str(key), group_of(group)) for key, group in (self.groups or {}).items())
        return (self.op, self.reduce_op, tuple(names))


# ---------------------------------------------------------------------------------------------------------------------
# Registration
# ---------------------------------------------------------------------------------------------------------------------

_meanings: dict[Any, _Registration] = registered


def group_of(group: Any) -> str:
    """Returns the name of a process group that is given as an object or by name."""
    return group if isinstance(group, str) else str(group.group_name)


def register_collective(operation: Any, op: str, *, reduce_op: str = "sum", groups: Groups | None = None) -> None:
    """Registers an operation as a collective, so that `torch.compile` fuses it with adjacent arithmetic.

    `operation` is a custom op, one of `torch.ops`, or its name, "library::name". `op` is "all_reduce", or "all_gather"
    or "reduce_scatter" along the dimension whose size differs from the input's. The operation reads one tensor, its
    first argument that is a tensor; and it returns the result, or a list with one tensor for each rank (of an
    all_gather), or it writes the result into an argument, which may be the one that it reads.
    `groups` gives the process group, or its name, for the value of the operation's argument `group_name`, `group` or
    `process_group`; without it, that value is the name, and an operation without such an argument is over the default
    group.

    Ranks need not register the same. The operation itself runs until all ranks of the group want the same kernel in its
    place, and stays where they do not, or where nothing is fused.
    Raises UsageError where there is no such collective or operation, or where the operation is none of these.
    """
    if op not in _OWN:
        raise UsageError(f'register_collective: there is no collective "{op}": it is one of {", ".join(_OWN)}')
    target = _overload(operation)
    _check_form(target)
    _check_groups(target, groups)
    _meanings[target] = _Registration(op, "" if op == "all_gather" else reduce_op, groups)


def _overload(operation: Any) -> Any:
    found = operation
    if isinstance(found, str):
        library, _, name = found.partition("::")
        name, _, overload = name.partition(".")
        try:
            found = getattr(getattr(getattr(torch.ops, library), name), overload or "default")
        except AttributeError:
            raise UsageError(
                f'register_collective: there is no operation "{operation}" yet: import what defines it first'
            ) from None
    found = getattr(found, "_opoverload", found)
    if isinstance(found, torch._ops.OpOverloadPacket):
        found = found.default
    if not isinstance(found, torch._ops.OpOverload):
        raise UsageError(
            f"register_collective: {operation!r} is not an operation: give one of torch.ops, "
            "a torch.library.custom_op, or its name"
        )
    return found


def _tensor_names(target: Any, is_written: bool) -> list[str]:
    """The names of the arguments that are tensors which the operation writes into, or only reads."""
    return [
        one.name
        for one in target._schema.arguments
        if str(one.type) in ("Tensor", "Optional[Tensor]") and _is_written(one) == is_written
    ]


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _check_form(target: Any) -> None:
    """Raises UsageError where the operation has not the form of a collective."""
    read, written = _tensor_names(target, False), _tensor_names(target, True)
    returned = [str(one.type) for one in target._schema.returns]
    if any("List[Tensor]" in str(one.type) for one in target._schema.arguments):
        why = "takes lists of tensors; an operation of one tensor is taken"
    elif target._schema.is_mutable and (returned or len(written) != 1):
        why = "writes into its arguments and returns tensors, or writes several; one or the other is taken"
    elif not target._schema.is_mutable and returned not in (["Tensor"], ["List[Tensor]"]):
        why = f"returns {', '.join(returned) or 'nothing'}; a tensor, or a list of tensors, is taken"
    elif not read and not written:
        why = "reads no tensor"
    else:
        return
    raise UsageError(f"register_collective: {target} {why}")


def _check_groups(target: Any, groups: Groups | None) -> None:
    """Raises UsageError where `groups` maps an argument that the operation has not."""
    names = [str(one.name) for one in target._schema.arguments]
    if groups is None or callable(groups) or None in groups or any(name in _GROUPS for name in names):
        return
    raise UsageError(
        f"register_collective: `groups` maps an argument {', '.join(_GROUPS[:-1])} or {_GROUPS[-1]}, but {target} "
        f"takes {', '.join(names)}: name its argument so, or give groups={{None: process_group}} for one group"
    )


def uuid() -> Any:
    """Key of all registrations, for Inductor's cache; None: do not cache."""
    keys = {str(target): meaning.key() for target, meaning in _meanings.items()}
    return None if None in keys.values() else tuple(sorted(keys.items()))


# ---------------------------------------------------------------------------------------------------------------------
# Calls in a graph
# ---------------------------------------------------------------------------------------------------------------------


def _meaning_of(node: Node) -> _Registration | None:
    return _meanings.get(operation_of(node)) if node.op == "call_function" else None


def is_any_in(graph: Graph) -> bool:
    """Whether the graph has a registered operation."""
    return bool(_meanings) and any(_meaning_of(node) for node in graph.nodes)


def _dim_of(op: str, given: torch.Tensor, made: torch.Tensor, ranks: int) -> int | None:
    """Returns the dimension that `op` gathers or scatters along, 0 if none; None: `made` is not its result."""
    if given.dtype != made.dtype:
        return None
    if op == "all_reduce" or not given.dim():
        return 0 if op == "all_reduce" and same_sizes(given.shape, made.shape) else None
    part, whole = (given, made) if op == "all_gather" else (made, given)
    for dim in range(part.dim()):
        sizes = list(part.shape)
        sizes[dim] = sizes[dim] * ranks
        if same_sizes(sizes, whole.shape):
            return dim
    return None


def _known(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else -1 for size in shape)


def _plain(name: str, value: Any) -> Any:
    """An argument's value, if text can hold it. Raises Unsupported."""
    try:
        if json.loads(json.dumps(value)) == value:
            return value
    except TypeError:
        pass
    raise Unsupported(
        f"its argument {name} is {type(value).__name__}; numbers and text known to the compiler are taken"
    )


def _name_of(target: Any) -> str:
    return f"{target.namespace}::{target._opname}.{target._overloadname}"


@dataclass(frozen=True)
class _Call:
    """A call of a registered operation in a graph."""

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    meta: dict[str, Any]
    meaning: _Registration
    group: str
    ranks: int
    #: What it reads, as a view of `source` of that shape, and the fake value of what it makes.
    source: Node
    shape: tuple[Any, ...]
    value: Any
    foreign: ForeignCall

    @classmethod
    def of(cls, node: Node, meaning: _Registration) -> _Call:
        """Raises Unsupported where it cannot be replaced."""
        target = operation_of(node)
        if node.target not in (target, _WRITER):
            raise Unsupported(f"it is called through {node.target}: {target} itself is replaced")
        given = _given(node, target)
        written = _tensor_names(target, True)
        read = [name for name in _tensor_names(target, False) if given.get(name) is not None]
        if len(read) + len(written) > 2 or (not written and len(read) != 1):
            raise Unsupported("it reads other tensors besides its input")
        reads = (read or written)[0]
        source, shape = _source(node, given, reads, is_written=not read)
        value = node.meta["val"][1] if written else node.meta["val"]
        group = _group(meaning, given)
        ranks = int(_C10D._resolve_process_group(group).size())
        if written and read:
            _check_whole(node, written[0])
        is_list = isinstance(value, (list, tuple))
        dim = _dim_made(meaning.op, source.meta["val"], shape, value, ranks, in_place=bool(written and not read))
        sent = list(shape)
        if meaning.op == "reduce_scatter" and dim:
            sent[0], sent[dim] = sent[0] * ranks, sent[dim] // ranks
        if any(_known(one).count(-1) > 1 for one in (shape, sent)):
            raise Unsupported(
                f"more than one of the sizes of its input is not known when it is compiled: {list(shape)}"
            )
        tensors = {*read, *written}
        others = tuple((name, _plain(name, one)) for name, one in given.items() if name not in tensors)
        writes = written[0] if written else ""
        call = ForeignCall(_name_of(target), others, reads, writes, is_list, dim, _known(shape), _known(sent))
        form = (node.target, node.args, dict(node.kwargs), dict(node.meta))
        return cls(*form, meaning, group, ranks, source, tuple(shape), value, call)


def _given(node: Node, target: Any) -> dict[str, Any]:
    """The call's arguments by name. Those that it writes are in `_all_bases` instead."""
    if node.target is _WRITER:
        return {name: one for name, one in node.kwargs.items() if not name.startswith("_")}
    names = [one.name for one in target._schema.arguments]
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _source(node: Node, given: dict[str, Any], name: str, is_written: bool) -> tuple[Node, Sequence[Any]]:
    """What the call reads, and in which shape."""
    if not is_written:
        source = given[name]
        return source, source.meta["val"].shape
    bases: Any = node.kwargs["_all_bases"]
    source = bases[node.kwargs[f"_{name}_base_index"]]
    sizes: Any = node.kwargs.get(f"_{name}_size")
    if sizes is None:
        _check_whole(node, name)
        return source, source.meta["val"].shape
    value = source.meta["val"]
    strides = [prod(sizes[dim + 1 :]) for dim in range(len(sizes))]
    is_whole = node.kwargs[f"_{name}_storage_offset"] == 0 and value.is_contiguous() and len(bases) == 1
    is_whole = is_whole and same_sizes(node.kwargs[f"_{name}_stride"], strides)  # type: ignore[arg-type]
    if not is_whole or not same_sizes([prod(sizes)], [value.numel()]):
        raise Unsupported("it writes into a part of a tensor")
    return source, [size.meta["val"] if isinstance(size, Node) else size for size in sizes]


def _check_whole(node: Node, name: str) -> None:
    """Raises where the call does not write into a whole tensor."""
    views = (f"_{name}_size", f"_{name}_slice_dim", f"_{name}_alias")
    if len(node.kwargs["_all_bases"]) != 1 or any(one in node.kwargs for one in views):  # type: ignore[arg-type]
        raise Unsupported("it writes into a part of a tensor")


def _group(meaning: _Registration, given: dict[str, Any]) -> str:
    named = next((given[name] for name in _GROUPS if name in given), None)
    try:
        if meaning.groups is not None:
            return group_of(meaning.groups(named) if callable(meaning.groups) else meaning.groups[named])
        found = group_of(_C10D._get_default_group() if named is None else named)
        _C10D._resolve_process_group(found)
        return found
    except (LookupError, AttributeError, RuntimeError, TypeError, ValueError):
        raise Unsupported(
            f"there is no process group {named!r}: register_collective(..., groups={{...}}) maps the operation's names"
        ) from None


def _dim_made(op: str, source: torch.Tensor, shape: Sequence[Any], value: Any, ranks: int, in_place: bool) -> int:
    """The dimension that it gathers or scatters along. Raises Unsupported where its result is not that of `op`."""
    said = f"its result is not that of an {op} of {list(shape)} over {ranks} ranks"
    if in_place:
        if op != "all_reduce":
            raise Unsupported(said)
        return 0
    if isinstance(value, (list, tuple)):
        is_pieces = op == "all_gather" and len(value) == ranks and len(shape) > 0
        if not is_pieces or not all(same_sizes(one.shape, shape) and one.dtype == source.dtype for one in value):
            raise Unsupported(said)
        return 0
    dim = _dim_of(op, source, value, ranks)
    if dim is None:
        raise Unsupported(f"{said}: {list(value.shape)}")
    return dim


# ---------------------------------------------------------------------------------------------------------------------
# Torch's collectives in their place, and back
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replacement:
    """A collective that replaces an operation of another library."""

    call: _Call
    #: All nodes in order; the last is the result. Others than the collective and its wait rearrange dimensions.
    made: tuple[Node, ...]
    begun: Node
    wait: Node

    def is_whole(self) -> bool:
        """Whether each node still feeds only the next ones."""
        if any(one._erased for one in self.made):
            return False
        users = (user for one in self.made[:-1] for user in one.users)
        return all(user in self.made or _is_skip(user) for user in users)


def _is_skip(node: Node) -> bool:
    """Whether it only tells other ranks that nothing is fused."""
    return node.target is torch.ops.commsir._unfused.default


def _added(graph: Graph, target: Any, *given: Any) -> Node:
    made = graph.call_function(target, given)
    set_value(made)
    return made


def _reshaped(graph: Graph, node: Node, shape: Sequence[Any]) -> Iterator[Node]:
    if not same_sizes(node.meta["val"].shape, shape):
        yield _added(graph, _RESHAPE, node, list(_known(shape)))


def _pieces_joined(graph: Graph, whole: Node, ranks: int, cut: int, joined: int) -> list[Node]:
    """Cuts a tensor into `ranks` pieces along a dimension and joins them along another one; all nodes, that last."""
    size = whole.meta["val"].shape[cut] // ranks
    split = _added(graph, torch.ops.aten.split.Tensor, whole, size, *([cut] if cut else []))
    pieces = [graph.call_function(operator.getitem, (split, number)) for number in range(ranks)]
    for one in pieces:
        set_value(one)
    return [split, *pieces, _added(graph, torch.ops.aten.cat.default, pieces, joined)]


def _written(graph: Graph, call: _Call) -> Iterator[Node]:
    """Writes torch's collective; along another dimension than 0, as torch writes that."""
    op, dim = call.meaning.op, call.foreign.dim
    views = list(_reshaped(graph, call.source, call.shape))
    yield from views
    source = [call.source, *views][-1]
    if op == "reduce_scatter" and dim:
        pieces = _pieces_joined(graph, source, call.ranks, dim, 0)
        source = pieces[-1]
        yield from pieces
    target, names = _OWN[op]
    stands: dict[str, Any] = {"ranks": call.ranks, "reduce": call.meaning.reduce_op}
    begun = _added(graph, target, source, *(stands[name] for name in names), call.group)
    yield begun
    wait = _added(graph, _FUNCTIONAL.wait_tensor.default, begun)
    yield wait
    if op == "all_gather" and dim:
        yield from _pieces_joined(graph, wait, call.ranks, 0, dim)
    elif call.foreign.is_list:
        yield _added(graph, torch.ops.aten.split.Tensor, wait, call.shape[0])
    else:
        yield from _reshaped(graph, wait, call.value.shape)


def _results_of(node: Node) -> list[Node]:
    """The nodes that are what a call makes: itself, or, if it writes into an argument, what is in that then."""
    if node.target is not _WRITER:
        return [node]
    return [user for user in node.users if user.args[1] == 1]


def write(graph: Graph) -> list[Replacement]:
    """Replaces registered operations by torch's own collectives. Returns the replaced nodes."""
    written = list[Replacement]()
    for node in list(graph.nodes):
        meaning = _meaning_of(node)
        if meaning is None:
            continue
        try:
            call = _Call.of(node, meaning)
        except Unsupported as why:
            node.meta[WHY_LEFT] = str(why)
            _announce(graph, node, meaning)
            continue
        with graph.inserting_before(node):
            made = tuple(_written(graph, call))
        for one in made:
            one.meta = {**node.meta, "val": one.meta["val"]}
        place = next(number for number, one in enumerate(made) if one.target is _OWN[meaning.op][0])
        made[place].meta[FOREIGN] = call.foreign
        for result in _results_of(node):
            result.replace_all_uses_with(made[-1])
        for user in list(node.users):
            graph.erase_node(user)
        graph.erase_node(node)
        written.append(Replacement(call, made, made[place], made[place + 1]))
    return written


def _announce(graph: Graph, node: Node, meaning: _Registration) -> None:
    """Tells other ranks that nothing is fused with a registered operation which stays."""
    target = operation_of(node)
    sources = [one for one in node.all_input_nodes if isinstance(one.meta.get("val"), torch.Tensor)]
    if not sources or sources[0].meta["val"].device.type != "cpu":
        return
    try:
        group = _group(meaning, _given(node, target))
    except Unsupported:
        return
    with graph.inserting_before(node):
        skip = graph.call_function(torch.ops.commsir._unfused.default, (sources[0], group, _name_of(target)))
        skip.meta["val"] = None


def announce(graph: Graph) -> None:
    """Tells other ranks that nothing is fused with any registered operation of the graph."""
    for node in list(graph.nodes):
        if meaning := _meaning_of(node):
            _announce(graph, node, meaning)


def _again(graph: Graph, call: _Call, source: Node) -> Node:
    """The call again, of `source`. Returns what is its result."""
    if call.target is not _WRITER:
        args = tuple(source if one is call.source else one for one in call.args)
        kwargs = {name: source if one is call.source else one for name, one in call.kwargs.items()}
        node = graph.call_function(call.target, args, kwargs)
        node.meta = {**call.meta}
        return node
    if call.foreign.writes == call.foreign.reads:
        kwargs = {**call.kwargs, "_all_bases": [source]}
    else:
        space = graph.call_function(
            torch.ops.aten.empty.memory_format,
            (list(call.value.shape),),
            {"dtype": call.value.dtype, "device": call.value.device},
        )
        space.meta["val"] = call.value
        kwargs = {**call.kwargs, call.foreign.reads: source, "_all_bases": [space]}
    node = graph.call_function(call.target, call.args, kwargs)
    node.meta = {**call.meta}
    result = graph.call_function(operator.getitem, (node, 1))
    result.meta["val"] = call.value
    return result


def _rearranged(graph: Graph, call: _Call, result: Node, shape: Sequence[Any]) -> Node:
    """What torch's collective makes, of the result of the call."""
    if call.foreign.is_list:
        pieces = [graph.call_function(operator.getitem, (result, number)) for number in range(call.ranks)]
        for one in pieces:
            set_value(one)
        return _added(graph, torch.ops.aten.cat.default, pieces, 0)
    if call.meaning.op == "all_gather" and call.foreign.dim:
        return _pieces_joined(graph, result, call.ranks, call.foreign.dim, 0)[-1]
    return next(_reshaped(graph, result, shape), result)


def restore(written: list[Replacement]) -> None:
    """Restores the operations whose collectives were not fused: other ranks may run them."""
    for one in written:
        if not one.begun._erased:
            _restore(one.begun.graph, one)


def _restore(graph: Graph, one: Replacement) -> None:
    call, before = one.call, one.made[: one.made.index(one.begun)]
    source = one.begun.args[0]
    assert isinstance(source, Node)
    is_whole = one.is_whole() and (not before or source is before[-1])
    with graph.inserting_before(one.begun):
        if is_whole and before:
            source = before[0].all_input_nodes[0]
            before[-1].replace_all_uses_with(source, delete_user_cb=_is_skip)
        elif call.meaning.op == "reduce_scatter" and call.foreign.dim:
            source = _pieces_joined(graph, source, call.ranks, 0, call.foreign.dim)[-1]
        shape = call.value.shape if call.foreign.writes == call.foreign.reads else call.shape
        result = _again(graph, call, next(_reshaped(graph, source, shape), source))
        if not is_whole:
            result = _rearranged(graph, call, result, one.wait.meta["val"].shape)
    (one.made[-1] if is_whole else one.wait).replace_all_uses_with(result)
    for made in reversed(one.made if is_whole else (one.begun, one.wait)):
        graph.erase_node(made)
