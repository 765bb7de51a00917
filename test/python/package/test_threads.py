"""Several threads in one group: calls that take turns, calls that run concurrently, and calls that end another's."""

import contextlib
import functools
import pathlib
import signal
import threading
import time
from collections.abc import Callable

import commsir
import numpy as np
import pytest
from commsir import Array, all_reduce, dims, f32
from test_group import together

n = dims("n")


@commsir.kernel
def total(x: f32[Array, n], y: f32[Array, n]) -> None:
    all_reduce(x, outs=y)


class Threads:
    """Threads that are joined at the end; what they raise is raised there."""

    def __init__(self) -> None:
        self.all: list[threading.Thread] = []
        self.raised: list[BaseException] = []

    def run(self, body: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                body()
            except BaseException as error:
                self.raised.append(error)

        self.all.append(threading.Thread(target=guarded))
        self.all[-1].start()

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self.all:
            thread.join(timeout=60)
            assert not thread.is_alive(), "a thread hangs"
        if self.raised:
            raise self.raised[0]


def _add_up(group: commsir.Group, size: int = 100) -> None:
    x = np.ones(size, np.float32)
    group.all_reduce(x)
    assert (x == group.ranks).all()


def _add_up_often(group: commsir.Group, times: int, size: int = 100, sizes: int = 1) -> None:
    for i in range(times):
        _add_up(group, size + i % sizes)


def _collectives(rank: int, folder: str) -> None:
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group, Threads() as threads:
        for _ in range(3):
            threads.run(functools.partial(_add_up_often, group, 30))


def test_equal_collectives_take_turns(tmp_path: pathlib.Path) -> None:
    together(_collectives, tmp_path, 2)


def _launches(rank: int, folder: str) -> None:
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        kernel = group.kernel(total, n=64)

        def launch() -> None:
            for _ in range(30):
                y = np.zeros(64, np.float32)
                kernel(np.ones(64, np.float32), y)
                assert (y == 2).all()

        with Threads() as threads:
            threads.run(launch)
            threads.run(launch)
    with pytest.raises(commsir.AbortedError, match="the group is closed"):
        kernel(np.ones(64, np.float32), np.zeros(64, np.float32))


def test_launches_of_one_kernel_take_turns(tmp_path: pathlib.Path) -> None:
    together(_launches, tmp_path, 2)


def test_sizes_of_one_rank(tmp_path: pathlib.Path) -> None:
    with commsir.Group(0, 1, folder=tmp_path, timeout=60) as group, Threads() as threads:
        for size in (10, 1000):
            threads.run(functools.partial(_add_up_often, group, 200, size, 7))


def _different(rank: int, folder: str) -> None:
    """Two threads make different calls, in an order that differs by rank: ranks are told, and none hangs."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        _add_up(group, 10)
        _add_up(group, 5000)
        first = 10 if rank == 0 else 5000
        with pytest.raises(commsir.DisagreementError, match="the same calls in the same order"):
            _add_up(group, first)


def test_ranks_with_other_threads_get_an_error(tmp_path: pathlib.Path) -> None:
    together(_different, tmp_path, 2)


def _make_cpu_group(rank: int, folder: str) -> None:
    """Weights are pushed during training."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        window, other = group.window(1024, "f32"), 1 - rank

        def receive() -> None:
            for version in range(1, 31):
                window.wait(version, source=other)
                assert (window.array >= version).all()
                window.signal(other, version, cell=1)

        def push() -> None:
            for version in range(1, 31):
                window.put_signal(np.full(1024, version, np.float32), other, version)
                window.wait(version, cell=1, source=other)

        with Threads() as threads:
            threads.run(receive)
            threads.run(push)
            for _ in range(50):
                _add_up(group)


def test_waits_keep_no_collective_waiting(tmp_path: pathlib.Path) -> None:
    together(_make_cpu_group, tmp_path, 2)


def _released(rank: int, folder: str) -> None:
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        window = group.window(8)

        def wait() -> None:
            with pytest.raises(commsir.UsageError, match="another thread has released the cell"):
                window.wait(source=1, timeout=30)

        with Threads() as threads:
            if rank == 0:
                threads.run(wait)
                time.sleep(0.5)
            window.release()
        for call in (window.wait, window.read_signal, window.release, lambda: window.put(np.ones(8, np.float32), 0)):
            with pytest.raises(commsir.UsageError, match="was released"):
                call()
        _add_up(group)


def test_release_ends_waits(tmp_path: pathlib.Path) -> None:
    together(_released, tmp_path, 2)


def _putting(rank: int, folder: str) -> None:
    """Threads put to windows that are released; both release at once."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        for _ in range(5):
            window, begun = group.window(4096), threading.Event()

            def put(window: object = window, begun: threading.Event = begun) -> None:
                data = np.ones(4096, np.float32)
                with pytest.raises(commsir.UsageError, match="released"):
                    while True:
                        window.put_signal(data, 1 - rank)  # type: ignore[attr-defined]
                        begun.set()

            with Threads() as threads:
                threads.run(put)
                begun.wait(30)
                window.release()
        _add_up(group)


def test_puts_to_released_windows(tmp_path: pathlib.Path) -> None:
    together(_putting, tmp_path, 2)


def _closed(rank: int, folder: str) -> None:
    group = commsir.Group(rank, 2, folder=folder, timeout=60)
    window = group.window(8)
    _add_up(group)

    def wait() -> None:
        with pytest.raises(commsir.AbortedError, match="another thread has closed the group"):
            window.wait(source=1 - rank)

    with Threads() as threads:
        if rank == 0:
            threads.run(wait)
            time.sleep(0.5)
            begun = time.monotonic()
            group.close()
            assert time.monotonic() - begun < 4
    # A rank that leaves ends waits, too, and says so.
    closed = pathlib.Path(folder) / "rank-0-has-closed"
    if rank == 0:
        closed.touch()
    while not closed.exists():
        time.sleep(0.01)
    group.close()
    group.close()
    with pytest.raises(commsir.AbortedError, match="the group is closed"):
        window.wait()
    window.array[:] = 1  # It keeps its memory.


def test_close_ends_waits(tmp_path: pathlib.Path) -> None:
    together(_closed, tmp_path, 2)


def _closed_in_a_call(rank: int, folder: str) -> None:
    """One thread closes the group while another is in a collective, and calls on without end."""
    group = commsir.Group(rank, 2, folder=folder, timeout=60)
    begun = threading.Event()

    def call() -> None:
        with pytest.raises((commsir.AbortedError, commsir.DeadlockError)):
            while True:
                _add_up(group)
                begun.set()

    with Threads() as threads:
        threads.run(call)
        begun.wait(30)
        group.close()


def test_close_in_a_collective(tmp_path: pathlib.Path) -> None:
    together(_closed_in_a_call, tmp_path, 2)


def _watched(rank: int, folder: str) -> None:
    """A watchdog looks at, and ends, a call whose peer does not come."""
    group = commsir.Group(rank, 2, folder=folder, timeout=60)
    _add_up(group)
    if rank == 1:
        time.sleep(2)
        return

    def call() -> None:
        with pytest.raises(commsir.AbortedError, match="too late"):
            _add_up(group)

    with Threads() as threads:
        threads.run(call)
        threads.run(call)
        time.sleep(0.5)
        group.poll()
        assert group.stats()["launches"] >= 1
        group.abort("too late")


def test_watchdog_ends_a_call(tmp_path: pathlib.Path) -> None:
    together(_watched, tmp_path, 2)


def _handler(rank: int, folder: str) -> None:
    """A handler of signals calls the group that the thread is in a call of."""
    with commsir.Group(rank, 2, folder=folder, timeout=60) as group:
        _add_up(group)
        if rank == 0:
            signal.signal(signal.SIGALRM, lambda *_: _add_up(group))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(commsir.UsageError, match="this thread is in a call of the group already"):
                _add_up(group)
        else:
            time.sleep(1.5)
            with contextlib.suppress(commsir.CommsError):  # Rank 0 has given up, maybe after its part was done.
                _add_up(group)


def test_call_in_a_handler_of_signals(tmp_path: pathlib.Path) -> None:
    together(_handler, tmp_path, 2)
