"""Ranks in separate processes, started once, that run one check after the other.

Ranks meet in a TCP store of the parent, on a port that the system chooses; every check has its own process group.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import multiprocessing as mp
import os
import pathlib
import signal
import sys
import tempfile
import time
import traceback
import unittest
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

__all__ = ["World"]

#: Seconds that a rank waits for another; the machine may be busy. CHECK_PATIENCE says fewer, where time is dear.
PATIENCE = int(os.environ.get("CHECK_PATIENCE", "120"))


def _serve(rank: int, size: int, port: int, environment: dict[str, str], pipe: Connection) -> None:
    os.environ.update(environment)
    # Who is asked by this signal writes where it is, also from within a call that never comes back.
    faulthandler.register(signal.SIGUSR1, open(environment["CHECK_STACKS"] + str(rank), "w"))  # noqa: SIM115
    sys.path[:0] = environment["CHECK_PATH"].split(os.pathsep)
    import commsir.torch
    import torch
    import torch.distributed

    dist: Any = torch.distributed

    torch.set_num_threads(1)
    if "cuda" in (environment["CHECK_DEVICE"], environment["CHECK_TENSORS"]):
        # There are fewer GPUs than ranks where these take turns (COMMSIR_SHARE_GPU).
        gpu = rank % torch.cuda.device_count()
        torch.cuda.set_device(gpu)
        if environment["CHECK_TENSORS"] == "cuda":
            torch.set_default_device(torch.device("cuda", gpu))
    commsir.torch.register()
    meeting = dist.TCPStore("127.0.0.1", port, is_master=False)
    while job := pipe.recv():
        number, module, name, keywords, backend = job
        outcome: tuple[str, Any]
        try:
            check: Callable[..., Any] = getattr(importlib.import_module(module), name)
            store = dist.PrefixStore(str(number), meeting)
            commsir.torch.clear_stats()
            if backend:
                if backend == "gloo" and environment["CHECK_TENSORS"] == "cuda":
                    # NCCL refuses ranks that share a GPU.
                    backend = "commsir" if torch.cuda.device_count() < size else "cpu:gloo,cuda:nccl"
                dist.init_process_group(
                    backend,
                    store=store,
                    rank=rank,
                    world_size=size,
                    timeout=timedelta(seconds=keywords.pop("timeout", PATIENCE)),
                )
                result = check(rank, size, **keywords)
            else:
                result = check(rank, size, store, **keywords)
            outcome = ("ok", result)
        except BaseException:
            outcome = ("failed", traceback.format_exc())
        try:
            if dist.is_initialized():
                dist.destroy_process_group()
        except Exception:
            if outcome[0] == "ok":
                outcome = ("failed", traceback.format_exc())
        pipe.send(outcome)


def _begin_to_fork(imports: tuple[str, ...], device: str) -> Any:
    """The server that forks ranks, after it has imported what they all need. Some modules begin to use the GPUs that
    they see, which a forked process cannot go on with: the server of ranks on the CPU sees none."""
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed", *imports])
    with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}):
        forkserver.ensure_running()
    return context


class World:
    """`size` ranks; what they all import, by `imports`, is imported once.

    `tensors`: where they are if checks say nothing, "cpu" or "cuda", which is GPU r for rank r (modulo the GPUs).
    """

    def __init__(self, size: int, imports: tuple[str, ...] = (), tensors: str = "cpu") -> None:
        self.size, self.imports, self.tensors = size, imports, tensors
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []
        self._number = 0

    def _start(self) -> None:
        import torch.distributed

        dist: Any = torch.distributed
        self._folder = tempfile.TemporaryDirectory(prefix="commsir-ranks-")
        self._store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        environment = {
            "COMMSIR_TORCH_BACKEND": "cpp",
            "CHECK_PATH": os.pathsep.join(path for path in sys.path if path),
            "CHECK_STACKS": f"{self._folder.name}/rank-",
            "CHECK_DEVICE": "cuda" if self.tensors == "cuda" else os.environ.get("CHECK_DEVICE", "cpu"),
            "CHECK_TENSORS": self.tensors,
            "OMP_NUM_THREADS": "1",
            # A defect of the pass for torch.compile is to fail a test, not to fall back.
            "COMMSIR_TORCH_STRICT": "1",
        }
        context = _begin_to_fork(self.imports, environment["CHECK_DEVICE"])
        for rank in range(self.size):
            own, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(rank, self.size, self._store.port, environment, theirs), daemon=False
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(own)

    def run(
        self, check: Callable[..., Any], backend: str = "commsir", patience: float = 2 * PATIENCE, **keywords: Any
    ) -> list[Any]:
        """Runs a function of (rank, size) on all ranks; `backend` empty: of (rank, size, store), without a group."""
        if not self._processes:
            self._start()
        self._number += 1
        for pipe in self._pipes:
            pipe.send((self._number, check.__module__, check.__name__, keywords, backend))
        outcomes = self._collect(patience)
        failures = [f"--- rank {rank}:\n{text}" for rank, (how, text) in enumerate(outcomes) if how != "ok"]
        if failures:
            self.stop(kill=True)
            if self.tensors == "cuda" and all("Duplicate GPU detected" in text for text in failures):
                raise unittest.SkipTest("NCCL is asked, which refuses ranks that share a GPU")
            raise AssertionError("\n".join(failures))
        return [result for _, result in outcomes]

    def _collect(self, patience: float) -> list[tuple[str, Any]]:
        """What the ranks answer. Once one has failed, the others may wait for it in vain: they get little time."""
        outcomes: list[tuple[str, Any]] = [("failed", "")] * self.size
        deadline = time.monotonic() + patience
        waiting = dict(enumerate(self._pipes))
        while waiting and time.monotonic() < deadline:
            for rank, pipe in list(waiting.items()):
                if not pipe.poll(0.002):
                    continue
                del waiting[rank]
                try:
                    outcomes[rank] = pipe.recv()
                except (EOFError, ConnectionResetError):
                    self._processes[rank].join(10)
                    outcomes[rank] = ("failed", f"ended with code {self._processes[rank].exitcode}")
                if outcomes[rank][0] != "ok":
                    deadline = min(deadline, time.monotonic() + 15)
        for rank in waiting:
            outcomes[rank] = ("failed", f"has not answered in time (at most {patience} s)\n{self._where(rank)}")
        return outcomes

    def _where(self, rank: int) -> str:
        """The stacks of a rank's threads."""
        process, path = self._processes[rank], pathlib.Path(self._folder.name) / f"rank-{rank}"
        if not process.is_alive():
            return f"its process has ended with code {process.exitcode}"
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(0.5)
        return path.read_text() if path.exists() else ""

    def stop(self, kill: bool = False) -> None:
        """Ends the ranks; the next check starts new ones."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            if kill:
                process.kill()
            else:
                with contextlib.suppress(BrokenPipeError):
                    pipe.send(None)
        for process in self._processes:
            process.join(30)
            if process.is_alive():
                process.kill()
        self._processes, self._pipes = [], []
