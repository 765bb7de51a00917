"""A backend whose all_reduce sends fp8: commsir.examples.quantized takes the place of one collective, the rest stay.

torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.quantized_backend [--device cuda]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

import commsir.torch
from commsir.examples.quantized import quantized
from commsir.examples.torch.start import add_device, need_ranks, use_device

#: Elements that share a scale.
ROW = 128


class QuantizedGroup(commsir.torch.ProcessGroup):
    """Sums of one float32 tensor go through fp8; what else there is to reduce does not."""

    def allreduce(self, tensors: Any, opts: Any = None) -> Any:
        (tensor,) = tensors
        if tensor.dtype != torch.float32 or (opts is not None and opts.reduceOp != dist.ReduceOp.SUM):
            return super().allreduce(tensors, opts)

        def run() -> None:
            ranks = self.settings.size
            share = -(-tensor.numel() // (ROW * ranks))  # rows that each rank sums
            x, parts, y = (tensor.new_zeros(ranks * share, ROW) for _ in range(3))
            x.view(-1)[: tensor.numel()] = tensor.flatten()
            kernel = self.group.kernel(quantized, rows=ranks * share, share=share, n=ROW)
            kernel(x, parts, tensor.new_zeros(share, ROW), y)
            tensor.copy_(y.view(-1)[: tensor.numel()].view(tensor.shape))

        return self.submit("quantized_all_reduce", tensors, tensors, run, opts)


def main(arguments: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser()
    add_device(parser)
    options = parser.parse_args(arguments)

    need_ranks()
    device = use_device(options.device)
    commsir.torch.register_backend("quantized", QuantizedGroup)
    dist.init_process_group("quantized")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = [torch.randn(40, 30, generator=torch.Generator().manual_seed(r)) for r in range(ranks)]
    x = parts[rank].to(device, copy=True)
    dist.all_reduce(x)
    expected = torch.stack(parts).sum(0).to(device)
    error = float((x - expected).norm() / expected.norm())
    assert 1e-4 < error < 0.05, error  # fp8 has three bits of mantissa
    largest = torch.tensor([float(rank)], device=device)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    assert float(largest) == ranks - 1
    if rank == 0:
        print(f"the sum of {ranks} ranks by way of fp8 is off by {100 * error:.1f} %")
    dist.destroy_process_group()
    return error


if __name__ == "__main__":
    main()
