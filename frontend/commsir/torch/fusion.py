"""Fuses the collectives of a graph one by one, and reports what became of each."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch import foreign_collectives, gather_layouts, joined_collectives, reporting
from commsir.torch.collectives import Collective, collectives_of
from commsir.torch.fusion_timing import Call
from commsir.torch.graph_preparation import (
    descendants,
    drop_places,
    free_sizes,
    masks_as_where,
    remove_dead_arithmetic,
    split_parts,
    split_products,
    split_reductions,
)
from commsir.torch.joined_collectives import JoinedCollectives
from commsir.torch.kernel_calls import put_kernel, put_kernel_of_several
from commsir.torch.matmul import graph as matmuls
from commsir.torch.matmul import model
from commsir.torch.movable_nodes import WAIT, Hoister
from commsir.torch.produce_regions import Produced, narrow, narrowed_type, produce
from commsir.torch.region_growth import identity_region, largest_region, results_of, with_stored_rounded
from commsir.torch.regions import Unsupported
from commsir.torch.reporting import Fusion

__all__ = ["fuse_collectives", "skip_all"]

_log = logging.getLogger("commsir.compile")


@dataclass(frozen=True)
class _FusionResult:
    """What a collective is fused with, why not with more, and the kernel's call."""

    names: tuple[str, ...] = ()
    produced: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    call: Call | None = None
    #: What the arithmetic before it gains, in µs.
    gain: float = 0.0


def _before(
    graph: Graph, collective: Collective, columns: int, stands: JoinedCollectives | None
) -> tuple[Produced | None, str]:
    """What the kernel does before it sends, or why it does nothing."""
    if stands:
        return None, ""
    return produce(graph, collective, columns) if collective.sent is None else (narrow(collective, columns), "")


def _fuse(
    graph: Graph, collective: Collective, everything: list[Any], stands: JoinedCollectives | None, prefetches: bool
) -> _FusionResult:
    """Replaces the collective and its region by a kernel. `stands` lists other collectives that the kernel replaces."""
    collective.begin()
    if stands and stands.others:
        put_kernel_of_several(graph, collective, everything, stands.others)
        return _FusionResult(because=("it gives the results of several: what follows each of them stays",))
    free_sizes(graph, collective)
    before = Hoister(graph, collective.node)
    if not stands:
        collective = replace(collective, sent=narrowed_type(collective))
    made = largest_region(graph, collective, before)
    if not made.weight():
        made = identity_region(collective, made)
    if not results_of(made.region, made.inside):
        raise Unsupported("nothing reads its result")
    made = with_stored_rounded(collective, made)
    produced, why = _before(graph, collective, made.region.columns, stands)
    because = [*made.because, *([why] if why else [])]
    if not made.weight() and not stands and produced is None:
        raise Unsupported("; ".join(dict.fromkeys(because)) or "no arithmetic follows")
    names = reporting.operation_names(one for one in made.inside[1:] if one.target is not WAIT)
    sent = produced.names if produced else ()
    call = put_kernel(graph, collective, made.region, made.inside, before, everything, stands, produced, prefetches)
    return _FusionResult(names, sent, tuple(because), call, (produced.gain or 0.0) if produced else 0.0)


def _skip(graph: Graph, collective: Collective) -> None:
    """Leaves a collective as it is. Other ranks may want a kernel there; on the CPU, each call tells them."""
    source = collective.node.args[0]
    if not collective.may_be_fused() or not isinstance(source, Node) or source.meta["val"].device.type != "cpu":
        return
    operation = (collective.foreign.operation,) if collective.foreign else ()
    with graph.inserting_before(collective.node):
        skip = graph.call_function(torch.ops.commsir._unfused.default, (source, collective.group, *operation))
        skip.meta["val"] = None


def skip_all(graph: Graph, why: str) -> None:
    """Leaves all collectives of a graph as they are, after a defect of the pass."""
    name = reporting.graph_name(graph)
    for one in list(collectives_of(graph)):
        reporting.note(replace(_entry(one, name), because=(f"the pass has a defect: {why}",)))
        _skip(graph, one)
    foreign_collectives.announce(graph)


def fuse_collectives(graph: Graph, join_sums: bool = True, prefetch_weights: bool = False) -> int:
    """Fuses what it can; returns the number of kernels. `join_sums`: sums of collectives become one collective.
    `prefetch_weights`: kernels bring the weights of the matmuls behind them into L2."""
    remove_dead_arithmetic(graph)
    name = reporting.graph_name(graph)
    split_products(graph, collectives_of(graph))
    masks_as_where(graph)
    whole = gather_layouts.sink(graph)
    joined, why_not = joined_collectives.join(graph, matmuls.why_apart, join_sums)
    why_not |= whole
    gone = {node for stands in joined.values() for node in stands.others}
    everything = [one for one in collectives_of(graph) if one.node not in gone]
    begun = [one.node for one in everything if one.whole]
    gather_layouts.sink_permutations(graph, {*begun, *descendants(begun, len(graph.nodes))})
    drop_places(graph, everything)
    split_reductions(graph, everything)
    split_parts(graph, everything)
    count = sum(
        _fuse_one(graph, one, everything, joined.get(one.node), why_not.get(one.node), name, prefetch_weights)
        for one in everything
    )
    if count:
        lint: Any = graph.lint
        lint()
    return count


def _entry(collective: Collective, name: str) -> Fusion:
    """Returns the report entry of a collective before fusion; `name` is the graph's."""
    value = collective.value
    source, module = reporting.source_of(collective.node)
    return Fusion(
        collective.op,
        str(collective.group),
        collective.shape,
        (),
        (),
        dtype="" if value is None else str(value.dtype).removeprefix("torch."),
        graph=name,
        source=source,
        module=module,
    )


def _fuse_one(
    graph: Graph,
    collective: Collective,
    everything: list[Any],
    stands: JoinedCollectives | None,
    why_not: str | None,
    name: str,
    prefetches: bool,
) -> bool:
    """Fuses one collective if possible, and records the result."""
    if collective.node._erased:
        return False
    entry = replace(_entry(collective, name), joined=stands.count if stands else 1)
    value = collective.value
    fused, because = _FusionResult(), [why_not] if why_not else []
    gain = None
    beside = matmuls.fuse(graph, collective, everything, Hoister(graph, collective.node), stands)
    if beside:
        if beside.names and collective.op == "all_gather":
            because.clear()  # What keeps arithmetic from moving before a concatenation: a matmul has moved.
        because.append(beside.because)
    try:
        if beside and beside.names:
            fused, gain = _FusionResult(beside.names), beside.gain
        else:
            fused = _fuse(graph, collective, everything, stands, prefetches)
            because += fused.because if fused.names or not why_not else ()
            gain = None if value is None else model.region_gain(value, entry.joined - 1, bool(fused.names))
            gain = None if gain is None else gain + fused.gain
        done = True
    except Unsupported as why:
        because += [] if why_not else [str(why)]
        _skip(graph, collective)
        done = False
    reasons = tuple(dict.fromkeys(because))
    moved = ("aten.sum.dim_IntList",) if stands and stands.sums_first else ()
    if stands and stands.own_dim is not None:
        moved, entry = ("aten.slice.Tensor",), replace(entry, collective="all_reduce")
    entry = replace(
        entry, fused=(*moved, *fused.names), produced=fused.produced, because=reasons, predicted=gain, call=fused.call
    )
    reporting.note(entry)
    _log.info("%s", entry)
    if beside and beside.other:
        gathered = f"its scales are gathered with the rows that {', '.join(beside.names)} multiplies"
        reporting.note(replace(_entry(beside.other, name), fused=beside.names, because=(gathered,)))
    return done
