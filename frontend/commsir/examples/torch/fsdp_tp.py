"""Training as torchtitan does it: FSDP2 over one dimension of the mesh, tensor parallelism over the other.

torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.fsdp_tp --backend commsir [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module

from commsir.examples.torch.start import add_device, need_ranks, use_device
from commsir.examples.torch.transformer import ENDS_PLAN, SEQUENCE_PLAN, Transformer


def main(arguments: Sequence[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="commsir")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--layers", type=int, default=2)
    add_device(parser)
    parser.add_argument("--tensor", type=int, help="ranks that share a layer [half of all]")
    parser.add_argument("--report", help="file for the losses, as JSON")
    options = parser.parse_args(arguments)

    need_ranks()
    device = use_device(options.device)
    dist.init_process_group(options.backend)
    torch.manual_seed(0)
    tensor = options.tensor or dist.get_world_size() // 2
    mesh = init_device_mesh(device.type, (dist.get_world_size() // tensor, tensor), mesh_dim_names=("data", "tensor"))
    model: Any = Transformer(layers=options.layers).to(device)
    parallelize_module(model, mesh["tensor"], ENDS_PLAN)
    for block in model.blocks:
        parallelize_module(block, mesh["tensor"], SEQUENCE_PLAN)
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)

    # Sequences that count up by a step of their own: what comes next can be learnt.
    losses = []
    batches = torch.Generator().manual_seed(1 + mesh.get_local_rank("data"))
    for _ in range(options.steps):
        first, step = torch.randint(48, (8, 1), generator=batches), torch.randint(1, 4, (8, 1), generator=batches)
        text = ((first + step * torch.arange(17)) % 48).to(device)
        logits = model(text[:, :-1])
        loss: Any = torch.nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, group=mesh.get_group("data"))
        losses.append(mean.item() / mesh["data"].size())
    if dist.get_rank() == 0:
        if options.report:
            pathlib.Path(options.report).write_text(json.dumps(losses))
        print(f"{options.backend}: loss {losses[0]:.3f} to {losses[-1]:.3f}")
    dist.destroy_process_group()
    return losses


if __name__ == "__main__":
    main()
