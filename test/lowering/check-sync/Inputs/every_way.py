"""Proves every algorithm and protocol of every collective on several numbers of ranks, over channels and in memory.

Usage: every_way.py [--comms-opt PROGRAM] [--ranks N,N,...] [--blocks B] [--limit SECONDS]

Expands each collective by each pair of algorithm and protocol that supports it. All kernels of one pair are proven
in one run, on all ranks and blocks, within the limit; so each of them is.
"""

import argparse
import itertools
import re
import resource
import subprocess
import sys

ALGORITHMS = ("one_shot", "two_shot", "ring", "permutation")
PROTOCOLS = ("pull", "push", "ll", "ll128", "lamport")

#: The op, and the rows of its input and output: of each rank, or of all.
COLLECTIVES = {
    "all_reduce": ("all_reduce sum %team", "all", "all"),
    "reduce_scatter": ("reduce_scatter avg %team", "all", "each"),
    "all_gather": ("all_gather %team", "each", "all"),
    "all_to_all": ("all_to_all %team", "all", "all"),
    "broadcast": ("broadcast root 1 %team", "all", "all"),
    "reduce": ("reduce max root 1 %team", "all", "all"),
    "gather": ("gather root 0 %team", "each", "all"),
    "scatter": ("scatter root 1 %team", "all", "each"),
    "send_recv": ("send_recv %team from 0 to 1", "all", "all"),
}


def kernel(name: str, ranks: int) -> str:
    """One kernel of the collective, over memory that ranks share where they may."""
    op, source, target = COLLECTIVES[name]
    rows = {"each": 4, "all": 4 * ranks}
    x, y = (f"memref<{rows[side]}x64xf32>" for side in (source, target))
    return f"""comms.kernel @{name}(%x: {x}, %y: {y}) attributes {{ranks = {ranks} : i64}} {{
  %team = comms.team world
  comms.{op} ins(%x : {x}) outs(%y : {y})
  comms.return
}}
"""


def children() -> float:
    """Seconds of processor time that programs have taken which were started here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comms-opt", default="comms-opt")
    parser.add_argument("--ranks", default="2,3,5,8")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--limit", type=float, default=1)
    options = parser.parse_args()
    proven, longest = 0, 0.0
    counts = [int(count) for count in options.ranks.split(",")]
    for ranks, algorithm, protocol, lowers in itertools.product(counts, ALGORITHMS, PROTOCOLS, (False, True)):
        expand = f"-comms-expand-collectives=algorithm={algorithm} protocol={protocol} blocks={options.blocks}"
        check = f"-comms-check-sync=blocks={options.blocks} require-proof"
        passes = [expand, *(["-comms-lower-channels"] if lowers else []), check]
        text = "// -----\n".join(kernel(name, ranks) for name in COLLECTIVES)
        command = [options.comms_opt, "-split-input-file", *passes]
        before = children()
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        seconds = children() - before
        way = f"{ranks} ranks, {algorithm}, {protocol}{', lowered' * lowers}"
        errors = [line for line in done.stderr.splitlines() if re.search(r": (error|warning): ", line)]
        if wrong := [line for line in errors if "cannot be used" not in line]:
            print(way, *wrong, sep="\n")
            return 1
        found = done.stdout.count('verdict = "proven"')
        if found + len(errors) != len(COLLECTIVES):
            print(f"{way}: {found} are proven, and {len(errors)} cannot be used\n{done.stderr}")
            return 1
        proven, longest = proven + found, max(longest, seconds)
        if seconds > options.limit:
            print(f"{way}: {seconds:.2f} s, more than {options.limit} s")
            return 1
    print(f"{proven} kernels, all proven; {1000 * longest:.0f} ms at most for all of one way")
    return 0


if __name__ == "__main__":
    sys.exit(main())
