"""Emulates the PTX of random programs of one block (programs.py) and compares every bit with the CPU world.

emulate_programs.py [--seed S] [--count N] [--show]

Half of the programs run on two ranks, which take different branches and never synchronize.
"""

import random
import sys

import draws
import programs


def draw(lots: random.Random) -> draws.Draw:
    ranks, chip = lots.choice([1, 2]), lots.choice(["sm_80", "sm_90", "sm_90", "sm_100"])
    cluster = 1 if chip == "sm_80" else lots.choice([1, 1, 2, 4])
    options = f"blocks=1 threads={lots.choice([32, 64, 128])} cluster={cluster} chip={chip}"
    program = programs.Program(lots, ranks, cluster)
    text = program.text()
    # Late memory of a cluster takes long.
    weak = lots.random() < (0.3 if cluster == 1 else 0.7 if cluster == 2 and not program.deepest else 0)
    return draws.Draw(text, ranks, options, weak)


if __name__ == "__main__":
    sys.exit(draws.main(__doc__, draw, continues=False))
