"""A trainer pushes its weights to samplers, which take part in nothing and never wait for it.

Rank 0 trains; each other rank samples with the newest weights that have come. A sampler has two copies, looks at the
version before each batch, and says which it uses: the trainer then writes the other one, or, where a sampler is slow,
skips it this time.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn

import commsir.torch
from commsir.examples.torch.start import add_device, need_ranks, use_device
from commsir.window import GroupWindow

dist: Any = torch.distributed

TRAINER = 0
#: Cells of samplers: the version that has come, and the number of the last one, once it is known. Cell r of the
#: trainer: what rank r uses.
VERSION, LAST = 0, 1
FEATURES, STEPS = 32, 200


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 1))


def flat(net: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()]).to(torch.bfloat16)


def batch(seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    x = torch.randn(256, FEATURES, generator=torch.Generator().manual_seed(seed)).to(device)
    return x, torch.sin(x.sum(1, keepdim=True) / 4)


def train(window: GroupWindow, ranks: int) -> float:
    device = window.tensor.device
    net = model().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    used = [0] * ranks
    for number in range(1, STEPS + 1):
        x, y = batch(number, device)
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        weights = flat(net)
        for sampler in range(1, ranks):
            # Version n + 1 takes the place of n - 1.
            free, version = used[sampler] - 1, used[sampler] + 1
            if number == STEPS:  # This one has to arrive.
                window.wait(max(free, 0), cell=sampler, source=sampler)
                window.signal(sampler, version, cell=LAST)
            if window.read_signal(sampler) >= free:
                window.put_signal(weights, sampler, version, at=version % 2, cell=VERSION)
                used[sampler] = version
    return float(loss.detach())


def sample(window: GroupWindow, rank: int) -> tuple[int, float]:
    device = window.tensor.device
    net, version, loss = model().to(device), 0, 0.0
    window.wait(1, cell=VERSION, source=TRAINER)
    x, y = batch(0, device)
    while version == 0 or version != window.read_signal(LAST):
        newest = window.read_signal(VERSION)
        if newest > version:
            version = newest
            weights = window.tensor[version % 2].clone()
            window.signal(TRAINER, version, cell=rank)
            nn.utils.vector_to_parameters(weights.float(), net.parameters())
        with torch.no_grad():
            loss = float(nn.functional.mse_loss(net(x), y))
    return version, loss


def run(device: str = "cpu") -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    window = commsir.torch.window((2, flat(model()).numel()), torch.bfloat16, signals=max(ranks, 2), device=device)
    if rank == TRAINER:
        print(f"trainer: loss {train(window, ranks):.4f} after {STEPS} steps", flush=True)
    else:
        version, loss = sample(window, rank)
        assert version > 1 and loss < 0.2, f"version {version}, loss {loss}"
        print(f"sampler {rank}: {version} versions, loss {loss:.4f} with the last", flush=True)
    dist.barrier()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    add_device(parser)
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)
    need_ranks()
    device = use_device(options.device)
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl", timeout=timedelta(seconds=120))
    run(device.type)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
