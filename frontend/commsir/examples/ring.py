"""A hand-written ring all-gather: each rank forwards the data that it received, and a signal counts the parts."""

from __future__ import annotations

import numpy as np

import commsir
from commsir import Array, HostWindow, Signal, barrier, dims, epoch, f32, i64, put_signal, rank, wait_signal

world, n = dims("world n")


@commsir.kernel(blocks=1)
def ring(x: f32[Array, n], y: f32[HostWindow, world, n], come: i64[Signal, 1]) -> None:
    me, size = rank(), world
    barrier()  # All programs have done with the y of the launch before.
    y[me] = x[:]
    for step in range(size - 1):
        piece = (me - step) % size
        put_signal(y[piece], y[piece], (me + 1) % size, come[0])
        wait_signal(come[0], ge=(epoch() - 1) * (size - 1) + step + 1)
    barrier()


def main(ranks: int = 4) -> None:
    x = [np.random.default_rng(r).uniform(-1, 1, 64).astype(np.float32) for r in range(ranks)]
    report = ring.specialize(world=ranks).simulate(ranks, {"x": x}, launches=2, fuzz=20)
    print(report)
    for y in report["y"]:
        np.testing.assert_array_equal(y, np.stack(x))


if __name__ == "__main__":
    main()
