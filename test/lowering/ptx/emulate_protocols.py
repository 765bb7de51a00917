"""Emulates the PTX of random programs whose blocks pass memory to each other (protocols.py).

emulate_protocols.py [--seed S] [--count N] [--show]

Compares every bit with the CPU world. The emulated memory is as late as PTX allows, and so reveals any missing order
in the lowering.
"""

import random
import sys

import draws
import protocols


def draw(lots: random.Random) -> draws.Draw:
    ranks, blocks = lots.choice([(1, 2), (2, 1), (2, 1), (2, 2), (3, 1), (4, 1)])
    chip = lots.choice(["sm_80", "sm_90", "sm_90", "sm_100"])
    cluster = 1 if chip == "sm_80" else lots.choice([1, 1, 1, 2])
    options = f"blocks={blocks} threads={lots.choice([32, 64])} cluster={cluster} chip={chip}"
    text = protocols.Program(lots, ranks, blocks, multicast=chip != "sm_80").text()

    # Late memory of a cluster takes too long.
    return draws.Draw(text, ranks, options, weak=cluster == 1)


if __name__ == "__main__":
    sys.exit(draws.main(__doc__, draw, continues=True))
