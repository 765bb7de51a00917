"""Runs everything that is shipped on the GPUs of this machine and compares it with the CPU world.

Usage: run.py [--bin FOLDER] [--ranks 2,4,8] [--level quick|full] [--only TEXT] [--json FILE]

Every case is one kernel. The CPU world runs it first, and NumPy judges the results: to the bit, as docs/Spec.md
says (Bits), and against float64. Then the GPUs run it, and every output must agree bit for bit. Where a ring's order
of summation depends on the target, NumPy also judges the GPUs' results, and a second run must have the same bits.
Cases run in batches (comms-run --batch), so that GPUs are opened once. Each case has a time limit, and a batch that
crashes or hangs fails one case. If the compiler refuses a case, it must refuse it on both targets and for the reason
that the case gives. Any other refusal fails, and so do crashes, deadlocks and timeouts of the CPU world.

With COMMSIR_SHARE_GPU=1 the ranks are processes that take turns on the GPUs, so that one GPU is enough for any number
of ranks; cases that need NCCL's windows or several ranks in one process are skipped.

Prints a table and every failure, writes JSON, and ends with status 1 if a case failed. Needs NumPy. Without ml_dtypes,
some kernels of test/exec for bf16 or fp8, none of them rings, get random inputs and only the CPU world as their
reference, and random arithmetic is skipped.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

from batches import SHARES, Runner, count_gpus
from cases import ROOT, Case, Cases
from drawn import add_drawn
from shipped import add_shipped


def print_table(cases: list[Case]) -> None:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    columns = [state for state in ("ok", "reference", "refused", "not run", "failed") if has(cases, state)]
    width = max(len(group) for group in groups)
    print(f"{'':{width}}" + "".join(f"{state:>11}" for state in columns))
    for group, members in groups.items():
        counts = [sum(case.state == state for case in members) for state in columns]
        print(f"{group:{width}}" + "".join(f"{count or '-':>11}" for count in counts))
    chosen = [case for case in cases if case.state == "failed"]
    if chosen:
        print("\nfailed:")
    for case in chosen[:60]:
        print(f"  {case.name}\n    {case.text}")
    if len(chosen) > 60:
        print(f"  ... and {len(chosen) - 60} more")


def has(cases: list[Case], state: str) -> bool:
    return any(case.state == state for case in cases)


def make_cases(folder: pathlib.Path, options: argparse.Namespace, ranks: list[int], gpus: int) -> Cases:
    """All cases; gpus 0: ranks share what GPUs there are."""
    made = Cases(folder, options.level, ranks)
    if options.gin:
        os.environ["NCCL_LSA_TEAM_SIZE"] = str(options.gin)
        made.gin(options.gin)
        return made
    made.many_launches()
    if gpus:
        made.windows()
        made.nccl()
    add_shipped(made)
    add_drawn(made)
    made.specials()
    made.permutations()
    made.refusals()
    made.failures(gpus)
    made.collectives()
    return made


def tell_left_out(made: Cases, only: str, cases: list[Case]) -> None:
    names = [name for name in made.left_out if only in name]
    if names:
        print(f"\nleft out, for they need more GPUs than --ranks says: {', '.join(names)}")
    at_random = sum(case.at_random for case in cases)
    if at_random:
        print(
            f"\n{at_random} cases had random inputs and no expectation but the CPU world's results: their own are"
            " computed with ml_dtypes, which this Python lacks (pip install ml_dtypes)"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin"), help="folder of comms-run")
    parser.add_argument("--ranks", default="2,4,8", help="rank counts; those above the number of GPUs are left out")
    parser.add_argument("--level", choices=["quick", "full"], default="quick")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--sample", type=int, default=1, help="run every Nth case")
    parser.add_argument("--limit", type=float, default=60, help="seconds a case may take")
    parser.add_argument("--json", default="", help="file to write")
    parser.add_argument(
        "--gin",
        type=int,
        default=0,
        metavar="N",
        help="run the kernels over GIN alone, with NCCL's teams of load/store reach cut down to N ranks; needs an"
        " adapter, or NCCL_RMA_PLUGIN=…/libnccl-rma-loopback.so and NCCL 2.30 or newer",
    )
    parser.add_argument("--cpu-only", action="store_true", help="make and check the references, use no GPU")
    options = parser.parse_args()
    program = str(pathlib.Path(options.bin) / "comms-run")
    gpus = 8 if options.cpu_only else count_gpus()
    shares = SHARES and not options.cpu_only
    ranks = [int(text) for text in options.ranks.split(",") if int(text) <= gpus or (shares and gpus)]
    if not ranks:
        print(
            f"run.py: error: {gpus} GPUs are too few for any of --ranks {options.ranks}; nvidia-smi -L lists"
            f" what there is, with COMMSIR_SHARE_GPU=1 ranks share {'it' if gpus == 1 else 'them'}, and without any"
            " `make test` runs everything on the CPU world",
            file=sys.stderr,
        )
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="commsir-gpu-") as folder:
        made = make_cases(pathlib.Path(folder), options, ranks, 0 if shares else gpus)
        cases = [case for case in made.all if options.only in case.name]
        if shares:
            cases = [case for case in cases if "--one-process" not in case.cuda]
        cases = cases[:: options.sample]
        if not cases:
            print(f"run.py: error: no case has '{options.only}' in its name", file=sys.stderr)
            return 2
        print(f"{len(cases)} cases on {gpus} GPUs", file=sys.stderr, flush=True)
        # Eight ranks that take turns are slow enough.
        runner = Runner(program, 8 if shares else gpus, options.limit)
        runner.cpu([case for case in cases if case.cpu])
        referenced = time.monotonic()
        print(f"references took {referenced - start:.0f} s", file=sys.stderr, flush=True)
        if not options.cpu_only:
            runner.gpu([case for case in cases if case.state in ("reference", "refused", "not run")])
    print_table(cases)
    tell_left_out(made, options.only, cases)
    # Some cases are about GPUs alone.
    good = ("reference", "refused") if options.cpu_only else ("ok", "refused")
    failed = sum(case.state not in good and (case.cpu or not options.cpu_only) for case in cases)
    print(f"\n{len(cases)} cases, {failed} failed, {time.monotonic() - start:.0f} s")
    if options.json:
        rows = [
            {"name": c.name, "group": c.group, "ranks": c.ranks, "state": c.state, "text": c.text, "us": c.microseconds}
            for c in cases
        ]
        pathlib.Path(options.json).write_text(json.dumps({"gpus": gpus, "cases": rows}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
