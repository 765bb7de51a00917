"""Deletes each synchronization of every way of every collective as lowered to memory: the checker refuses each result.

Usage: delete_everywhere.py [--comms-opt PROGRAM] [--ranks N] [--blocks B]

One barrier is not missed, and the checker has to accept that: the last one of a collective in which some rank sends but
receives nothing (M19). Over pull and push the barrier between sends and receives orders the use of two buffers alone.
"""

import argparse
import itertools
import re
import subprocess
import sys

from every_way import ALGORITHMS, COLLECTIVES, PROTOCOLS, kernel

SEPARATOR = "// -----\n"
#: Collectives in which some rank receives nothing.
ONE_WAY = ("broadcast", "reduce", "gather", "scatter", "send_recv")
SYNC = re.compile(r"comms\.(barrier|barrier_arrive|barrier_wait|signal|fence|packet_store|poison_store|poison_fill)\b")


def run(options: argparse.Namespace, texts: list[str], *passes: str) -> tuple[list[str], list[list[str]]]:
    """The texts after some passes, and the errors of each."""
    command = [options.comms_opt, "-split-input-file", *passes]
    done = subprocess.run(command, input=SEPARATOR.join(texts), capture_output=True, text=True, check=False)
    starts = [0, *itertools.accumulate(text.count("\n") + 1 for text in texts)]
    errors: list[list[str]] = [[] for _ in texts]
    for line, said in re.findall(r"^[^:\n]*:(\d+):\d+: error: (.*)$", done.stderr, re.MULTILINE):
        errors[max(i for i, start in enumerate(starts[:-1]) if start < int(line))].append(said)
    return done.stdout.split(SEPARATOR), errors


def deletions(text: str) -> list[tuple[str, str]]:
    """What is deleted, and what is left."""
    lines = text.splitlines()
    return [
        (line.strip(), "\n".join([*lines[:at], *lines[at + 1 :], ""]))
        for at, line in enumerate(lines)
        # The wait of a split barrier takes what its arrival returns.
        if SYNC.search(line) and " = " not in line
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comms-opt", default="comms-opt")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=2)
    options = parser.parse_args()
    deleted, spare, accepted = 0, 0, []
    for algorithm, protocol in itertools.product(ALGORITHMS, PROTOCOLS):
        expand = f"-comms-expand-collectives=algorithm={algorithm} protocol={protocol} blocks={options.blocks}"
        lower = ["-comms-lower-channels", "-comms-eliminate-barriers", "-canonicalize", "-cse"]
        for name in COLLECTIVES:
            found, errors = run(options, [kernel(name, options.ranks)], expand, "-canonicalize", "-cse", *lower)
            if errors[0]:  # The collective has no such way.
                continue
            mutants = deletions(found[0])
            if not mutants:
                print(f"{name}, {algorithm}, {protocol}: nothing to delete")
                return 1
            texts = [text for _, text in mutants]
            _, errors = run(options, texts, f"-comms-check-sync=blocks={options.blocks}")
            deleted += len(mutants)
            for at, said in enumerate(errors):
                is_refused = any(re.match(r"'comms\.|'memref\.|deadlock: ", one) for one in said)
                is_last = at == len(mutants) - 1 and "comms.barrier " in mutants[at][0]
                if is_last and name in ONE_WAY and protocol in ("pull", "push"):
                    spare += not is_refused
                elif not is_refused:
                    accepted.append(f"{name}, {algorithm}, {protocol}: accepted without {mutants[at][0]}")
    print(*accepted, f"{deleted} deletions, {deleted - len(accepted) - spare} refused, {spare} spare", sep="\n")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
