"""Data-parallel training on the digits that scikit-learn ships; an ordinary PyTorch program.

torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.ddp_digits --backend commsir [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

from commsir.examples.torch.start import add_device, need_ranks, use_device


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="commsir")
    parser.add_argument("--epochs", type=int, default=6)
    add_device(parser)
    parser.add_argument("--report", help="file for the losses of rank 0, as JSON")
    options = parser.parse_args(arguments)

    need_ranks()
    device = use_device(options.device)
    dist.init_process_group(options.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32, device=device) / 16
    labels = torch.tensor(digits.target, device=device)
    order = torch.randperm(len(labels)).to(device)
    train, test = order[:1440], order[1440:]

    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model = DistributedDataParallel(layers.to(device))
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
            dist.all_reduce(mean, op=dist.ReduceOp.SUM)
            losses.append(mean.item() / ranks)

    own = test.chunk(ranks)[rank]
    right = (model(pixels[own]).argmax(1) == labels[own]).sum().to(torch.float32)
    dist.all_reduce(right)
    accuracy = right.item() / len(test)
    if rank == 0:
        print(f"{options.backend}: loss {losses[0]:.3f} to {losses[-1]:.3f}, accuracy {accuracy:.3f}")
        if options.report:
            # torch has loaded the backend; the program need not know it.
            ours = sys.modules.get("commsir.torch")
            calls = ours.stats()["calls"] if ours else []
            with open(options.report, "w") as file:
                json.dump({"losses": losses, "accuracy": accuracy, "calls": calls}, file)
    dist.destroy_process_group()
    return losses, accuracy


if __name__ == "__main__":
    main()
