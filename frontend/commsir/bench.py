"""`python -m commsir.bench …`: comms-bench, which measures collectives beside NCCL. `--help` has the options."""

from __future__ import annotations

from commsir._tools import comms_bench

if __name__ == "__main__":
    comms_bench()
