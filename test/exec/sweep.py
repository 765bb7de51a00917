"""Runs comms-run once for each combination of algorithm, protocol and number of blocks.

Usage: sweep.py [--algorithms A,B] [--protocols P,Q] [--blocks 1,3] COMMS-RUN-ARGUMENTS...

Every run must end with status 0. The first that does not is printed, and ends the sweep with
status 1. The last line printed is the number of runs.
"""

import argparse
import itertools
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--protocols", default="")
    parser.add_argument("--blocks", default="1")
    options, rest = parser.parse_known_args()
    count = 0
    for algorithm, protocol, blocks in itertools.product(
        options.algorithms.split(","), options.protocols.split(","), options.blocks.split(",")
    ):
        command = ["comms-run", *rest, f"--blocks={blocks}"]
        command += [f"--algorithm={algorithm}"] if algorithm else []
        command += [f"--protocol={protocol}"] if protocol else []
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(" ".join(command), f"ended with status {done.returncode}", sep="\n")
            print(done.stdout, done.stderr, sep="\n")
            return 1
        count += 1
    print(f"{count} runs agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
