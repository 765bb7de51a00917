"""Runs every fuzzer at once, in many processes on many cores, and summarizes the results.

Usage: many.py --seconds S --jobs N --out FOLDER [--build FOLDER] [--seed S] [--only NAME...]

Half of the jobs run bounds.py; the others take turns over the rest of TABLE. Each job has its own folder and seeds,
and runs at the lowest priority. A fuzzer that ends before the time is up starts again. FOLDER gets two
files: summary.txt (processes, CPU seconds and runs of each fuzzer, and the failures) and findings.tar.gz (at most 16
inputs or programs, with the end of the output of the job that found them). Exit status 1: something failed.
SIGTERM and SIGINT end the jobs early. The files then have the results so far, except runs not yet printed.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST_FINDINGS = 16
#: A job that still runs this many seconds after its time is killed, and counts as a failure: nothing may hang.
GRACE = 150
#: A fuzzer that fails this often in one job is not started again.
MOST_FAILURES = 4
#: Runs of one process of a Python fuzzer; then another one starts.
MOST_RUNS = "20000"
#: What a job prints of its runs.
RUNS = re.compile(r"stat::number_of_executed_units: +(\d+)|^(\d+) programs from|^(\d+) (?:runs|sessions) from", re.M)

LIBFUZZER = ["fuzz-parser", "fuzz-lowering", "fuzz-run", "fuzz-tables", "fuzz-npy", "fuzz-capi"]
#: Python fuzzers, each with the option that says how many runs.
TABLE = {
    "bounds": "--programs",
    "matmuls": "--programs",
    "saved_runs": "--runs",
    "editor": "--sessions",
} | dict.fromkeys(LIBFUZZER, "")


@dataclasses.dataclass
class Sum:
    """What the jobs of one fuzzer did."""

    processes: int = 0
    seconds: float = 0.0
    runs: int = 0
    failed: int = 0


def seconds_of(group: int) -> float:
    """CPU seconds of the processes of a group that run now, and of their children that have ended."""
    ticks = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[2]) == group else 0
    return ticks / os.sysconf("SC_CLK_TCK")


class Fleet:
    """The jobs, and what they did so far."""

    def __init__(self, options: argparse.Namespace, work: pathlib.Path) -> None:
        self.options = options
        self.work = work
        self.deadline = time.monotonic() + options.seconds
        self.sums: dict[str, Sum] = collections.defaultdict(Sum)
        self.findings: list[tuple[str, pathlib.Path]] = []
        self.said: list[str] = []
        self.lock = threading.Lock()
        self.running = set[int]()
        #: CPU seconds of process groups that were ended early.
        self.used: dict[int, float] = {}
        self.is_stopped = False

    def stop(self, *_: object) -> None:
        """Ends all jobs now, which is no failure of theirs."""
        self.is_stopped = True
        self.deadline = time.monotonic()
        for group in list(self.running):
            self.used[group] = seconds_of(group)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def command(self, name: str, seed: int, seconds: float, folder: pathlib.Path) -> list[str]:
        if not TABLE[name]:
            return ["bash", str(HERE / "fuzz.sh"), name, str(int(seconds))]
        command = [sys.executable, str(HERE / f"{name}.py"), TABLE[name], MOST_RUNS, "--seed", str(seed)]
        command += ["--seconds", str(seconds), "--keep", str(folder / "kept")]
        return command + (["--server", str(self.options.build / "bin/comms-lsp-server")] if name == "editor" else [])

    def start(self, name: str, seed: int, folder: pathlib.Path, seconds: float) -> tuple[int, float, str]:
        """One process to its end: its exit status, CPU seconds with its children, and output."""
        environment = os.environ | {
            "COMMSIR_SOURCE": str(ROOT), "COMMSIR_BUILD": str(self.options.build), "COMMSIR_PYTHON": sys.executable,
            "COMMSIR_FUZZ_WORK": str(folder / "work"), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        log = folder / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["nice", "-n", "19", *self.command(name, seed, seconds, folder)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=environment,
                start_new_session=True,
            )  # fmt: skip
            hung = threading.Timer(seconds + GRACE, os.killpg, (process.pid, signal.SIGKILL))
            hung.start()
            self.running.add(process.pid)
            if self.is_stopped:
                self.stop()
            _, status, usage = os.wait4(process.pid, 0)
            self.running.discard(process.pid)
            hung.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        used = self.used.get(process.pid, usage.ru_utime + usage.ru_stime)
        return process.returncode, used, log.read_text(errors="replace")

    def job(self, number: int, name: str) -> None:
        failures = 0
        for attempt in range(10**6):
            seconds = self.deadline - time.monotonic()
            if (attempt and seconds < 5) or failures >= MOST_FAILURES or self.is_stopped:
                break
            folder = self.work / f"{name}-{number}-{attempt}"
            folder.mkdir()
            seed = self.options.seed + (number * 100 + attempt) * 10_000_000
            status, used, output = self.start(name, seed, folder, max(seconds, 1))
            if self.is_stopped and status == -signal.SIGKILL:
                status = 0
            found = [one for part in ("kept", "work") for one in sorted((folder / part).glob("*")) if one.is_file()]
            found = [one for one in found if one.parent.name == "kept" or one.name.startswith("finding-")]
            with self.lock:
                self.note(name, status, used, output, found, folder)
            failures += bool(status)
            if not found and not status:
                shutil.rmtree(folder)

    def note(self, name: str, status: int, used: float, output: str, found: list[pathlib.Path],
             folder: pathlib.Path) -> None:  # fmt: skip
        total = self.sums[name]
        total.processes += 1
        total.seconds += used
        total.runs += sum(int(next(filter(None, match))) for match in RUNS.findall(output))
        if not status and not found:
            return
        total.failed += 1
        self.said.append(f"{folder.name}: exit status {status}: {output[-1500:]}")
        self.findings += [(folder.name, one) for one in [*found, folder / "log"]]

    def summary(self) -> str:
        lines = [f"{'fuzzer':<16}{'processes':>10}{'CPU s':>12}{'runs':>12}{'failed':>8}"]
        for name, one in sorted(self.sums.items()):
            lines.append(f"{name:<16}{one.processes:>10}{one.seconds:>12.1f}{one.runs:>12}{one.failed:>8}")
        hours = sum(one.seconds for one in self.sums.values()) / 3600
        lines.append(f"{hours:.3f} CPU hours, first seed {self.options.seed}, {len(self.findings)} files of findings")
        return "\n".join([*lines, "", *self.said]) + "\n"

    def write(self, out: pathlib.Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "summary.txt").write_text(self.summary())
        # What was found before what was printed, so that a full archive lacks the latter.
        kept = sorted(self.findings, key=lambda one: one[1].name == "log")[:MOST_FINDINGS]
        with tarfile.open(out / "findings.tar.gz", "w:gz") as archive:
            for job, path in kept:
                archive.add(path, f"{job}/{path.name}")


def plan(jobs: int, only: list[str]) -> list[str]:
    """The fuzzer of each job."""
    others = [name for name in TABLE if name != "bounds"]
    if only:
        return [only[number % len(only)] for number in range(jobs)]
    return ["bounds" if number % 2 == 0 else others[number // 2 % len(others)] for number in range(jobs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", nargs="*", choices=list(TABLE), default=[])
    options = parser.parse_args()
    options.build = options.build.resolve()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        fleet = Fleet(options, pathlib.Path(name))
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, fleet.stop)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(fleet.job, range(options.jobs), plan(options.jobs, options.only)))
        fleet.write(options.out)
    print(fleet.summary())
    sys.exit(any(one.failed for one in fleet.sums.values()))


if __name__ == "__main__":
    main()
