"""How these programs are started: once for each rank, by torchrun or any launcher that sets the same variables."""

from __future__ import annotations

import argparse
import os
import sys

import torch

__all__ = ["add_device", "need_ranks", "use_device"]

#: What init_process_group reads.
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where tensors are [cpu]")


def use_device(name: str) -> torch.device:
    """The CPU, or this rank's GPU, which is made current.

    Ranks beyond the GPUs of the host share those, which takes COMMSIR_SHARE_GPU=1.
    """
    if name == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % max(1, torch.cuda.device_count()))
    torch.cuda.set_device(device)
    return device


def need_ranks() -> None:
    """Exits with instructions if the program was started without a launcher."""
    missing = [name for name in _VARIABLES if name not in os.environ]
    if not missing:
        return
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"-m {spec.name}" if spec is not None else sys.argv[0]
    sys.exit(
        f"each rank of this program is a process, and {', '.join(missing)} of the environment must say which rank it "
        f"is. Start it with\n\n    torchrun --standalone --nproc-per-node 4 {program}"
    )
