"""FSDP2 on the digits that scikit-learn ships: parameters are sharded, gathered for use, gradients are scattered.

torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.fsdp_digits --backend commsir [--device cuda]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from commsir.examples.torch.start import add_device, need_ranks, use_device


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="commsir")
    parser.add_argument("--epochs", type=int, default=4)
    add_device(parser)
    options = parser.parse_args(arguments)

    need_ranks()
    device = use_device(options.device)
    dist.init_process_group(options.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32, device=device) / 16
    labels = torch.tensor(digits.target, device=device)
    order = torch.randperm(len(labels)).to(device)
    train, test = order[:1440], order[1440:]

    mesh = init_device_mesh(device.type, (ranks,))
    model: Any = torch.nn.Sequential(
        torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 96), torch.nn.ReLU(), torch.nn.Linear(96, 10)
    ).to(device)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    losses = []
    for _ in range(options.epochs):
        for batch in torch.split(train, 160):
            own = batch.chunk(ranks)[rank]
            loss: Any = torch.nn.functional.cross_entropy(model(pixels[own]), labels[own])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            losses.append(mean.item() / ranks)

    own = test.chunk(ranks)[rank]
    right = (model(pixels[own]).argmax(1) == labels[own]).sum()
    dist.all_reduce(right)
    accuracy = right.item() / len(test)
    if rank == 0:
        print(f"{options.backend}: loss {losses[0]:.3f} to {losses[-1]:.3f}, accuracy {accuracy:.3f}")
    dist.destroy_process_group()
    return losses, accuracy


if __name__ == "__main__":
    main()
