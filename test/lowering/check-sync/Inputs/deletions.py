"""Deletes each synchronization of a correct program, one at a time: the checker must refuse each result.

Usage: deletions.py FILE.mlir [--algorithms A,B] [--protocols P,Q] [--lowered]

Takes the program of every algorithm and protocol, over channels and lowered to memory. A
deleted receive becomes an empty tile, so that the program stays well-formed.
With --lowered, only the programs lowered to memory: over channels, a barrier may be next to
another that the protocol merges with it.
"""

import argparse
import itertools
import re
import subprocess
import sys

CHECK = "-comms-check-sync=blocks=2 launches=5"
SYNC = re.compile(r"comms\.(barrier|channel_barrier|send|recv|packet_store|poison_store|poison_fill)\b")
RECEIVED = re.compile(r"= comms\.recv .* -> (tensor<\S+>)")


def opt(text: str, *passes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["comms-opt", *passes], input=text, capture_output=True, text=True)


def without(lines: list[str], index: int) -> str:
    kept = RECEIVED.sub(r"= tensor.empty() : \1", lines[index]) if RECEIVED.search(lines[index]) else ""
    return "\n".join([*lines[:index], kept, *lines[index + 1 :]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--algorithms", default="one_shot,two_shot,ring")
    parser.add_argument("--protocols", default="pull,ll,lamport")
    parser.add_argument("--lowered", action="store_true")
    options = parser.parse_args()
    with open(options.file) as file:
        source = file.read()
    deleted = 0
    for algorithm, protocol, lowered in itertools.product(
        options.algorithms.split(","), options.protocols.split(","), (True,) if options.lowered else (False, True)
    ):
        passes = [f"-comms-expand-collectives=algorithm={algorithm} protocol={protocol}", "-canonicalize", "-cse"]
        # A barrier next to another is not missed.
        passes += ["-comms-lower-channels", "-comms-eliminate-barriers", "-canonicalize", "-cse"] if lowered else []
        program = opt(source, *passes)
        if program.returncode or opt(program.stdout, CHECK).returncode:
            print(f"{algorithm} {protocol}: the program itself is refused\n{program.stderr}")
            return 1
        lines = program.stdout.splitlines()
        for index, line in enumerate(lines):
            if not SYNC.search(line):
                continue
            deleted += 1
            verdict = opt(without(lines, index), CHECK)
            # A refusal, rather than a program that does not parse.
            if verdict.returncode == 0 or "note:" not in verdict.stderr:
                print(f"{algorithm} {protocol}: accepted without {line.strip()}\n{verdict.stderr}")
                return 1
    print(f"{deleted} deletions, all refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
