"""A researcher's own collective: a one-shot all-reduce by put and signal, in ten lines.

Every rank puts its array into its row of every peer's inbox, and adds what came in the order of the ranks. Two halves
of the inbox alternate from launch to launch: nobody overwrites what a slow rank still reads.
"""

from __future__ import annotations

import numpy as np

import commsir
from commsir import Array, Signal, Window, dims, epoch, f32, i64, put_signal, team, wait_signal_from, zeros

slots, n = dims("slots n")


@commsir.kernel
def one_shot(x: f32[Array, n], inbox: f32[Window, slots, n], come: i64[Signal, 16], y: f32[Array, n]) -> None:
    world = team()
    first = epoch() % 2 * world.size
    for peer in world.peers():
        put_signal(x, inbox[first + world.rank], peer, come[world.rank])
    total = zeros(n)
    for source in range(world.size):
        if source == world.rank:
            total += x[:]
        else:
            token = wait_signal_from(come[source], source, ge=epoch())
            total += inbox.load((first + source) * n, n, after=token)
    y[:] = total


def main(ranks: int = 4) -> None:
    x = [np.random.default_rng(r).uniform(-1, 1, 256).astype(np.float32) for r in range(ranks)]
    kernel = one_shot.specialize(slots=2 * ranks, n=256)
    print(kernel.check(ranks=ranks))
    report = kernel.simulate(ranks, {"x": x}, launches=3, fuzz=20)
    print(report)
    for y in report["y"]:
        np.testing.assert_array_equal(y, sum(x))


if __name__ == "__main__":
    main()
