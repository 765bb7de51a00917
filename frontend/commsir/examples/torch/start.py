"""How these programs are started: once for each rank, by torchrun or any launcher that sets the same variables."""

from __future__ import annotations

import os
import sys

__all__ = ["need_ranks"]

#: What init_process_group reads.
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def need_ranks() -> None:
    """Ends a program that was started by itself, and says how to start it."""
    missing = [name for name in _VARIABLES if name not in os.environ]
    if not missing:
        return
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"-m {spec.name}" if spec is not None else sys.argv[0]
    sys.exit(
        f"this program has a process for each rank, and {', '.join(missing)} of the environment would say which this "
        f"is. Start it with\n\n    torchrun --standalone --nproc-per-node 4 {program}"
    )
