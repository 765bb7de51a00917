"""Pulls a checkpoint out of a worker that keeps computing and makes no call for it.

The worker has two copies of its state in its window, and tells the saver the number of the newer. It never waits:
where the saver has not yet read the older copy, or a newer one, it writes none this time.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from typing import Any

import numpy as np

import commsir

WORKER, SAVER = 0, 1
#: Cells of the saver: the newest checkpoint's number; of the worker: the last that was read; of both: the end.
NEWEST, READ, END = 0, 1, 2
SIZE = 1 << 16


def step(state: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """One step of the computation: a wave on a ring."""
    made: np.ndarray[Any, Any] = state + 0.1 * (np.roll(state, 1) - 2 * state + np.roll(state, -1))
    return made


def start() -> np.ndarray[Any, Any]:
    made: np.ndarray[Any, Any] = np.sin(np.arange(SIZE) * (2 * np.pi / SIZE))
    return made


def work(group: commsir.Group) -> int:
    """Computes until the saver has enough; returns the number of steps."""
    window = group.window((2, SIZE + 1), np.float64)
    state, steps, number = start(), 0, 0
    while not window.read_signal(END):
        state, steps = step(state), steps + 1
        # Number n + 1 takes the place of n - 1.
        if window.read_signal(READ) >= number - 1:
            number += 1
            copy = window.array[number % 2]
            copy[:SIZE], copy[SIZE] = state, steps
            window.signal(SAVER, number, cell=NEWEST)
    window.signal(SAVER, cell=END)
    return steps


def save(group: commsir.Group, checkpoints: int) -> list[np.ndarray[Any, Any]]:
    """Checkpoints, each with the number of its step at the end."""
    window = group.window((2, SIZE + 1), np.float64)
    taken: list[np.ndarray[Any, Any]] = []
    newest = 0
    for _ in range(checkpoints):
        window.wait(newest + 1, cell=NEWEST, source=WORKER)
        newest = window.read_signal(NEWEST)
        taken.append(window.get(WORKER, at=newest % 2))
        window.signal(WORKER, newest, cell=READ)
    window.signal(WORKER, cell=END)
    window.wait(cell=END, source=WORKER)
    return taken


def run(rank: int, folder: str, checkpoints: int) -> None:
    with commsir.Group(rank, 2, folder=folder) as group:
        if rank == WORKER:
            work(group)
            return
        taken = save(group, checkpoints)
    # Each is what the worker had after so many steps.
    state, done = start(), 0
    for checkpoint in taken:
        while done < checkpoint[SIZE]:
            state, done = step(state), done + 1
        assert (checkpoint[:SIZE] == state).all(), f"the checkpoint of step {done} is torn"
    print(f"{len(taken)} checkpoints, the last of step {done}, are what the worker had then")


def main(checkpoints: int = 5) -> None:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        children = [context.Process(target=run, args=(rank, folder, checkpoints)) for rank in range(2)]
        for child in children:
            child.start()
        for child in children:
            child.join()
    if any(child.exitcode for child in children):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
