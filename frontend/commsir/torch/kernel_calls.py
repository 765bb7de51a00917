"""Puts the call of a kernel in the place of a collective and its region."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from commsir.torch import sites
from commsir.torch.capi import element_type
from commsir.torch.collectives import Collective, set_value, site_of
from commsir.torch.fusion_timing import Call
from commsir.torch.joined_collectives import JoinedCollectives
from commsir.torch.movable_nodes import WAIT, Hoister
from commsir.torch.prefetched_weights import emit, weights_behind
from commsir.torch.produce_regions import Produced
from commsir.torch.region_growth import results_of, stored_as
from commsir.torch.regions import Argument, Region, same_sizes
from commsir.torch.reporting import copy_source

__all__ = ["put_kernel", "put_kernel_of_several"]


def put_kernel(
    graph: Graph,
    collective: Collective,
    region: Region,
    inside: list[Node],
    before: Hoister,
    everything: list[Any],
    stands: JoinedCollectives | None,
    produced: Produced | None,
    prefetches: bool,
) -> Call | None:
    """Replaces the nodes by the kernel's call, which is returned for measurement."""
    results = results_of(region, inside)
    kinds = [element_type(node.meta["val"].dtype) for node in results]
    weights = weights_behind(results) if prefetches else []
    region.prefetched = [(one.dtype, one.count) for one in weights]
    consume = region.text(list(zip(results, kinds, strict=True)))
    widths = [region.tiles[node].width for node in results]
    start, members = collective.node, dict.fromkeys(inside)
    # Apart, the program's collectives run: of what is summed up, or of what is cast.
    parts = list(stands.parts) if stands else [produced.source] if produced and produced.is_cast else None
    sent = produced.text if produced else ""
    shown = (collective.op, collective.reduce_op, consume, kinds, widths, len(parts or ()), sent)
    site = site_of(collective, everything, *shown)
    if stands and stands.own_dim is not None:
        site = sites.own_part(site, stands.own_dim)
    before.move([given.node for given in region.arguments])
    with graph.inserting_before(start):
        call = (collective.reduce_op, consume, ",".join(kinds), widths, False, collective.group)
        rows, *sources = _kernel_input(graph, start, region, produced)
        given = [*sources, *(_kernel_argument(graph, one) for one in region.arguments)]
        given += [emit(graph, weight) for weight in weights]
        fused = graph.call_function(
            torch.ops.commsir.fused_collective.default,
            (collective.op, rows, given, *call, site, parts, sent, len(sources)),
        )
        set_value(fused)
        copy_source(collective.node, fused)
        written = {stored_as(region, node): number for number, node in enumerate(results)}
        made: dict[Node, Node] = {}
        for node in members:
            if any(user not in members for user in node.users):
                made[node] = _result_in_shape(graph, fused, written[stored_as(region, node)], node)
    for node, part in made.items():
        node.replace_all_uses_with(part, delete_user_cb=lambda user: user not in members)
    for node in [*reversed(inside), *reversed(produced.inside if produced else ())]:
        graph.erase_node(node)
    return Call.of(fused.args)


def put_kernel_of_several(
    graph: Graph, collective: Collective, everything: list[Any], others: tuple[Node, ...]
) -> None:
    """One kernel gives the results of several collectives that are the same. It writes each of them: on other ranks
    they may not be the same."""
    nodes = (collective.node, *others)
    region = collective.begin()
    kind = element_type(collective.node.meta["val"].dtype)
    consume = region.text([(collective.node, kind)] * len(nodes))
    site = site_of(collective, everything, collective.op, collective.reduce_op, consume)
    source, call = nodes[0].args[0], (collective.reduce_op, consume, ",".join([kind] * len(nodes)))
    place = (collective.group, sites.repeated(site, len(nodes)))
    widths = [region.columns] * len(nodes)
    with graph.inserting_before(nodes[0]):
        fused = graph.call_function(
            torch.ops.commsir.fused_collective.default,
            (collective.op, source, [], *call, widths, False, *place, None, "", 0),
        )
        set_value(fused)
        copy_source(collective.node, fused)
        results = [_result_in_shape(graph, fused, number, node) for number, node in enumerate(nodes)]
    for node, result in zip(nodes, results, strict=True):
        for wait in [user for user in node.users if user.target is WAIT]:
            wait.replace_all_uses_with(result)
            graph.erase_node(wait)
        node.replace_all_uses_with(result)
        graph.erase_node(node)


def _reshaped(graph: Graph, node: Node, shape: list[Any]) -> Node:
    made = graph.call_function(torch.ops.aten.reshape.default, (node, shape))
    set_value(made)
    return made


def _rows_of(graph: Graph, start: Node, region: Region) -> Node:
    """The collective's input as rows of the region."""
    source = start.args[0]
    assert isinstance(source, Node)
    if source.meta["val"].shape[-1] == region.columns:
        return source
    return _reshaped(graph, source, [-1, region.columns])


def _kernel_input(graph: Graph, start: Node, region: Region, produced: Produced | None) -> list[Node]:
    """Returns the kernel's input, and the other tensors that `produce` reads."""
    if produced is None:
        return [_rows_of(graph, start, region)]
    first, *rest = (_kernel_argument(graph, one) for one in produced.arguments)
    source = produced.source
    if not same_sizes(first.meta["val"].shape, source.meta["val"].shape) or first.meta["val"].dim() < 2:
        first = _reshaped(graph, first, [-1, region.columns])
    return [first, *rest]


def _kernel_argument(graph: Graph, argument: Argument) -> Node:
    """Returns an argument in the shape that the kernel expects."""
    node = argument.node
    if node.meta["val"].dtype != argument.dtype:
        node = graph.call_function(torch.ops.prims.convert_element_type.default, (node, argument.dtype))
        set_value(node)
    if argument.copied is not None:
        node = graph.call_function(torch.ops.aten.expand.default, (node, list(argument.copied)))
        set_value(node)
        node = graph.call_function(torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format})
        set_value(node)
    shape = argument.shape()
    return node if shape is None else _reshaped(graph, node, shape)


def _result_in_shape(graph: Graph, fused: Node, number: int, node: Node) -> Node:
    """Returns a result of the kernel in the shape of `node`."""
    part = graph.call_function(operator.getitem, (fused, number))
    part.meta["val"] = fused.meta["val"][number]
    dtype = node.meta["val"].dtype
    if part.meta["val"].dtype != dtype:  # A kernel writes masks as int8.
        part = graph.call_function(torch.ops.prims.convert_element_type.default, (part, dtype))
        set_value(part)
    shape = list(node.meta["val"].shape)
    if list(part.meta["val"].shape) != shape:
        part = graph.call_function(torch.ops.aten.reshape.default, (part, shape))
        part.meta["val"] = node.meta["val"]
    return part
