"""A model trained by Accelerate over the backend commsir, on the CPU: torchrun --nproc-per-node 2 with_accelerate.py"""

from __future__ import annotations

from typing import Any

import accelerate
import commsir
import commsir.torch
import torch

commsir.torch.register()


def main() -> None:
    """Both ranks get the same weights, by calls of CommsIR alone."""
    state = accelerate.InitProcessGroupKwargs(backend="commsir")
    accelerator = accelerate.Accelerator(cpu=True, kwargs_handlers=[state])
    torch.manual_seed(accelerator.process_index)
    model: Any = torch.nn.Linear(8, 1)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(4):
        accelerator.backward(model(torch.randn(16, 8)).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    weights = accelerator.gather(next(model.parameters()).detach())
    assert torch.equal(weights[0], weights[1]), weights
    seen = {(call["op"], call["path"]) for call in commsir.stats()["calls"]}
    assert ("all_reduce", "commsir") in seen and {path for _, path in seen} == {"commsir"}, seen
    print(f"accelerate {accelerate.__version__}: trained over {torch.distributed.get_backend()}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
