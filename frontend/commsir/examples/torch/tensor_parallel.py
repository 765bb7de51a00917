"""Tensor-parallel inference of a small transformer, and the same compiled with collectives fused into kernels.

torchrun --standalone --nproc-per-node 4 -m commsir.examples.torch.tensor_parallel --compile [--device cuda]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

from commsir.examples.torch.start import add_device, need_ranks, use_device
from commsir.examples.torch.transformer import PLAN, Transformer


def generate(model: torch.nn.Module, tokens: torch.Tensor, count: int) -> torch.Tensor:
    """The likeliest continuation, token by token."""
    for _ in range(count):
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], 1)
    return tokens


@torch.no_grad()
def main(arguments: Sequence[str] | None = None) -> tuple[float, list[str]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="commsir")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    add_device(parser)
    options = parser.parse_args(arguments)

    need_ranks()
    device = use_device(options.device)
    dist.init_process_group(options.backend)
    ranks = dist.get_world_size()
    heads = max(4, ranks)  # One for each rank at least.
    torch.manual_seed(0)
    whole = Transformer(heads=heads, layers=options.layers).to(device)
    torch.manual_seed(0)
    model: torch.nn.Module = Transformer(heads=heads, layers=options.layers).to(device)
    mesh = init_device_mesh(device.type, (ranks,))
    for block in model.blocks:  # type: ignore[union-attr]
        parallelize_module(block, mesh, PLAN)

    fused: list[str] = []
    prompt = torch.tensor([[1, 2, 3, 5, 7, 11, 13, 17]], device=device)
    if options.compile:
        import commsir.torch

        compiled = torch.compile(model, fullgraph=True, options=commsir.torch.compile_options())
        compiled(prompt)  # Ranks agree on the kernels, in addition to the sums of the process group.
        logits = compiled(prompt)
        fused = [str(one) for one in commsir.torch.fusions()]
    else:
        logits = model(prompt)
        # Greedy decoding picks the same tokens as the model on one rank.
        assert torch.equal(generate(model, prompt, 4), generate(whole, prompt, 4))
    off = float((logits - whole(prompt)).abs().max())
    assert off < 1e-4, f"logits differ from those of the model on one rank by {off}"
    if dist.get_rank() == 0:
        print(f"{options.backend}: {ranks} ranks give the logits of one, within {off:.1e}", *fused, sep="\n")
    dist.destroy_process_group()
    return off, fused


if __name__ == "__main__":
    main()
