"""Emulates the PTX of random arithmetic (test/exec/expressions.py) and compares every bit with the CPU world.

emulate_expressions.py [--seed S] [--count N] [--show]
"""

import pathlib
import random
import sys

import draws

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "exec"))

import expressions  # noqa: E402


def draw(lots: random.Random) -> draws.Draw:
    chip, threads = lots.choice(["sm_80", "sm_90", "sm_90", "sm_100"]), lots.choice([1, 32, 64])
    text = expressions.Program(lots, steps=25).text()
    return draws.Draw(text, 1, f"blocks=1 threads={threads} chip={chip}", weak=False)


if __name__ == "__main__":
    sys.exit(draws.main(__doc__, draw, continues=False))
