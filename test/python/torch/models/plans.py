"""Plans for parallelize_module that shard models of transformers over all ranks (model_checks.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

__all__ = ["PLANS"]

_dist: Any = torch.distributed
_local: Any = DTensor.from_local

_COLUMNS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "query_key_value", "dense_h_to_4h", "fc1")
#: The up-projections of latent attention.
_LATENT = ("q_b_proj", "kv_b_proj")
_ROWS = ("o_proj", "down_proj", "dense", "dense_4h_to_h", "fc2")
_HEADS = ("lm_head", "embed_out")
_NORMS = (
    *("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"),
    *("model.norm",),
)


class _Experts(ParallelStyle):
    """Each rank has a part of every expert's width; the sum over ranks is the output."""

    def _apply(self, module: Any, mesh: Any) -> Any:
        rank, size = mesh.get_local_rank(), mesh.size()
        experts, hidden, width = module.down_proj.shape
        gate_up = module.gate_up_proj.detach().view(experts, 2, width, hidden).chunk(size, 2)[rank]
        down = module.down_proj.detach().chunk(size, 2)[rank]
        module.gate_up_proj = torch.nn.Parameter(gate_up.reshape(experts, -1, hidden).contiguous())
        module.down_proj = torch.nn.Parameter(down.contiguous())

        def given(_: Any, inputs: Any) -> Any:
            return tuple(_partial_gradient(one, mesh) for one in inputs)

        def summed(_: Any, inputs: Any, output: Any) -> Any:
            return _local(output, mesh, [Partial()], run_check=False).redistribute(placements=[Replicate()]).to_local()

        # Not distribute_module, which would make DTensors of its parameters: they are this rank's own.
        module.register_forward_pre_hook(given)
        module.register_forward_hook(summed)
        return module


def _partial_gradient(x: torch.Tensor, mesh: Any) -> Any:
    """`x`, whose gradient is summed over ranks. Integers have none."""
    if not x.is_floating_point():
        return x
    return _local(x, mesh, [Replicate()], run_check=False).to_local(grad_placements=[Partial()])


def _ends(name: str, names: tuple[str, ...]) -> bool:
    return any(name == one or name.endswith(f".{one}") for one in names)


def _mesh(size: int) -> Any:
    return _dist.device_mesh.init_device_mesh("cpu", (size,))


def _by_module(model: Any, size: int) -> Any:
    """Heads, widths of MLPs and experts, and the vocabulary of the head are sharded."""
    plan: dict[str, Any] = {}
    for name, _ in model.named_modules():
        if _ends(name, (*_COLUMNS, *_LATENT)):
            plan[name] = ColwiseParallel()
        elif _ends(name, _ROWS):
            plan[name] = RowwiseParallel()
        elif _ends(name, _HEADS):
            plan[name] = ColwiseParallel(output_layouts=Replicate())
        elif name.endswith(".experts"):
            plan[name] = _Experts()
    return parallelize_module(model, _mesh(size), plan)


def _by_sequence(model: Any, size: int) -> Any:
    """The same, and between the matmuls the sequence is sharded."""
    plan: dict[str, Any] = {
        "model.layers.0": PrepareModuleInput(
            input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),), use_local_output=True
        )
    }
    for name, _ in model.named_modules():
        if _ends(name, _NORMS):
            plan[name] = SequenceParallel(use_local_output=True)
        elif name.endswith(".self_attn"):  # It counts positions by what it is given: that is the whole sequence.
            plan[name] = PrepareModuleInput(
                input_kwarg_layouts={"hidden_states": Shard(1)},
                desired_input_kwarg_layouts={"hidden_states": Replicate()},
                use_local_output=True,
            )
        elif _ends(name, _COLUMNS):
            plan[name] = ColwiseParallel(input_layouts=Shard(1) if ".mlp." in name else Replicate())
        elif _ends(name, _ROWS):
            plan[name] = RowwiseParallel(output_layouts=Shard(1))
        elif _ends(name, _HEADS):
            plan[name] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    return parallelize_module(model, _mesh(size), plan)


#: By name: what parallelizes a model over so many ranks.
PLANS: dict[str, Callable[[Any, int], Any]] = {"module": _by_module, "sequence": _by_sequence}
