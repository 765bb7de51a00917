"""A deadlock that the checker finds, with the line, and that a run ends with instead of hanging.

Only even ranks signal; all ranks wait for every other rank.
"""

from __future__ import annotations

import commsir
from commsir import Array, Signal, epoch, i64, signal, team, wait_signal


@commsir.kernel
def deadlock(arrived: i64[Signal, 1], y: i64[Array, 1]) -> None:
    world = team()
    if world.rank % 2 == 0:
        for peer in world.peers():
            signal(arrived[0], peer)
    wait_signal(arrived[0], ge=epoch() * (world.size - 1))
    y[0] = 1


def main(ranks: int = 4) -> None:
    try:
        deadlock.check(ranks=ranks)
    except commsir.CheckError as error:
        print(error)
    try:
        deadlock.simulate(ranks, check=False)
    except commsir.DeadlockError as error:
        print(error)


if __name__ == "__main__":
    main()
