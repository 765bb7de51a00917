"""Emulates the PTX of random programs of one block (programs.py) and compares every bit with the CPU world.

emulate_programs.py [--seed S] [--count N]

Half of the programs run on two ranks, which go different ways and never meet.
"""

import argparse
import pathlib
import random
import sys
import tempfile

import emulate
import emulator
import memory
import programs


def shape(lots: random.Random) -> tuple[int, str]:
    chip = lots.choice(["sm_80", "sm_90", "sm_90", "sm_100"])
    cluster = 1 if chip == "sm_80" else lots.choice([1, 1, 2, 4])
    return cluster, f"blocks=1 threads={lots.choice([32, 64, 128])} cluster={cluster} chip={chip}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mlir"
        for number in range(arguments.seed * 1_000_003, arguments.seed * 1_000_003 + arguments.count):
            lots = random.Random(number)
            ranks, (cluster, options) = lots.choice([1, 2]), shape(lots)
            weak = cluster == 1 and lots.random() < 0.3  # Late memory of a cluster takes too long.
            text = programs.Program(lots, ranks, cluster).text()
            path.write_text(text)
            try:
                pair = emulate.Comparison(str(path), ranks, options, number, weak)
                pair.run(emulator.parse(pair.ptx), 2, False)
            except (memory.Fault, SystemExit, NotImplementedError) as fault:
                print(f"number {number}, {ranks} ranks, {options}{', weak' * weak}: {fault!r}\n{text}")
                return 1
    print(f"{arguments.count} programs: the same bits as on the CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
