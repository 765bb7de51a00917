"""Runs a command as the ranks of a job: job.py [--as torchrun|openmpi|mpich|slurm] RANKS COMMAND...

Prints the ranks' output, rank after rank; the exit status is the largest of theirs.
"""

import os
import subprocess
import sys

# What tells a process its rank, how many there are, and its rank on the host.
VARIABLES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "openmpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "mpich": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    "slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
}


def main() -> int:
    words = sys.argv[1:]
    launcher = "torchrun"
    if words[0] == "--as":
        launcher, words = words[1], words[2:]
    ranks = int(words[0])
    processes = []
    for rank in range(ranks):
        place = dict(zip(VARIABLES[launcher], map(str, (rank, ranks, rank)), strict=True))
        processes.append(
            subprocess.Popen(
                words[1:],
                env=os.environ | place,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    status = 0
    for process in processes:
        said, _ = process.communicate(timeout=120)
        print(said, end="")
        status = max(status, process.returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
