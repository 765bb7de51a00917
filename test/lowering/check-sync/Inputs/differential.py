"""Looks for kernels that the checker accepts and that can hang or race.

Usage: differential.py [--seed S] [--programs N] [--schedules K] [--jobs J] [--chains] [--keep FOLDER] [--alarms]

Takes correct programs of signals, packets, poison, barriers, fences, puts, gets, counters, channels and accesses to
single elements, by load and store, by GIN and by the switch, through views, in loops whose count is data, and in roles,
written for each rank and block, and changes a few of their ops: it deletes, duplicates, swaps, weakens or redirects
them. Some programs are written once for all blocks, with places and cells that depend on the block's number. An
implementation of the memory model that shares nothing with the checker runs each under random schedules, launch after
launch, with the clocks of the values that were actually read. It looks for deadlocks, for races, and for loads that
see other packets or tiles in other schedules. Unordered writes of a cell, packet or element come in any order, and
reads take any value that they may take (M13). A program that the checker accepts must pass all schedules, and must
still be accepted after redundant barriers are removed. --chains draws only programs in which a write follows another
through a chain of messages. --jobs is the number of processes. --alarms prints the programs that the checker refuses
although no schedule fails.
"""

import argparse
import concurrent.futures
import dataclasses
import pathlib
import random
import re
import subprocess
import sys

from sync_changes import change
from sync_model import fault
from sync_program import Program
from sync_templates import CHAINS, TEMPLATES, make, make_striped, spread
from sync_text import Writer


def doubled(random_: random.Random, program: Program) -> Program:
    """Some barriers twice, of which the compiler takes one away."""
    if program.striped is not None:
        once = doubled(random_, Program(program.ranks, 1, program.striped))
        return spread(once.ops, program.ranks, program.blocks)
    ops = {
        thread: [op for op in mine for _ in range(1 + (op.kind == "barrier" and random_.random() < 0.6))]
        for thread, mine in program.ops.items()
    }
    return dataclasses.replace(program, ops=ops)


def verdicts(texts: list[str], opt: str, *passes: str) -> list[str]:
    """The first error of each kernel after some passes, or ''."""
    source = "// -----\n".join(texts)
    command = [opt, "-split-input-file", *passes, "-comms-check-sync", "-o", "/dev/null"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"comms-opt ended with {done.returncode}\n{done.stderr}")
    starts, line = [], 1
    for text in texts:
        starts.append(line)
        line += text.count("\n") + 1
    found = [""] * len(texts)
    for at, kind, what in re.findall(r"^[^:\n]*:(\d+):\d+: (error|warning): (.*)$", done.stderr, re.M):
        index = max(i for i, start in enumerate(starts) if start <= int(at))
        if kind == "warning" or not what.startswith(("deadlock: ", "'comms.", "'scf.", "'memref.")):
            sys.exit(f"{what}\n{texts[index]}")
        found[index] = found[index] or what
    return found


def shrink(program: Program, seed: int, schedules: int, opt: str) -> Program:
    """Leaves ops out for as long as the program stays accepted and wrong."""
    if program.striped is not None:
        return program
    again = True
    while again:
        again = False
        for thread in program.threads():
            for index in reversed(range(len(program.ops[thread]))):
                ops = {t: list(o) for t, o in program.ops.items()}
                del ops[thread][index]
                less = dataclasses.replace(program, ops=ops)
                if not verdicts([Writer("k", less).text()], opt)[0] and fault(less, random.Random(seed), schedules):
                    program, again = less, True
    return program


@dataclasses.dataclass
class Found:
    """What came of some programs."""

    accepted: int = 0
    refused: int = 0
    alarms: int = 0
    # What was said of each that was accepted though it is wrong.
    failures: list[str] = dataclasses.field(default_factory=list)
    said: list[str] = dataclasses.field(default_factory=list)


def draw(options: argparse.Namespace, number: int) -> Program:
    random_ = random.Random(options.seed * 1_000_003 + number)
    if number % 4 == 3 and not options.chains:
        return make_striped(random_)
    program = make(random_, CHAINS if options.chains else TEMPLATES)
    for _ in range(random_.choice([0, 1, 1, 1, 2, 3])):
        change(random_, program)
    return program


def judge(options: argparse.Namespace, first: int, last: int) -> Found:
    """Compares the checker with the model on programs of these numbers."""
    found = Found()
    programs = [draw(options, number) for number in range(first, last)]
    texts = [Writer(f"k{first + i}", program).text() for i, program in enumerate(programs)]
    # What is right has to stay so when barriers are taken away.
    twice = [doubled(random.Random(options.seed + i), program) for i, program in enumerate(programs)]
    more = texts + [Writer(f"k{first + i}", program).text() for i, program in enumerate(twice)]
    before, behind = (verdicts(more, options.comms_opt, *p) for p in ((), ("-comms-eliminate-barriers",)))
    for text, was, now in zip(more, before, behind, strict=True):
        if not was and now:
            found.failures.append(f"accepted, but not without barriers that are taken away: {now}\n{text}")
    for i, verdict in enumerate(before[: len(texts)]):
        seed = options.seed + first + i
        found.accepted, found.refused = found.accepted + (not verdict), found.refused + bool(verdict)
        if verdict and not options.alarms:
            continue
        wrong = fault(programs[i], random.Random(seed), options.schedules)
        if verdict and not wrong:
            found.alarms += 1
            found.said.append(f"k{first + i}: no schedule fails, but: {verdict}")
        if not verdict and wrong:
            found.failures.append(f"k{first + i}: accepted, but {wrong}\n{explain(options, programs[i], first + i)}")
    return found


def explain(options: argparse.Namespace, program: Program, number: int) -> str:
    """The text of a program that is accepted though it is wrong; with --keep the least of its kind, and its ops."""
    if not options.keep:
        return Writer(f"k{number}", program).text()
    seed, schedules = options.seed + number, 4 * options.schedules
    less = shrink(program, seed, schedules, options.comms_opt)
    (options.keep / f"{options.seed}-{number}.mlir").write_text(Writer(f"k{number}", less).text())
    lines = [fault(less, random.Random(seed), schedules)]
    for thread, ops in less.ops.items():
        lines += [str(thread), *(f"  {op}" for op in ops)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--comms-opt", default="comms-opt")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--alarms", action="store_true")
    options = parser.parse_args()
    total = Found()
    size = 100
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        batches = [
            pool.submit(judge, options, first, min(first + size, options.programs))
            for first in range(0, options.programs, size)
        ]
        for batch in concurrent.futures.as_completed(batches):
            found = batch.result()
            total.accepted += found.accepted
            total.refused += found.refused
            total.alarms += found.alarms
            total.failures += found.failures
            for text in found.said + found.failures:
                print(text, flush=True)
    if total.failures:
        print(f"{len(total.failures)} accepted though they are wrong, {total.accepted} accepted in all")
        return 1
    said = f", {total.alarms} of them though no schedule fails" if options.alarms else ""
    print(f"{total.accepted} accepted, none of them wrong; {total.refused} refused{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
