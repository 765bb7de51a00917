"""Ctrl-C ends a simulation in any state of its blocks."""

# Kernels are written as without a type checker, which cannot take `Signal[4]` and the like.
# mypy: disable-error-code="type-arg, valid-type"
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import commsir
import numpy as np
import pytest
from commsir import Array, Signal, dims, f32, i32, read_signal

n = dims("n")


@commsir.kernel
def spins(x: f32[Array, n]) -> None:
    """Never gives up the processor."""
    while x[0] < 1:
        x[1] += 1


@commsir.kernel
def polls(s: Signal[1]) -> None:
    """Comes back to the scheduler forever, and so do the others."""
    while read_signal(s[0]) < 1:
        pass


@commsir.kernel
def counts(x: i32[Array, n]) -> None:
    x[0] += 1


@pytest.fixture
def interrupt() -> Iterator[None]:
    """What Ctrl-C does, half a second from now."""
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


# The limit is for a run that is not ended: its error is no KeyboardInterrupt.
@pytest.mark.usefixtures("interrupt")
@pytest.mark.parametrize("options", [{}, {"fuzz": 1000}, {"fast": True}], ids=["one", "schedules", "threads"])
def test_blocks_that_never_wait(options: dict[str, Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        spins.simulate(ranks=2, inputs={"x": np.zeros(4, np.float32)}, check=False, time_limit=30, **options)
    # The next run knows nothing of it.
    report = counts.simulate(ranks=2, inputs={"x": np.zeros(4, np.int32)})
    assert report["x"][1][0] == 1


@pytest.mark.usefixtures("interrupt")
def test_blocks_that_come_back() -> None:
    with pytest.raises(KeyboardInterrupt):
        polls.simulate(ranks=2, inputs={}, check=False, time_limit=30, fast=True)


@pytest.mark.usefixtures("interrupt")
def test_many_launches() -> None:
    with pytest.raises(KeyboardInterrupt):
        counts.simulate(ranks=2, inputs={"x": np.zeros(4, np.int32)}, launches=1 << 40, check=False, time_limit=30)


def test_a_run_without_a_limit_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commsir._native.TIME_LIMIT", 0.2)
    zeros = {"x": np.zeros(4, np.float32)}
    with pytest.raises(commsir.LimitError, match=r"the limit of 0.2 s(.|\n)*spins|time_limit=0") as told:
        spins.simulate(1, zeros, check=False)
    assert "by time_limit=600" in str(told.value) and told.value.waiting[0].op == "scf.while"
    with pytest.raises(commsir.LimitError, match="the limit of 0.3 s") as told:
        spins.simulate(1, zeros, check=False, time_limit=0.3)
    assert "time_limit=" not in str(told.value)
    # 0 is none, and so it is where steps are limited.
    assert counts.simulate(1, {"x": np.zeros(4, np.int32)}, launches=300000, check=False, time_limit=0).ranks == 1
    with pytest.raises(commsir.LimitError, match="the limit of 100 steps") as told:
        polls.simulate(1, check=False, max_steps=100)
    assert "time_limit=" not in str(told.value)


def test_a_handler_that_goes_on() -> None:
    """A handler of the caller's own that does not raise ends nothing."""
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(commsir.CommsError, match="limit of 1") as told:
            spins.simulate(ranks=1, inputs={"x": np.zeros(4, np.float32)}, check=False, time_limit=1)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT] and "interrupted" not in str(told.value)


def test_the_program(tmp_path: pathlib.Path) -> None:
    """comms-run of the package ends by the signal, as the program itself does."""
    (tmp_path / "spins.mlir").write_text(spins.specialize(n=4).text())
    program = "from commsir._tools import comms_run; print('here', flush=True); comms_run()"
    command = [sys.executable, "-c", program, "spins.mlir", "--ranks", "1", "--no-check", "--time-limit", "30"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "here\n"
        # The program's own handler is there soon after the library.
        while "libcommsir.so" not in pathlib.Path(f"/proc/{run.pid}/maps").read_text():
            time.sleep(0.05)
        timer = threading.Timer(1.5, run.send_signal, (signal.SIGINT,))
        timer.start()
        told = run.communicate(timeout=60)
        timer.join()
    assert run.returncode == -signal.SIGINT, told
