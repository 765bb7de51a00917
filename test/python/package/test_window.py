"""Windows of groups: one rank acts, the other is in no call. Each test starts its ranks as processes."""

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time

import commsir
import numpy as np
import pytest
from conftest import ROOT
from test_group import together


def _arrays(rank: int, folder: str) -> None:
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        other = 1 - rank
        for kind in ("f32", "bf16", np.int64, "f64"):
            window = group.window((3, 5), kind, signals=4)
            window.array[0] = rank
            window.put_signal(np.full((2, 5), 3 + rank).astype(window.array.dtype), other, at=1)
            window.wait(source=other)
            assert (window.array[1:].astype(float) == 3 + other).all() and (window.array[0].astype(float) == rank).all()
            np.testing.assert_array_equal(window.get(other)[0].astype(float), np.full(5, other))
            out = np.zeros(2, window.array.dtype)
            assert window.get(other, at=(2, 3), out=out) is out and (out.astype(float) == 3 + rank).all()
            # Cells: set, add, reset, and those of the next window are others.
            window.signal(other, 5, cell=3)
            window.signal(other, 2, cell=3, op="add")
            window.wait(7, cell=3, compare="eq", source=other)
            window.reset_signal(3)
            assert [window.read_signal(cell) for cell in (0, 2, 3)] == [1, 0, 0]
            # The peer's memory, in place.
            window.peer(other)[0, 0] = 9
            window.signal(other, cell=1)
            window.wait(cell=1, source=other)
            assert float(window.array[0, 0]) == 9
            window.signal(other, cell=2)
            window.wait(cell=2, source=other)
            window.release()


def test_arrays(tmp_path: pathlib.Path) -> None:
    together(_arrays, tmp_path, 2)


def _refused(rank: int, folder: str) -> None:
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        window = group.window(4, "f32", signals=1)
        with pytest.raises(commsir.UsageError, match="is f64, but the window f32"):
            window.put(np.zeros(4), 0)
        with pytest.raises(
            commsir.BoundsError,
            match=r"of 4 elements, \(4,\), does not fit a window of \(4,\) from index 1 on, which has 3",
        ):
            window.put(np.zeros(4, np.float32), 0, at=1)
        with pytest.raises(commsir.BoundsError, match="index 4 is none of a window"):
            window.get(0, at=4)
        with pytest.raises(commsir.UsageError, match="rank 2 is none of a group of 2"):
            window.get(2)
        with pytest.raises(commsir.UsageError, match="cells 0 to 0, but not 1"):
            window.signal(0, cell=1)
        with pytest.raises(commsir.UsageError, match="one of set, add"):
            window.signal(0, op="inc")
        with pytest.raises(commsir.UsageError, match=r"0 to 2\^63 - 1, not -1"):
            window.signal(0, -1)
        with pytest.raises(commsir.UsageError, match="one of eq, ge"):
            window.wait(compare="gt")
        with pytest.raises(commsir.UsageError, match="more than 0"):
            window.wait(timeout=0)
        fixed = np.zeros(4, np.float32)
        fixed.flags.writeable = False
        with pytest.raises(commsir.UsageError, match="read-only"):
            window.get(0, out=fixed)
        window.put(fixed, rank)
        with pytest.raises(commsir.UsageError, match="out of this rank's reach"):
            window.peer(2)
        silent = group.window(4)
        said = r"signal of any rank: 0.1 s are over\n  cell 1 of the group holds 0, not ge 1"
        with pytest.raises(commsir.DeadlockError, match=said):
            silent.wait(timeout=0.1)
        assert "cells 1 to 8 of the group" in repr(silent)
        window.signal(1 - rank)  # The group is as it was.
        window.wait(source=1 - rank)
    with pytest.raises(commsir.AbortedError, match="the group is closed"):
        window.signal(0)


def test_what_makes_no_sense_is_refused(tmp_path: pathlib.Path) -> None:
    together(_refused, tmp_path, 2)


def _waits(rank: int, folder: str) -> None:
    group = commsir.Group(rank, 2, folder=folder, timeout=60)
    window = group.window(4)
    if rank == 1:
        pathlib.Path(folder, "ready").write_text("yes")
        time.sleep(100)
    try:
        window.wait(source=1)
    except commsir.DeadlockError as error:
        pathlib.Path(folder, "said").write_text(str(error))


def _interrupted(rank: int, folder: str) -> None:
    group = commsir.Group(rank, 2, folder=folder, timeout=60)
    window = group.window(4)
    if rank == 0:
        with pytest.raises(KeyboardInterrupt):
            pathlib.Path(folder, "ready").write_text("yes")
            window.wait(source=1)
        window.signal(1)  # It can go on.
    else:
        window.wait(source=0)


@pytest.mark.parametrize("body, target, number", [(_waits, 1, signal.SIGKILL), (_interrupted, 0, signal.SIGINT)])
def test_waits_end(tmp_path: pathlib.Path, body: object, target: int, number: int) -> None:
    """A source that is killed, and Ctrl-C."""
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=body, args=(rank, str(tmp_path))) for rank in range(2)]  # type: ignore[arg-type]
    for child in children:
        child.start()
    while not (tmp_path / "ready").exists():
        assert children[target].is_alive()
        time.sleep(0.01)
    time.sleep(0.2)
    pid = children[target].pid
    assert pid is not None
    os.kill(pid, number)
    for child in children:
        child.join(timeout=100)
    if number == signal.SIGINT:
        assert [child.exitcode for child in children] == [0, 0]
        return
    assert [child.exitcode for child in children] == [0, -signal.SIGKILL]
    said = (tmp_path / "said").read_text()
    assert "waits in vain for a signal of rank 1: rank 1 (process" in said and "has died" in said


def test_a_checkpoint_is_pulled() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "frontend")}
    command = [sys.executable, "-m", "commsir.examples.pull_checkpoint"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 checkpoints" in done.stdout
