"""Windows of groups: one rank acts while the other is in no call. Each test starts its ranks as processes."""

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import commsir
import numpy as np
import pytest
from commsir.window import GroupWindow
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
        with pytest.raises(commsir.UsageError, match="is f64, but the window has f32"):
            window.put(np.zeros(4), 0)
        with pytest.raises(
            commsir.BoundsError,
            match=r"of 4 elements, \(4,\), does not fit a window of \(4,\) from index 1 on, which has 3",
        ):
            window.put(np.zeros(4, np.float32), 0, at=1)
        with pytest.raises(commsir.BoundsError, match="index 4 is out of bounds for a window"):
            window.get(0, at=4)
        with pytest.raises(commsir.UsageError, match="rank 2 is not in a group of 2"):
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
        with pytest.raises(commsir.UsageError, match=r"a GroupWindow, not an array: pass its array: w\.array"):
            group.all_reduce(window)
        silent = group.window(4)
        said = (
            r"signal from any rank: the timeout of 0.1 s has passed\n  cell 1 of the group: observed 0, expected >= 1"
        )
        with pytest.raises(commsir.DeadlockError, match=said):
            silent.wait(timeout=0.1)
        assert "cells 1 to 8 of the group" in repr(silent)
        window.signal(1 - rank)  # The group is as it was.
        window.wait(source=1 - rank)
    with pytest.raises(commsir.AbortedError, match="the group is closed"):
        window.signal(0)


def test_invalid_arguments_are_refused(tmp_path: pathlib.Path) -> None:
    together(_refused, tmp_path, 2)


def _rows(rank: int, folder: str) -> None:
    """A put stays in the part that is named, or fills several."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        window = group.window((3, 10), "f32", signals=1)
        deep = group.window((2, 3, 4), "f32", signals=1)
        cases: list[tuple[GroupWindow, int | tuple[int, ...], list[int], list[int]]] = [
            (window, 1, [0, 7, 10, 20], [11, 15, 21, 30]),
            (window, (1, 4), [1, 6], [7, 16]),
            (window, (), [7, 30], [31]),
            (deep, 0, [5, 12, 24], [13, 23, 25]),
            (deep, (0, 1), [3, 4, 8], [5, 9, 12]),
        ]
        for made, at, fitting, wrong in cases:
            for count in fitting:
                made.put(np.ones(count, np.float32), rank, at=at)
                assert made.get(rank, at=at, out=np.zeros(count, np.float32)).all()
            assert made.array.sum() == max(fitting)
            for count in wrong:
                for call in (made.put, lambda x, peer, at: made.get(peer, at=at, out=x)):  # noqa: B023
                    with pytest.raises(commsir.BoundsError, match="does not fit|would end within another part"):
                        call(np.full(count, 2, np.float32), rank, at=at)
            assert made.array.max() == 1
            made.array[:] = 0


def test_rows_are_not_crossed(tmp_path: pathlib.Path) -> None:
    together(_rows, tmp_path, 2)


def _numbers(rank: int, folder: str) -> None:
    """What does not fit the library's numbers is refused as a caller's mistake."""
    data, most = np.zeros(4, np.float32), 2**63 - 1
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        window = group.window(4)
        for number in (-1, most + 1, 2**64, 2**70):
            for call in (window.signal, lambda peer, value: window.put_signal(data, peer, value)):
                with pytest.raises(commsir.UsageError, match=rf"hold numbers from 0 to 2\^63 - 1, not {number}$"):
                    call(rank, number)
            with pytest.raises(commsir.UsageError, match=rf"0 to 2\^63 - 1, not {number}$"):
                window.wait(number, timeout=1)
            for cell_call in (window.read_signal, window.reset_signal, lambda cell: window.signal(rank, cell=cell)):
                with pytest.raises(commsir.UsageError, match=f"cells 0 to 7, but not {number}: "):
                    cell_call(number)
        for bad in (1.5, "1", None):
            with pytest.raises(commsir.UsageError, match="the number of a signal is .*, which is not an integer"):
                window.signal(rank, bad)  # type: ignore[arg-type]
            with pytest.raises(commsir.UsageError, match="the cell is .*, which is not an integer"):
                window.read_signal(bad)  # type: ignore[arg-type]
        with pytest.raises(commsir.UsageError, match="timeout is '1' seconds, but must be a number"):
            window.wait(timeout="1")  # type: ignore[arg-type]
        far: list[tuple[str, Callable[[], object]]] = [
            ("the peer", lambda: window.signal(2**64)),
            ("the peer", lambda: window.put(data, 2**64)),
            ("the peer", lambda: window.get(2**64)),
            ("the peer", lambda: window.peer(2**64)),
            ("the source", lambda: window.wait(source=2**64)),
            ("the stream", lambda: window.signal(rank, stream=2**64)),
            ("the root", lambda: group.broadcast(data, root=2**64)),
            ("the number of signals", lambda: group.window(4, signals=2**64)),
            ("a size of the shape", lambda: group.window(2**64)),
            ("the rank", lambda: commsir.Group(2**64, 2, folder=folder)),
        ]
        for what, far_call in far:
            with pytest.raises(commsir.UsageError, match=f"{what}.* is {2**64}, but must be a number of 64 bits"):
                far_call()
        with pytest.raises(commsir.UsageError, match=f"there is no GPU {2**32}"):
            commsir.Group(0, 1, folder=folder, device=2**32)
        with pytest.raises(commsir.BoundsError, match="is out of bounds for a window"):
            window.put(data, rank, at=2**64)
        # The greatest of all, and the group is as it was.
        window.signal(1 - rank, most)
        window.wait(most, compare="eq", source=1 - rank)
        assert window.read_signal() == most


def test_numbers_have_bounds(tmp_path: pathlib.Path) -> None:
    together(_numbers, tmp_path, 2)


def _refuses_all(window: GroupWindow, peer: int) -> None:
    """A window that was released."""
    data = np.ones(4, np.float32)
    calls: list[Callable[[], object]] = [
        lambda: window.array,
        lambda: window.tensor,
        lambda: window.peer(peer),
        lambda: window.put(data, peer),
        lambda: window.get(peer),
        lambda: window.get(peer, out=data),
        lambda: window.signal(peer),
        lambda: window.put_signal(data, peer),
        lambda: window.wait(timeout=1),
        window.read_signal,
        window.reset_signal,
        window.release,
    ]
    for call in calls:
        with pytest.raises(commsir.UsageError, match=r"the window f32 \(4,\) of rank . was released: make a new one"):
            call()
    assert "released" in repr(window)


def _released(rank: int, folder: str) -> None:
    """A window that was released reaches nothing, whoever has its memory now."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        old = group.window(4)
        old.release()
        _refuses_all(old, 1 - rank)
        new = group.window(4)  # It may well lie where the old one did.
        _refuses_all(old, 1 - rank)
        group.release(new.array)
        _refuses_all(new, 1 - rank)
        last = group.window(4)
        _refuses_all(old, 1 - rank)
        _refuses_all(new, 1 - rank)
        last.signal(1 - rank)
        last.wait(source=1 - rank)
        assert not last.array.any()
        array = last.array
        array[:] = 3
    # An array keeps its memory when the group is closed.
    with pytest.raises(commsir.AbortedError, match="the group is closed"):
        last.release()
    assert (array == 3).all() and last.array is array


def test_a_released_window_reaches_nothing(tmp_path: pathlib.Path) -> None:
    together(_released, tmp_path, 2)


def _is_mapped(address: int) -> bool:
    with open("/proc/self/maps") as maps:
        parts = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    return any(first <= address < last for first, last in parts)


def _outlives(group: commsir.Group, window: GroupWindow, kept: object, address: int) -> None:
    """Memory of a window that is released: it stays for `kept`, and no other window has it."""
    window.release()
    others = [group.window(1 << 16) for _ in range(3)]
    for other in others:
        other.array[:] = -1
    total = float(kept.sum())  # type: ignore[attr-defined]
    assert total == 1 << 17, total
    kept[:8] = 5  # type: ignore[index]
    assert all((other.array == -1).all() for other in others)
    for other in others:
        other.release()
    assert _is_mapped(address)


def _kept(rank: int, folder: str) -> None:
    torch = pytest.importorskip("torch")

    def made() -> tuple[GroupWindow, int]:
        window = group.window(1 << 16)
        window.array[:] = 2
        window.signal(1 - rank)  # A peer's array is read, too.
        window.wait(source=1 - rank)
        return window, window.array.ctypes.data

    ways: list[Callable[[GroupWindow], object]] = [
        lambda window: window.array,
        lambda window: window.array.reshape(2, -1).T.reshape(-1, order="F"),  # A view of a view.
        lambda window: window.peer(1 - rank),
        lambda window: torch.from_dlpack(window.array),
    ]
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for take in ways:
            window, address = made()
            kept = take(window)
            _outlives(group, window, kept, address)
            del kept
            assert not _is_mapped(address)  # And then it goes.
        window = group.window(1 << 16, to=torch.utils.dlpack.from_dlpack)
        window.tensor.fill_(2)
        address = window.tensor.data_ptr()
        tensor = window.tensor[:]
        _outlives(group, window, tensor, address)
        del tensor
        assert not _is_mapped(address)
        # Of one rank alone.
        window, address = made()
        kept = window.array if rank == 0 else None
        window.release()
        assert _is_mapped(address) == (rank == 0)
        assert kept is None or float(kept.sum()) == 1 << 17
        # What is given to `release` is somebody's all the more.
        array = group.allocate(1 << 16)
        array[:] = 2
        group.release(array)
        assert float(array.sum()) == 1 << 17


def test_arrays_outlive_their_window(tmp_path: pathlib.Path) -> None:
    together(_kept, tmp_path, 2)


_KEPT_TO_THE_END = """
import builtins, sys, commsir
builtins.kept = group = commsir.Group(0, 1, folder=sys.argv[1])  # Outlives all modules.
window = group.window(4)
"""

_TORCH_TO_THE_END = """
import torch.distributed as dist, commsir.torch
commsir.torch.register()
dist.init_process_group({backend!r}, store=dist.HashStore(), rank=0, world_size=1)
window = commsir.torch.window((2,))
tensor = window.tensor
"""


@pytest.mark.parametrize("backend", ["", "commsir", "gloo"])
def test_programs_end_without_a_word(tmp_path: pathlib.Path, backend: str) -> None:
    """Whatever they have not closed."""
    if backend:
        pytest.importorskip("torch")
    code = _TORCH_TO_THE_END.format(backend=backend) if backend else _KEPT_TO_THE_END
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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
    assert "got no signal from rank 1: rank 1 (process" in said and "has died" in said


def test_a_checkpoint_is_pulled() -> None:
    command = [sys.executable, "-m", "commsir.examples.pull_checkpoint"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 checkpoints" in done.stdout
