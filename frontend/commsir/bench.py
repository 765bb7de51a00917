"""Benchmarks of collectives.

    python -m commsir.bench …                                 comms-bench: the library itself, against NCCL
    torchrun --nproc-per-node 4 -m commsir.bench …            in torch: ops and backend, against NCCL and
                                                              torch's symmetric memory, or against Gloo

`--help` has the options of either.
"""

from __future__ import annotations

import os
import sys

from commsir._tools import comms_bench


def main() -> None:
    """Runs the torch benchmarks in a process that torchrun has started."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        from commsir.torch import bench

        sys.exit(bench.main())
    comms_bench()


if __name__ == "__main__":
    main()
