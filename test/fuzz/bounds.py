"""Random kernels whose accesses may leave their arrays, compared with a model of every access.

A program computes indices by all integer ops that kernels may contain, in loops, branches and blocks, and uses them
in every op that reaches memory, a cell or a peer. The model computes with Python's integers. It knows the first access
that is out of bounds, or that there is none. All data is one number, which never changes; canaries surround the arrays.
  - If an access of the model leaves its bounds, the run must end with an error that says so.
  - If none does, the run must succeed, unless compilation refuses an access that is never executed.
  - In both cases the canaries must not change, and the process must not crash.
Every access has an effect that can be observed: the compiler may omit others, and then does not report them
(docs/Spec.md).

Before the random programs, each kind of access runs with constants out of bounds: REFUSAL must know every text of
refusal, including those that random programs rarely cause.

Usage: bounds.py [--programs N] [--seed S] [--seconds T] [--jobs J] [--keep FOLDER]
A failure prints the seed and keeps the kernel in FOLDER: `bounds.py --seed SEED --programs 1` runs it again.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import commsir
import numpy as np
from access_programs import Program
from index_programs import DATA, Step

CANARY = 0x5EED
# What the verifiers, the bounds pass and the checker say of an access that is known to leave bounds.
REFUSAL = re.compile(
    r"out.of.bounds|leaves? the (packet )?(memory|source|window|dest|(left|right) operand|product)"
    r"|addresses rank|not a rank of the team"
    r"|valid elements of a tile|there is no (signal|counter) cell|(reads|writes) elements \[|negative|below 0"
    r"|uses cell|of a tile that has|has a step of|has bounds that are 2|it must be at least 0"
)

Array = np.ndarray[Any, Any]


class OfConstants(Program):
    """One access, by constants of which one is out of bounds."""

    def __init__(self, variant: int, access: str, operand: int, value: int) -> None:
        self.choice = access, operand, value
        super().__init__(variant)

    def draw(self, lines: list[str], body: list[Step]) -> None:
        access, operand, value = self.choice
        self.check = False
        self.constant(lines, body, "%wrong", value)
        operands = ["%k2", "%k2", "%k0"]
        operands[operand] = "%wrong"
        self.write(lines, body, getattr(self, access), (operands[0], operands[1], operands[2]))


def list_refusals() -> Iterator[OfConstants]:
    """Every kind of access in each of its forms, with constants that no form of it takes."""
    seen: set[str] = set()
    any_program = Program(0)
    any_program.has_blocks = False
    accesses = [access.__name__ for access in any_program.accesses()]
    for access, variant, operand, value in itertools.product(accesses, range(12), range(3), (-1, 17)):
        program = OfConstants(variant, access, operand, value)
        if program.source not in seen:
            seen.add(program.source)
            yield program


def judge_refusals() -> int:
    """How many of them have an end that is wrong."""
    counts: collections.Counter[str] = collections.Counter()
    for program in list_refusals():
        said, wrong = judge(program)
        counts[said] += 1
        counts["wrong"] += bool(wrong)
        if wrong:
            print(f"WRONG {' '.join(map(str, program.choice))}: {wrong}\n{program.source}", flush=True)
    print("constants: " + ", ".join(f"{name}: {number}" for name, number in sorted(counts.items())), flush=True)
    return counts["wrong"]


def canaried(size: int, value: int, kind: type) -> tuple[Array, Array]:
    """An array between canaries, and all of them."""
    whole: Array = np.full(size + 512, CANARY, kind)
    part = whole[256 : 256 + size]
    part[:] = value
    return part, whole


def simulate(program: Program, arrays: dict[str, list[Array]], check: bool) -> tuple[str, str]:
    """How a run ends, and its message."""
    try:
        commsir.simulate(program.source, ranks=program.ranks, arrays=arrays, time_limit=5, check=check)
    except commsir.BoundsError as error:
        return "bounds", str(error)
    except commsir.LimitError as error:
        return "long", str(error)
    except commsir.CompileError as error:
        if REFUSAL.search(str(error)):
            return "refused", str(error)
        return "unproven" if isinstance(error, commsir.CheckError) else "other", str(error)
    except commsir.DeadlockError as error:
        # A loop without an end that reads a cell polls.
        return "long" if "blocks poll" in str(error) else "other", str(error)
    except commsir.CommsError as error:
        return "other", str(error)
    return "good", ""


def judge(program: Program) -> tuple[str, str]:
    """What has happened, and what is wrong with it; empty: nothing."""
    expected = program.predict()
    ranks = program.ranks
    wholes: list[Array] = []
    arrays: dict[str, list[Array]] = {"in": [np.array(program.inputs, np.int64)] * ranks}
    kinds = {"x": (16, np.int64), "m": (32, np.int64), "f": (16, np.float32), "y": (2, np.int64), "w": (16, np.int64)}
    for name, (size, kind) in kinds.items():
        arrays[name] = []
        for _ in range(ranks):
            part, whole = canaried(size, DATA, kind)
            arrays[name].append(part.reshape(16, 2) if name == "m" else part)
            wholes.append(whole)
    said, message = simulate(program, arrays, program.check)
    if said == "unproven":
        said, message = simulate(program, arrays, False)
    for whole in wholes:
        data = whole[256:-256]
        if (whole[:256] != CANARY).any() or (whole[-256:] != CANARY).any() or (data != DATA).any():
            return said, "memory was written that the program does not write"
    allowed = {
        "good": {"good", "long"},
        "bounds": {"bounds", "refused", "long"},
        "long": {"good", "bounds", "refused", "long"},
    }[expected]
    # An access that is never made may be refused.
    if said == "refused" and expected == "good" and len(program.reached) < program.sites:
        return said, ""
    if said in allowed:
        return said, ""
    return said, f"expected {expected}, got {said}: {message[:600]}"


# --- Processes --------------------------------------------------------------------------------------------------------


def work(seed: int, programs: int, deadline: float, keep: pathlib.Path) -> None:
    """Judges programs one by one; a line of output before each says which."""
    counts: collections.Counter[str] = collections.Counter()
    for number in range(seed, seed + programs):
        if time.time() > deadline:
            break
        print(number, flush=True)
        program = Program(number)
        said, wrong = judge(program)
        counts[said] += 1
        if wrong:
            counts["wrong"] += 1
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{number}.mlir").write_text(program.source)
            print(f"WRONG seed {number}: {wrong}\n  in={program.inputs}, {keep}/{number}.mlir", flush=True)
    print("COUNTS " + json.dumps(counts), flush=True)


def supervise(seed: int, programs: int, deadline: float, keep: pathlib.Path) -> collections.Counter[str]:
    """A worker, started again behind a program that has ended it."""
    counts: collections.Counter[str] = collections.Counter()
    end = seed + programs
    while seed < end and time.time() < deadline:
        command = [sys.executable, __file__, "--work", "--seed", str(seed), "--programs", str(end - seed)]
        command += ["--seconds", str(max(deadline - time.time(), 1)), "--keep", str(keep)]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines = process.stdout.splitlines()
        counts.update(json.loads(next((one[7:] for one in lines if one.startswith("COUNTS ")), "{}")))
        print(
            "\n".join(one for one in lines if not one.isdigit() and not one.startswith("COUNTS ")), end="", flush=True
        )
        if process.returncode == 0:
            break
        last = next((int(one) for one in reversed(lines) if one.isdigit()), end)
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{last}.mlir").write_text(Program(last).source)
        print(f"WRONG seed {last}: the process ended with {process.returncode}: {keep}/{last}.mlir", flush=True)
        counts["wrong"] += 1
        seed = last + 1
    return counts


def share(seed: int, programs: int, jobs: int) -> list[tuple[int, int]]:
    """First seed and number of programs of each job."""
    cuts = [seed + programs * job // jobs for job in range(jobs + 1)]
    return [(first, end - first) for first, end in itertools.pairwise(cuts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "commsir-bounds")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    if options.work:
        return work(options.seed, options.programs, deadline, options.keep)
    begun, counts = time.time(), collections.Counter[str]()
    if judge_refusals():
        sys.exit(1)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = share(options.seed, options.programs, options.jobs)
        for part in pool.map(lambda one: supervise(one[0], one[1], deadline, options.keep), parts):
            counts.update(part)
    total = sum(number for name, number in counts.items() if name != "wrong")
    hours = (time.time() - begun) * options.jobs / 3600
    print(", ".join(f"{name}: {number}" for name, number in sorted(counts.items())))
    print(f"{total} programs from seed {options.seed}, {counts['wrong']} wrong, {hours:.2f} job hours")
    # Fewer would be a test of nothing.
    sys.exit(1 if counts["wrong"] or counts["good"] < 5 or counts["bounds"] < 5 else 0)


if __name__ == "__main__":
    main()
