"""Runs a command as the ranks of a job, as torchrun does: job.py RANKS COMMAND...

Prints what the ranks say, rank after rank; the exit status is the largest of theirs.
"""

import os
import subprocess
import sys


def main() -> int:
    ranks = int(sys.argv[1])
    processes = []
    for rank in range(ranks):
        place = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
        processes.append(
            subprocess.Popen(
                sys.argv[2:],
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
