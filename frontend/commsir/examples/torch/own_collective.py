"""A researcher's own collective on tensors: a kernel in Python, launched by the ranks of a torch process group.

torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.own_collective [--device cuda]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed

import commsir
from commsir.examples.one_shot import one_shot
from commsir.examples.torch.start import add_device, need_ranks, use_device

dist: Any = torch.distributed


def main(arguments: Sequence[str] | None = None) -> dict[str, int]:
    parser = argparse.ArgumentParser()
    add_device(parser)
    options = parser.parse_args(arguments)

    need_ranks()
    device = use_device(options.device)
    dist.init_process_group("gloo" if device.type == "cpu" else "nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    # CommsIR's group meets in the store of torch's, or in any other store that all ranks see.
    store = dist.PrefixStore("own collective", dist.distributed_c10d._get_default_store())
    with commsir.Group(rank, ranks, store=store, device=device) as group:
        inbox = group.allocate((2 * ranks, 256))  # where peers write; signals are the group's own
        kernel = group.kernel(one_shot, slots=2 * ranks, n=256)
        y = torch.empty(256, device=device)
        for launch in range(5):
            x = torch.arange(256.0, device=device) * (rank + 1) + launch
            kernel(x=x, inbox=inbox, y=y)
            expected = x.clone()
            dist.all_reduce(expected)
            assert torch.equal(y, expected), f"launch {launch}: {y} is not {expected}"
        stats = group.stats()
    if rank == 0:
        print(f"{kernel}: 5 launches give what all_reduce gives; {stats}")
    dist.destroy_process_group()
    return stats


if __name__ == "__main__":
    main()
