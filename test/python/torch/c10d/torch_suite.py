"""PyTorch's own distributed suite, run by ranks that already exist.

The suite would start new processes for every test, which takes an hour; here, the ranks of harness.World run its test
methods. Its decorators are evaluated as for Gloo, so the tests that Gloo runs also run here; on GPUs, as for NCCL.

Usage, on a machine with GPUs: torch_suite.py [--ranks N] [--only REGEX]. pytest runs the
suite on the CPU (test_torch_suite.py).
"""

from __future__ import annotations

import argparse
import atexit
import importlib
import os
import re
import shutil
import sys
import tempfile
import time
import unittest
from datetime import timedelta
from typing import Any

import commsir.torch
import torch
import torch.distributed as dist

#: "cpu" or "cuda"; ranks of harness.World inherit it.
DEVICE = os.environ.get("CHECK_DEVICE", "cpu")
#: The backend for which the suite is written, on each device.
LIKE = {"cpu": "gloo", "cuda": "nccl"}[DEVICE]
#: What that backend runs and we do not, each with its reason; the project allows itself five on each device.
NOT_OURS: dict[str, str] = {
    "test_SyncBatchNorm_process_group": "needs torchvision, and does not say so",
    "test_ddp_profiling_execution_trace": "wants the backend to be called nccl",
    "test_nccl_high_priority_stream": "makes a group of NCCL's by itself, and looks for events of ours",
    "test_ddp_logging_data_cpu": "wants the backend's name where torch writes 'custom' for every backend but its own",
}
#: What Gloo skips and we run: exchanges on the CPU, which the suite knows of MPI alone.
_OURS_TOO = "Only MPI supports"
#: What may be delegated, and why; everything else is CommsIR's.
DELEGATED = {
    "cpu": {
        "all_reduce": "sparse tensor",
        "monitored_barrier": "it names who is missing",
    },
    "cuda": {
        "send": "point to point",
        "recv": "point to point",
        "all_to_all": "sizes that differ by peer",
        "all_to_all_single": "sizes that differ by peer",
        "all_reduce": "sparse tensor",
        "monitored_barrier": "it names who is missing",
    },
}[DEVICE]


class _Backend(str):
    """ "commsir", of which the bodies of tests take for true what is true of "gloo" or "nccl"."""

    def __eq__(self, other: object) -> bool:
        return other == LIKE or str.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(LIKE)


def suite(size: int) -> Any:
    """The module, imported as for that backend and then told that the backend is ours."""
    name = "torch.testing._internal.distributed.distributed_test"
    if name in sys.modules:
        return sys.modules[name]
    os.environ.update(BACKEND=LIKE, WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1")
    if "TEMP_DIR" not in os.environ:
        os.environ["TEMP_DIR"] = tempfile.mkdtemp(prefix="commsir-suite-")
        atexit.register(shutil.rmtree, os.environ["TEMP_DIR"], ignore_errors=True)
    for folder in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
    module: Any = importlib.import_module(name)

    module.BACKEND = _Backend("commsir")
    for supported in (
        module.PROFILING_SUPPORTED_BACKENDS,
        module.CUDA_PROFILING_SUPPORTED_BACKENDS,
        module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS,
    ):
        supported.append("commsir")
    # Ranks meet at barriers of the suite's own, in files; the store is there and faster.
    module.Barrier.init = classmethod(lambda cls: None)
    return module


def tests(size: int) -> list[str]:
    """Names of the tests that do not need GPUs by their name."""
    base = suite(size).DistributedTest._DistTestBase
    return sorted(name for name in dir(base) if name.startswith("test_"))


def _case(size: int) -> type[Any]:
    module = suite(size)

    class Case(module.TestDistBackend, module.DistributedTest._DistTestBase):  # type: ignore[misc, name-defined]
        """The suite's tests; processes are ours."""

    return Case


def run(rank: int, size: int, store: Any, test: str) -> dict[str, Any]:
    """Runs one test on this rank: {"outcome", "reason", "calls"}."""
    module = suite(size)
    method = getattr(_case(size), test)
    why = NOT_OURS.get(test) or (getattr(method, "__unittest_skip__", False) and method.__unittest_skip_why__)
    if why and not (LIKE == "gloo" and why.startswith(_OURS_TOO)):
        return {"outcome": "skipped", "reason": why, "calls": []}
    meetings = 0

    def sync(cls: Any, wait_for: Any = None, timeout: float = 10) -> None:
        nonlocal meetings
        meetings += 1
        count = size if wait_for is None else int(wait_for)
        if store.add(f"barrier/{meetings}", 1) >= count:
            store.set(f"barrier/{meetings}/open", "yes")
        store.wait([f"barrier/{meetings}/open"], timedelta(seconds=120))

    module.Barrier.sync = classmethod(sync)
    # Tests leave the level of details behind, which words of errors depend on.
    os.environ.pop("TORCH_DISTRIBUTED_DEBUG", None)
    torch._C._distributed_c10d.set_debug_level_from_env()
    commsir.torch.clear_stats()
    case = _case(size)(test)
    case.rank = rank
    case.file_name = os.path.join(os.environ["TEMP_DIR"], "unused")
    limit = module.CUSTOM_PG_TIMEOUT.get(test, 60)
    dist.init_process_group("commsir", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=limit))
    torch.manual_seed(0)
    try:
        getattr(case, test)()
        outcome, reason = "passed", ""
    except unittest.SkipTest as skipped:
        outcome, reason = "skipped", str(skipped)
    except SystemExit as left:
        reasons = {skip.exit_code: skip.message for skip in module.TEST_SKIPS.values()}
        if left.code and left.code not in reasons:
            raise RuntimeError(f"{test} ended with code {left.code}") from None
        outcome, reason = ("skipped", reasons[left.code]) if left.code else ("passed", "")
    case._barrier()
    return {"outcome": outcome, "reason": reason, "calls": commsir.torch.stats()["calls"]}


# ---------------------------------------------------------------------------------------------------------------------
# On GPUs
# ---------------------------------------------------------------------------------------------------------------------


def _outcome(ranks: Any, test: str) -> tuple[str, str]:
    """What became of a test on all ranks, and why."""
    try:
        results = ranks.run(run, backend="", patience=100, test=test)
    except AssertionError as failure:
        return "failed", str(failure)
    for result in results:
        for call in result["calls"]:
            if call["path"] != "commsir" and DELEGATED.get(call["op"]) != call["reason"]:
                return "failed", f"was delegated: {call}"
    outcomes = {result["outcome"] for result in results}
    return ("skipped", results[0]["reason"]) if outcomes == {"skipped"} else ("passed", "")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--only", default="", help="tests in whose name this regular expression is")
    parser.add_argument("--give-up", type=int, default=20, help="failures after which nothing more is run")
    options = parser.parse_args()
    if options.ranks < 2:
        print("torch_suite.py: error: two GPUs are needed", file=sys.stderr)
        return 2
    names = [name for name in tests(options.ranks) if re.search(options.only, name)]
    ranks = importlib.import_module("harness").World(options.ranks)
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    for name in names:
        begin = time.monotonic()
        how, why = _outcome(ranks, name)
        counts[how] += 1
        if how != "skipped":
            print(f"{how:8} {time.monotonic() - begin:6.1f} s  {name}", flush=True)
        if how == "failed":
            print("    " + why.strip().replace("\n", "\n    "), flush=True)
        if counts["failed"] >= options.give_up:
            break
    ranks.stop()
    print(f"{options.ranks} ranks: " + ", ".join(f"{count} {how}" for how, count in counts.items()))
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    os.environ["CHECK_DEVICE"] = "cuda"
    # By its name, by which ranks find it, and not "__main__".
    sys.exit(importlib.import_module("torch_suite").main())
