"""Puts groups of processes on this machine's GPUs to the test: kills, mismatches, stragglers, graphs.

Usage: processes.py [--bin FOLDER] [--ranks 2,4,8] [--level quick|full] [--only TEXT] [--json FILE] [--sanitizer]

Every case is one run of gpu-processes (test/gpu/Processes.cpp), which forks a process for each rank and
checks results itself, or of comms-run. Every run has a time limit: nothing that hangs hangs this program.
Prints a line for each case and every failure, and ends with status 1 if any case failed.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import run

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Case:
    """One program that has to end with `status` and say `says`."""

    name: str
    command: list[str]
    limit: float
    status: int = 0
    says: list[str] = dataclasses.field(default_factory=list)
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    # Results
    state: str = "not run"
    text: str = ""
    seconds: float = 0.0


class Cases:
    """What is run; `full` takes the numbers that the project's targets name."""

    def __init__(self, folder: pathlib.Path, programs: pathlib.Path, ranks: list[int], full: bool) -> None:
        self.all: list[Case] = []
        self.folder, self.full, self.ranks = folder, full, ranks
        self.run_program = str(programs / "comms-run")
        # Where it was built, or beside the programs of a bundle.
        found = [programs / "gpu-processes", programs.parent / "test/gpu-processes"]
        self.program = str(next((path for path in found if path.is_file()), found[0]))

    def scenario(self, name: str, ranks: int, number: int = 0, limit: float = 60, windows: str = "plain") -> None:
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
            victims = list(range(ranks)) if self.full or ranks == max(self.ranks) else [ranks - 1]
            for round_ in range(50 // ranks if self.full else 1):
                for victim in victims:
                    windows = "nccl" if round_ % 5 == 1 else "plain"
                    self.scenario("kill", ranks, victim, 90, windows)
                    self.scenario("kill-replay", ranks, victim, 90, windows)
            self.scenario("stragglers", ranks, 2000 if self.full else 100, 120)
            self.scenario("order", ranks, 1000 if self.full else 50, 120)
            self.scenario("many", ranks, 1_000_000 if self.full else 20_000, 400)
            self.scenario("checked", ranks, 1_000_000 if self.full else 20_000, 600)
            self.scenario("adopted", ranks, 0, 60, "nccl")
            for number in (0, 1):
                self.scenario("device-library", ranks, number, 60, "nccl")
            self.scenario("busy", ranks, 0)
            self.scenario("limit-replay", ranks)
        self.scenario("mismatch", 2)
        self.scenario("mismatch-replay", 2)
        self.scenario("kill", max(self.ranks), 0, 90, "nccl")

    def programs(self) -> None:
        """comms-run by processes: its results against the CPU world's."""
        source = self.folder / "sum.mlir"
        source.write_text(run.collective("all_reduce", "f32", 5000, 2))
        reference = self.folder / "y-%r.npy"
        common = [self.run_program, str(source), "--ranks", "2", "--input", "x=random:1"]
        self.all.append(Case("reference", [*common, "--output", f"y={reference}"], 60))
        cuda = [*common, "--target", "cuda", "--bitwise", "--expect", f"y={reference}"]
        for windows in ("plain", "nccl"):
            for flags in ([], ["--graph"], ["--one-process"]):
                name = " ".join(["comms-run", windows, *flags])
                self.all.append(Case(name, [*cuda, "--windows", windows, "--launches", "20", *flags], 90))
        self.all.append(Case("comms-run, one GPU twice", [*cuda, "--devices", "0,0"], 60, 2, ["named twice"]))

    def sanitizer(self) -> None:
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.access(tool, os.X_OK):
            print("processes.py: there is no compute-sanitizer in PATH or /usr/local/cuda: nothing is run by it")
            return
        for check in ("memcheck", "racecheck", "initcheck", "synccheck"):
            # NCCL tries kinds of memory that a host may not have: calls that fail are not what is looked for.
            command = [tool, "--tool", check, "--target-processes", "all", "--error-exitcode", "9"]
            command += ["--report-api-errors", "no"]
            # Slow by orders of magnitude: few launches.
            words = [self.program, "sizes", "2", "0" if check == "initcheck" else "1"]
            env = {"COMMSIR_TEST_WINDOWS": "plain"}
            self.all.append(Case(f"compute-sanitizer {check}", [*command, *words], 300, env=env))


def carry_out(case: Case, env: dict[str, str]) -> None:
    start = time.monotonic()
    try:
        done = subprocess.run(
            case.command, capture_output=True, text=True, timeout=case.limit, env=env | case.env, check=False
        )
        case.text = (done.stdout + done.stderr).strip()
        well = done.returncode == case.status and all(part in case.text for part in case.says)
        case.state = "ok" if well else "failed"
        if not well:
            case.text = f"status {done.returncode}, expected {case.status}\n{case.text}"
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
    gpus = run.count_gpus()
    ranks = [int(text) for text in options.ranks.split(",") if int(text) <= gpus]
    if not ranks:
        print(
            f"processes.py: error: {gpus} GPUs are too few for any of --ranks {options.ranks}; nvidia-smi -L lists"
            " what there is, and without any `make test` runs everything on the CPU world",
            file=sys.stderr,
        )
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="commsir-processes-") as folder:
        made = Cases(pathlib.Path(folder), pathlib.Path(options.bin), ranks, options.level == "full")
        if options.sanitizer:
            made.sanitizer()
        else:
            made.programs()
            made.scenarios()
        env = run.environment()
        # Compiled once for all cases.
        env.setdefault("COMMSIR_CACHE_DIR", os.path.join(folder, "cache"))
        cases = [case for case in made.all if options.only in case.name or case.name == "reference"]
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
