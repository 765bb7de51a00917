"""Inductor lowerings for torch.ops.commsir: placement of inputs, and the order of calls."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import torch

import commsir.torch.ops  # noqa: F401  (registers torch.ops.commsir)
from commsir.torch import defects

__all__ = ["groups_with_symmetric_memory", "lower"]


def groups_with_symmetric_memory() -> tuple[str, ...]:
    """The groups for which Inductor places inputs in symmetric memory."""
    import torch.distributed._symmetric_memory as symm_mem

    return tuple(sorted(map(str, getattr(symm_mem, "_group_name_to_store", ()))))


@functools.cache
def lower() -> None:
    """Inductor places the input of a fused collective in symmetric memory, where it decides where it lies."""
    from torch._inductor import comm_lowering, ir, virtualized
    from torch._inductor.lowering import add_layout_constraint, constrain_to_fx_strides, register_lowering
    from torch.utils import _pytree as pytree

    op = torch.ops.commsir.fused_collective.default

    def symmetric(x: Any, group: Any) -> bool:
        from torch.distributed._symmetric_memory import is_symm_mem_enabled_for_group

        return (
            x.get_device().type == "cuda"
            and is_symm_mem_enabled_for_group(group)
            and comm_lowering.can_realize_as_comm_buffer(x, ir.CommBufferType.SYMM_MEM)
        )

    add_layout_constraint(op, constrain_to_fx_strides)

    @register_lowering(op, type_promotion_kind=None)
    def _(
        name: str,
        x: Any,
        args: Any,
        reduce_op: str,
        consume: str,
        out_types: str,
        out_columns: Any,
        in_place: bool,
        group: Any,
        site: str = "",
        parts: Any = None,
        produce: str = "",
        sources: int = 0,
    ) -> Any:
        # Peers read what `produce` makes, not its input.
        if not produce and symmetric(x, group):
            comm_lowering.realize_as_comm_buffer(x, ir.CommBufferType.SYMM_MEM, group)
            in_place = True
        graph: Any = virtualized.V.graph
        there = len(graph.operations)
        call = (reduce_op, consume, out_types, out_columns, in_place, group, site, parts, produce, sources)
        made = _prepared_kernel().create(op, name, x, args, *call)
        if graph.current_node.target is op:  # else its effect, of a call in the program, is seen to
            _keep_order(graph, graph.operations[there:])
        return pytree.tree_map(ir.TensorBox.create, made)

    unfused = torch.ops.commsir._unfused.default
    torch.fx.node.has_side_effect(unfused)

    @register_lowering(unfused, type_promotion_kind=None)
    def _(x: Any, group: Any, operation: str = "") -> None:
        graph: Any = virtualized.V.graph
        there = len(graph.operations)
        ir.FallbackKernel.create(unfused, x, group, operation)
        _keep_order(graph, graph.operations[there:])

    _order_collectives()


@functools.cache
def _prepared_kernel() -> Any:
    """Generated Python prepares a call at load time and then passes only tensors."""
    from torch._inductor import ir, virtualized

    class Prepared(ir.FallbackKernel):
        def codegen(self, wrapper: Any) -> None:
            if not virtualized.V.graph.cpp_wrapper:
                defects.run_guarded("preparing a call in generated code", lambda: self.prepare(wrapper))
            super().codegen(wrapper)

        def prepare(self, wrapper: Any) -> None:
            arguments = list(super().codegen_args())
            if len(arguments) == _ARGUMENTS and not self.kwargs:
                tensors, texts = _split(arguments)
                self.python_kernel_name = _prepare_in(wrapper, texts)
                self.tensors = tensors

        def codegen_args(self) -> list[str]:
            tensors: list[str] | None = getattr(self, "tensors", None)
            return super().codegen_args() if tensors is None else tensors

    return Prepared


#: Of torch.ops.commsir.fused_collective.
_ARGUMENTS = 13


def _split(arguments: list[str]) -> tuple[list[str], str]:
    """Separates tensors from the other arguments, which `commsir.torch.ops.prepared` takes."""
    op, x, args, *rest, parts, produce, sources = arguments
    return [x, args, *([] if parts == "None" else [parts])], ", ".join([op, *rest, produce, sources])


def _prepare_in(wrapper: Any, texts: str) -> str:
    """The name of a call that the generated module prepares when it is loaded."""
    while getattr(wrapper, "parent_wrapper", None) is not None:
        wrapper = wrapper.parent_wrapper
    name = f"commsir_call_{hashlib.sha256(texts.encode()).hexdigest()[:16]}"
    wrapper.add_import_once("import commsir.torch.ops")
    wrapper.add_import_once(f"{name} = commsir.torch.ops.prepared({texts})")
    return name


def _order_collectives() -> None:
    """Collectives of process groups also keep their order among ours, because fused ones may run as one of them."""
    from torch._inductor import ir, virtualized
    from torch._inductor.lowering import lowerings

    # Other torches may call them otherwise.
    kinds, waits = getattr(ir, "_CollectiveKernel", ()), getattr(ir, "_WaitKernel", ())

    def ordered(original: Any) -> Any:
        @functools.wraps(original)
        def call(*given: Any, **named: Any) -> Any:
            graph: Any = virtualized.V.graph
            there = len(graph.operations)
            made = original(*given, **named)
            if _has_ours(graph):
                begun = [one for one in graph.operations[there:] if isinstance(one, kinds)]
                _keep_order(graph, [one for one in begun if not isinstance(one, waits)], has_effects=False)
            return made

        return call

    for target in [one for one in lowerings if getattr(one, "namespace", "") == "_c10d_functional"]:
        lowerings[target] = ordered(lowerings[target])


def _has_ours(graph: Any) -> bool:
    return any(getattr(node.target, "namespace", "") == "commsir" for node in graph.graph.nodes)


def _keep_order(graph: Any, operations: list[Any], has_effects: bool = True) -> None:
    """Makes the scheduler keep the order of collectives, as it does for operations with effects."""
    if not hasattr(graph, "effectful_ops") or not hasattr(graph, "additional_star_deps"):
        return  # another torch
    effect = torch._library.effects.EffectType.ORDERED
    last = graph.effectful_ops.get(effect)
    for operation in operations:
        if has_effects:
            operation.has_side_effects = lambda: True
        if last is not None:
            # The scheduler looks it up by the operation, and the dependency by the buffer.
            graph.additional_star_deps[operation.get_operation_name()].add(last.get_name())
        graph.effectful_ops[effect] = operation
