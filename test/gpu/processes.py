"""Tests groups of processes on this machine's GPUs: kills, mismatches, stragglers, graphs.

Usage: processes.py [--bin FOLDER] [--ranks 2,4,8] [--level quick|full] [--only TEXT] [--json FILE] [--sanitizer]

Every case is one run of comms-run, or of gpu-processes (test/gpu/Processes.cpp), which forks a process per rank and
checks results itself. Every run has a time limit, so that a hang of one does not hang this program.
With COMMSIR_SHARE_GPU=1 the ranks take turns on the GPUs, so that one GPU is enough for any number of ranks; cases that
need NCCL's windows or several ranks in one process are skipped, and there are fewer launches.

Prints a line for each case and every failure. Ends with status 1 if a case failed, and with 2 if the GPUs or the
programs are missing.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import batches

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUM = """comms.kernel @sum(%x: !comms.window<5000xf32>, %y: !comms.window<5000xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<5000xf32>) outs(%y : !comms.window<5000xf32>)
  comms.return
}
"""
# As issues of the project ask for them: kills of processes, over all ranks.
KILLS = 50
NO_SANITIZER = (
    "there is no compute-sanitizer in PATH, in /usr/local/cuda/bin or among the Python packages, so nothing was run"
    " under it. It is part of the CUDA toolkit (Debian's package cuda-sanitizer-13-0 of NVIDIA's repository), and of"
    " PyPI: pip install nvidia-cuda-sanitizer-api"
)


@dataclasses.dataclass
class Case:
    """One program that has to end with `status`, say `says` and nothing that matches `never`."""

    name: str
    command: list[str]
    limit: float
    status: int = 0
    says: list[str] = dataclasses.field(default_factory=list)
    never: str = ""
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    # Results
    state: str = "not run"
    text: str = ""
    seconds: float = 0.0


class Cases:
    """What is run; `full` takes the numbers that the project's targets name."""

    def __init__(
        self, folder: pathlib.Path, programs: pathlib.Path, ranks: list[int], full: bool, shares: bool = False
    ) -> None:
        self.all: list[Case] = []
        self.folder, self.full, self.ranks, self.shares = folder, full, ranks, shares
        self.run_program = str(programs / "comms-run")
        # Where it was built, or next to the programs of a bundle.
        found = [programs / "gpu-processes", programs.parent / "test/gpu-processes"]
        self.program = str(next((path for path in found if path.is_file()), found[0]))

    def scenario(self, name: str, ranks: int, number: int = 0, limit: float = 60, windows: str = "plain") -> None:
        if self.shares and windows == "nccl":
            return
        env = {"COMMSIR_TEST_WINDOWS": windows}
        command = [self.program, name, str(ranks), str(number)]
        label = f"{name} {number}, {ranks} ranks, {windows}"
        # A straggler's limit, and a second to say it.
        self.all.append(Case(label, command, limit, env=env))

    def scenarios(self) -> None:
        self.scenario("overhead", 1)
        for ranks in self.ranks:
            for windows in ("plain", "nccl"):
                self.scenario("sizes", ranks, 20 if self.full else 3, 120, windows)
            self.scenario("variety", ranks, 20 if self.full else 1, 120)
            self.kills(ranks)
            self.aborts(ranks)
            # Algorithm, protocol, grid and kernel, one after the other.
            self.scenario("mismatch", ranks, 0, 90)
            self.scenario("mismatch-replay", ranks, 0, 90)
            self.scenario("stragglers", ranks, 2000 if self.full else 100, 120)
            self.scenario("pauses", ranks, 500 if self.full else 20, 400)
            if not self.shares:  # It runs in parallel with NCCL.
                self.scenario("order", ranks, 1000 if self.full else 50, 120)
            # A turn on a GPU takes milliseconds.
            many = 1_000_000 if self.full else 20_000
            self.scenario("many", ranks, many // 50 if self.shares else many, 400)
            self.scenario("checked", ranks, many // 50 if self.shares else many, 600)
            self.scenario("adopted", ranks, 0, 60, "nccl")
            for number in (0, 1):
                self.scenario("device-library", ranks, number, 60, "nccl")
            self.scenario("busy", ranks, 0)
            self.scenario("limit-replay", ranks)

    def kills(self, ranks: int) -> None:
        """Of each rank in turn, in launches and in replays."""
        kinds = ("kill", "kill-replay")
        if self.full:
            for round_ in range(-(-KILLS // ranks)):
                windows = "nccl" if round_ % 5 == 1 else "plain"
                for victim in range(ranks):
                    for kind in kinds:
                        self.scenario(kind, ranks, victim, 90, windows)
            return
        # Each rank once, on the most ranks; in launches and replays by turns.
        most = ranks == max(self.ranks)
        for victim in range(0 if most else ranks - 1, ranks):
            self.scenario(kinds[victim % 2], ranks, victim, 90)
        if most:
            self.scenario("kill-replay", ranks, 0, 90, "nccl")

    def aborts(self, ranks: int) -> None:
        """With each rank late in turn; not full: the last, and the first."""
        if not self.full:
            self.scenario("abort", ranks, ranks - 1)
            self.scenario("abort-replay", ranks, 0, 60, "plain" if self.shares else "nccl")
            return
        for late in range(ranks):
            for windows in ("plain", "nccl"):
                self.scenario("abort", ranks, late, 60, windows)
                self.scenario("abort-replay", ranks, late, 60, windows)

    def reference(self) -> list[str]:
        """What of comms-run gives the sum on GPUs, judged by the CPU world's, which is the first case."""
        source, reference = self.folder / "sum.mlir", self.folder / "y-%r.npy"
        source.write_text(SUM)
        common = [self.run_program, str(source), "--ranks", "2", "--input", "x=random:1"]
        self.all.append(Case("reference", [*common, "--output", f"y={reference}"], 60))
        return [*common, "--target", "cuda", "--bitwise", "--expect", f"y={reference}"]

    def programs(self) -> None:
        """comms-run by processes: its results against the CPU world's."""
        cuda = self.reference()
        for windows in ("plain", "nccl"):
            for flags in ([], ["--graph"], ["--one-process"]):
                if self.shares and (windows == "nccl" or "--one-process" in flags):
                    continue
                name = " ".join(["comms-run", windows, *flags])
                self.all.append(Case(name, [*cuda, "--windows", windows, "--launches", "20", *flags], 90))
        if not self.shares:
            self.all.append(Case("comms-run, one GPU twice", [*cuda, "--devices", "0,0"], 60, 2, ["named twice"]))

    def sanitizer(self, tool: str) -> None:
        """Few launches: they are slower by orders of magnitude, and so are given more time."""
        cuda = self.reference()
        two = ["--launches", "2", "--timeout", "200"]
        programs = {
            "sizes": [self.program, "sizes", "2", "1"],
            "variety": [self.program, "variety", "2", "0"],
            # NCCL's windows, between processes and between the GPUs of one.
            "variety over NCCL's windows": [self.program, "variety", "2", "0"],
            "comms-run --one-process": [*cuda, *two, "--windows", "plain", "--one-process"],
            "comms-run --one-process, NCCL's windows": [*cuda, *two, "--windows", "nccl", "--one-process"],
        }
        for check in ("memcheck", "racecheck", "initcheck", "synccheck"):
            # NCCL tries kinds of memory that a host may not have: calls that fail are not what is looked for.
            watched = [tool, "--tool", check, "--target-processes", "all", "--error-exitcode", "9"]
            watched += ["--report-api-errors", "no"]
            for name, command in programs.items():
                nccl = "NCCL" in name
                if self.shares and (nccl or "--one-process" in name):
                    continue
                if check != "memcheck" and (nccl or command[0] == self.run_program):
                    continue
                env = {"COMMSIR_TEST_WINDOWS": "nccl" if nccl else "plain", "COMMSIR_TEST_PATIENCE": "10"}
                case = Case(f"compute-sanitizer {check}: {name}", [*watched, *command], 240, env=env)
                # A tool that was not there for any kernel has nothing to sum up.
                case.says, case.never = ["SUMMARY: 0 "], r"SUMMARY: [1-9]"
                self.all.append(case)


def find_sanitizer() -> str:
    """Path of compute-sanitizer; "": there is none."""
    packages = [path for folder in sys.path for path in pathlib.Path(folder).glob("nvidia/*/bin/compute-sanitizer")]
    found = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer", *map(str, packages)]
    return next((path for path in found if path and os.access(path, os.X_OK)), "")


def carry_out(case: Case, env: dict[str, str]) -> None:
    start = time.monotonic()
    try:
        done = subprocess.run(
            case.command, capture_output=True, text=True, timeout=case.limit, env=env | case.env, check=False
        )
        case.text = (done.stdout + done.stderr).strip()
        wrong = [] if done.returncode == case.status else [f"status {done.returncode}, expected {case.status}"]
        wrong += [f"it does not say '{part}'" for part in case.says if part not in case.text]
        if case.never and (met := re.search(case.never, case.text)):
            wrong.append(f"it says '{met.group()}'")
        case.state = "failed" if wrong else "ok"
        if wrong:
            case.text = "\n".join([*wrong, case.text])
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode(errors="replace") if error.stdout else ""
        case.state, case.text = "failed", f"no end after {case.limit} s\n{said}"
    case.seconds = time.monotonic() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin"), help="folder of comms-run")
    parser.add_argument("--ranks", default="2,4,8", help="rank counts; those above the number of GPUs are left out")
    parser.add_argument("--level", choices=["quick", "full"], default="quick")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--sanitizer", action="store_true", help="run the tools of compute-sanitizer instead")
    parser.add_argument("--json", default="", help="file to write")
    options = parser.parse_args()
    tool = find_sanitizer()
    if options.sanitizer and not tool:
        print(f"processes.py: error: {NO_SANITIZER}", file=sys.stderr)
        return 2
    gpus = batches.count_gpus()
    ranks = [int(text) for text in options.ranks.split(",") if int(text) <= gpus or (batches.SHARES and gpus)]
    if not ranks:
        print(
            f"processes.py: error: {gpus} GPUs are too few for any of --ranks {options.ranks}; nvidia-smi -L lists"
            f" what there is, with COMMSIR_SHARE_GPU=1 ranks share {'it' if gpus == 1 else 'them'}, and without any"
            " `make test` runs everything on the CPU world",
            file=sys.stderr,
        )
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="commsir-processes-") as folder:
        made = Cases(pathlib.Path(folder), pathlib.Path(options.bin), ranks, options.level == "full", batches.SHARES)
        if options.sanitizer:
            made.sanitizer(tool)
        else:
            made.programs()
            made.scenarios()
        env = batches.environment()
        # Compiled once for all cases.
        env.setdefault("COMMSIR_CACHE_DIR", os.path.join(folder, "cache"))
        cases = [case for case in made.all if options.only in case.name or case.name == "reference"]
        if all(case.name == "reference" for case in cases):
            print(f"processes.py: error: no case has '{options.only}' in its name", file=sys.stderr)
            return 2
        for case in cases:
            carry_out(case, env)
            last = "" if case.state == "failed" else max(case.text.splitlines(), key=len, default="")[:150]
            print(f"  {case.state:6} {case.seconds:6.1f} s  {case.name}  {last}", flush=True)
            if case.state == "failed":
                print("    " + case.text[-3000:].replace("\n", "\n    "), flush=True)
    failed = sum(case.state == "failed" for case in cases)
    print(f"\n{len(cases)} cases, {failed} failed, {time.monotonic() - start:.0f} s")
    if options.json:
        rows = [dataclasses.asdict(case) for case in cases]
        pathlib.Path(options.json).write_text(json.dumps({"gpus": gpus, "cases": rows}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
