"""Emulates the PTX of collectives with random regions (test/exec/regions.py) and compares every bit with the CPU world.

emulate_regions.py [--seed S] [--count N] [--show]
"""

import pathlib
import random
import sys

import draws

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "exec"))

import regions  # noqa: E402

regions.LENGTHS = [1, 2, 7, 16, 33, 64, 129]  # Of short rows more are emulated in the same time.


def draw(lots: random.Random) -> draws.Draw:
    program = regions.Program(lots, lots.choice([1, 2, 2, 3]))
    chip, threads = lots.choice(["sm_80", "sm_90", "sm_90", "sm_100"]), lots.choice([32, 64, 128])
    cluster = 1 if chip == "sm_80" else lots.choice([1, 1, 1, 2])
    algorithm, protocol = lots.choice(program.safe_ways())
    options = f"blocks={lots.choice([1, 1, 2])} threads={threads} cluster={cluster} chip={chip} protocol={protocol}"
    options += f" algorithm={algorithm}" * bool(algorithm)
    return draws.Draw(program.text(), program.ranks, options, weak=False)


if __name__ == "__main__":
    sys.exit(draws.main(__doc__, draw, continues=False))
