"""Rows go through the ranks as stages of a pipeline: credits keep two under way, and no barrier is needed."""

from __future__ import annotations

import numpy as np

import commsir
from commsir import Array, Signal, Window, dims, epoch, f32, i64, rank, signal, size, wait_signal

rows, n = dims("rows n")
SLOTS = 2


@commsir.kernel(blocks=1)
def pipeline(
    x: f32[Array, rows, n],
    box: f32[Window, SLOTS, n],
    full: i64[Signal, 1],
    free: i64[Signal, 1],
    y: f32[Array, rows, n],
) -> None:
    me, last = rank(), size() - 1
    for r in range(rows):
        before = (epoch() - 1) * rows + r  # rows of earlier launches count as well
        slot = before % SLOTS
        if me == 0:
            t = x[r]
        else:
            arrived = wait_signal(full[0], ge=before + 1)
            t = box.load(slot * n, n, after=arrived) * 2.0
            signal(free[0], me - 1)
        if me < last:
            if before >= SLOTS:
                wait_signal(free[0], ge=before - SLOTS + 1)
            box.peer(me + 1)[slot] = t
            signal(full[0], me + 1)
        else:
            y[r] = t


def main(ranks: int = 4) -> None:
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    pipeline.specialize(rows=8, n=64).check(ranks=ranks)
    report = pipeline.simulate(ranks, {"x": x}, launches=3, fuzz=10)
    print(report)
    np.testing.assert_array_equal(report["y"][-1], x * 2 ** (ranks - 1))


if __name__ == "__main__":
    main()
