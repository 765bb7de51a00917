"""PyTorch's own distributed suite, run by ranks that are already there.

The suite starts new processes for every test, which would take an hour; its test methods are run here in the ranks of
harness.World instead. Its decorators are evaluated as for Gloo, so what Gloo runs is run.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import sys
import tempfile
import unittest
from datetime import timedelta
from typing import Any

import commsir.torch
import torch
import torch.distributed as dist

#: What Gloo runs and we do not, each with its reason; the project allows itself five.
NOT_OURS: dict[str, str] = {
    "test_SyncBatchNorm_process_group": "needs torchvision, and does not say so",
    "test_ddp_logging_data_cpu": "wants the backend's name where torch writes 'custom' for every backend but its own",
}
#: What Gloo skips and we run: exchanges on the CPU, which the suite knows of MPI alone.
_OURS_TOO = "Only MPI supports"


class _Backend(str):
    """ "commsir", of which the bodies of tests take for true what is true of "gloo"."""

    def __eq__(self, other: object) -> bool:
        return other == "gloo" or str.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


def suite(size: int) -> Any:
    """The module, imported as for Gloo and then told that the backend is ours."""
    name = "torch.testing._internal.distributed.distributed_test"
    if name in sys.modules:
        return sys.modules[name]
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1")
    if "TEMP_DIR" not in os.environ:
        os.environ["TEMP_DIR"] = tempfile.mkdtemp(prefix="commsir-suite-")
        atexit.register(shutil.rmtree, os.environ["TEMP_DIR"], ignore_errors=True)
    for folder in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
    module: Any = importlib.import_module(name)

    module.BACKEND = _Backend("commsir")
    # A work in Python cannot open and close an event of the profiler.
    if os.environ.get("COMMSIR_TORCH_BACKEND") != "python":
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
    if why and not why.startswith(_OURS_TOO):
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
