"""Hugging Face's Trainer over the backend commsir, on the CPU: torchrun --nproc-per-node 2 with_trainer.py"""

from __future__ import annotations

import tempfile
from typing import Any

import commsir
import commsir.torch
import torch
import transformers

commsir.torch.register()


class Model(torch.nn.Module):
    """A line through points."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.line(x)[:, 0] - labels).square().mean()}


def main() -> None:
    """Trains for a few steps, by calls of CommsIR alone."""
    data = [{"x": torch.full((8,), float(number)), "labels": torch.tensor(float(number))} for number in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        options: Any = transformers.TrainingArguments(
            folder, use_cpu=True, ddp_backend="commsir", max_steps=3, report_to=[], save_strategy="no"
        )
        transformers.Trainer(Model(), options, train_dataset=data).train()  # type: ignore[arg-type, unused-ignore]
    seen = {(call["op"], call["path"]) for call in commsir.stats()["calls"]}
    assert ("all_reduce", "commsir") in seen and {path for _, path in seen} == {"commsir"}, seen
    print(f"transformers {transformers.__version__}: trained over {torch.distributed.get_backend()}")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
