"""Runs cases by comms-run --batch: on the CPU world, which makes the references, then on the GPUs."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO, Any

from cases import Case
from switches import SHARES


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a case: its first on a target, or the second on GPUs."""

    case: Case
    target: str
    is_second: bool = False

    def line(self) -> str:
        """The line of the batch."""
        case = self.case
        words: list[Any] = [case.source, "--ranks", case.ranks, "--target", self.target, *case.common]
        for binding in case.inputs:
            words += ["--input", binding]
        if self.target == "cpu":
            return quote([*words, *self.reference(), *self.outputs(""), "--time-limit", "120"])
        # NCCL takes seconds to start; only its own cases wait for it.
        words += case.cuda if "--windows" in case.cuda else [*case.cuda, "--windows", "plain"]
        if case.own_order and not self.is_second:
            return quote([*words, *self.reference(), *self.outputs("gpu-")])
        return quote([*words, *self.same_bits("gpu-" if self.is_second else "")])

    def reference(self) -> list[str]:
        words = [word for binding in self.case.expects for word in ("--expect", binding)]
        return [*words, *self.case.tolerance]

    def outputs(self, prefix: str) -> list[str]:
        folder = self.case.folder
        return [word for name in self.case.outputs for word in ("--output", f"{name}={folder}/{prefix}{name}-%r.npy")]

    def same_bits(self, prefix: str) -> list[str]:
        """What an earlier run left is expected."""
        folder, names = self.case.folder, self.case.outputs if self.case.cpu else []
        words = [word for name in names for word in ("--expect", f"{name}={folder}/{prefix}{name}-%r.npy")]
        return [*words, "--bitwise"] if words else []


def quote(words: list[Any]) -> str:
    return " ".join("'" + str(word) + "'" if " " in str(word) else str(word) for word in words)


Answer = Callable[[Job, dict[str, Any]], None]


def wrong_numbers(case: Case, prefix: str = "") -> str:
    """What NumPy says against the results in the case's folder, or ""."""
    for judge in case.judges:
        if wrong := judge.wrong(case.folder, prefix):
            return str(wrong)
    for binding in case.expects:
        # Where every rank is to have the same, every rank has the same bits.
        name, pattern = binding.split("=", 1)
        files = [pathlib.Path(pattern.replace("%r", str(rank))).read_bytes() for rank in range(case.ranks)]
        results = [(case.folder / f"{prefix}{name}-{rank}.npy") for rank in range(case.ranks)]
        if len(set(files)) == 1 and name in case.outputs and len({path.read_bytes() for path in results}) > 1:
            return f"{name}: ranks have different bits"
    return ""


class Batch:
    """comms-run --batch with a time limit for each line; starts anew after a line that kills it."""

    def __init__(self, program: str, env: dict[str, str], limit: float) -> None:
        self.program, self.env, self.limit = program, env, limit

    def run(self, jobs: list[Job], answer: Answer) -> None:
        """Calls answer(job, object) for every job; the object of a dead line has status None."""
        left = list(jobs)
        while left:
            left = left[self.start(left, answer) :]

    def start(self, jobs: list[Job], answer: Answer) -> int:
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [self.program, "--batch", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self.env,
            )
            lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
            reader = threading.Thread(target=self.read, args=(process, lines), daemon=True)
            reader.start()
            assert process.stdin
            try:
                process.stdin.write("".join(job.line() + "\n" for job in jobs))
                process.stdin.close()
            except OSError:
                pass
            done = 0
            got: dict[str, Any] | None = {}
            try:
                for job in jobs:
                    # The first one opens the GPUs.
                    got = lines.get(timeout=self.limit + (60 if done == 0 else 0))
                    if got is None:
                        break
                    answer(job, got)
                    done += 1
            except queue.Empty:
                self.fail(jobs[done], f"no answer after {self.limit} s", errors, answer)
                done += 1
            finally:
                if got is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=30)
                process.kill()
                status = process.wait()
            # A program that left by itself did so between two lines: it starts anew for the rest.
            if done < len(jobs) and got is None and (status < 0 or done == 0):
                self.fail(jobs[done], f"the program ended with status {status}", errors, answer)
                done += 1
            return done

    def fail(self, job: Job, why: str, errors: IO[str], answer: Answer) -> None:
        errors.seek(0)
        answer(job, {"exit_code": None, "error": f"{why}; standard error ends: {errors.read()[-1500:]}"})

    @staticmethod
    def read(process: subprocess.Popen[str], lines: "queue.Queue[dict[str, Any] | None]") -> None:
        assert process.stdout
        for text in process.stdout:
            try:
                lines.put(json.loads(text))
            except ValueError:
                print("  said:", text.rstrip(), file=sys.stderr)
        lines.put(None)


class Runner:
    def __init__(self, program: str, gpus: int, limit: float) -> None:
        self.program, self.gpus, self.limit = program, gpus, limit
        self.lock = threading.Lock()
        self.done = 0

    def cpu(self, cases: list[Case]) -> None:
        """Fills the folders of references. Several processes; each gets a share."""
        workers = max(1, (os.cpu_count() or 2) - 1)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            scripts = list({id(case.script): case.script for case in cases if case.script}.values())
            said = dict(zip(map(id, scripts), pool.map(lambda script: script.run(), scripts), strict=True))
            ready = []
            for case in cases:
                if wrong := said.get(id(case.script), ""):
                    case.state, case.text = "failed", wrong
                    continue
                case.folder.mkdir(exist_ok=True)
                ready.append(case)
            list(pool.map(self.cpu_share, [ready[i::workers] for i in range(workers)]))

    def cpu_share(self, cases: list[Case]) -> None:
        Batch(self.program, dict(os.environ), 180).run([Job(case, "cpu") for case in cases], self.cpu_answer)

    def cpu_answer(self, job: Job, got: dict[str, Any]) -> None:
        """Only a refusal that is expected is one; a crash, a deadlock and what takes too long fail."""
        case, status = job.case, got["exit_code"]
        case.state = "failed"
        if case.refusal and status in (3, 4) and case.refusal in json.dumps(got):
            # Not a combination that exists; the GPUs have to say the same.
            case.state, case.gpu_status, case.error_says, case.cpu = "refused", status, case.refusal, False
        elif case.refusal:
            case.text = f"the CPU world ends with {status}, and had to refuse this: '{case.refusal}'"
        elif status == 0:
            wrong = wrong_numbers(case)
            case.state, case.text = ("failed", f"on the CPU world {wrong}") if wrong else ("reference", "")
        else:
            case.text = f"the CPU world ends with {status}: {got.get('error', '')}"
        if case.state == "failed":
            case.text += "".join(f"\n      {words}" for words in got.get("diagnostics", [])[:3])

    def gpu(self, cases: list[Case]) -> None:
        """Runs groups of GPUs side by side: on 8 GPUs, four cases of 2 ranks at a time."""
        for ranks in sorted({case.ranks for case in cases}):
            mine = [case for case in cases if case.ranks == ranks]
            lanes = max(1, self.gpus // max(ranks, 1))
            needs_all = not SHARES and any(case.group == "failures" for case in mine)
            if needs_all or lanes == 1:
                self.gpu_share(mine, None)
                continue
            with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
                starts = [lane * ranks for lane in range(lanes)]
                visible = [",".join(str(start + i) for i in range(ranks)) for start in starts]
                list(pool.map(self.gpu_share, [mine[lane::lanes] for lane in range(lanes)], visible))

    def gpu_share(self, cases: list[Case], visible: str | None) -> None:
        env = environment()
        if visible is not None and not SHARES and "CUDA_VISIBLE_DEVICES" not in env:
            env["CUDA_VISIBLE_DEVICES"] = visible
        jobs = [
            Job(case, "cuda", is_second)
            for case in cases
            for is_second in ([False, True] if case.own_order and case.cpu else [False])
        ]
        Batch(self.program, env, self.limit).run(jobs, self.gpu_answer)

    def gpu_answer(self, job: Job, got: dict[str, Any]) -> None:
        case, status = job.case, got["exit_code"]
        if job.is_second and case.state == "failed":
            return
        expected = case.gpu_status
        if status != expected or case.error_says not in json.dumps(got):
            case.state = "failed"
            detail = got.get("run_error", {}).get("waiting", [])
            case.text = f"status {status}, expected {expected}{' in a second run' if job.is_second else ''}: "
            case.text += got.get("error", "")
            case.text += "".join(f"\n      {words}" for words in got.get("diagnostics", [])[:3])
            case.text += "".join(f"\n      rank {w['rank']}: {w['what']} at {w['location']}" for w in detail[:4])
        elif case.own_order and not job.is_second and status == 0 and (wrong := wrong_numbers(case, "gpu-")):
            case.state, case.text = "failed", f"on the GPUs {wrong}"
        elif job.is_second or not (case.own_order and case.cpu):
            # What has to fail with an error of its own is right where it does.
            case.state = "ok" if expected == 0 or case.group == "failures" else "refused"
        if not job.is_second and case.state != "failed":
            case.microseconds = max((rank["microseconds"] for rank in got.get("per_rank", [])), default=0.0)
        if case.state in ("ok", "refused"):
            shutil.rmtree(case.folder, ignore_errors=True)
        if case.own_order and case.cpu and not job.is_second and case.state != "failed":
            return
        with self.lock:
            self.done += 1
            if case.state == "failed" or self.done % 100 == 0:
                print(f"  [{self.done}] {case.state}: {case.name}", file=sys.stderr, flush=True)


def environment() -> dict[str, str]:
    """This process's environment, with NCCL and nvJitLink of the Python packages where there are any."""
    env = dict(os.environ)
    env.setdefault("NCCL_NVLS_ENABLE", "0")
    for folder in map(pathlib.Path, sys.path):
        nccl = folder / "nvidia/nccl/lib/libnccl.so.2"
        if nccl.exists():
            env.setdefault("COMMSIR_NCCL_LIBRARY", str(nccl))
        for library in sorted(folder.glob("nvidia/*/lib/libnvJitLink.so.*")):
            env.setdefault("COMMSIR_NVJITLINK_LIBRARY", str(library))
    return env


def count_gpus() -> int:
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(text.startswith("GPU ") for text in done.stdout.splitlines())
