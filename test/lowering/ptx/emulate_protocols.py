"""Emulates the PTX of random programs whose blocks hand memory to each other (protocols.py) and compares every bit with
the CPU world.

emulate_protocols.py [--seed S] [--count N] [--show]

Memory that comes as late as PTX allows shows each order that the lowering forgets.
"""

import argparse
import pathlib
import random
import sys
import tempfile

import emulate
import emulator
import memory
import protocols


def shape(lots: random.Random, blocks: int) -> tuple[int, str]:
    chip = lots.choice(["sm_80", "sm_90", "sm_90", "sm_100"])
    cluster = 1 if chip == "sm_80" else lots.choice([1, 1, 1, 2])
    return cluster, f"blocks={blocks} threads={lots.choice([32, 64])} cluster={cluster} chip={chip}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print the programs alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mlir"
        for number in range(arguments.seed * 1_000_003, arguments.seed * 1_000_003 + arguments.count):
            lots = random.Random(number)
            ranks, blocks = lots.choice([(1, 2), (2, 1), (2, 1), (2, 2), (3, 1)])
            cluster, options = shape(lots, blocks)
            weak = cluster == 1
            text = protocols.Program(lots, ranks, blocks).text()
            if arguments.show:
                print(f"// number {number}, {ranks} ranks, {options}\n{text}")
                continue
            path.write_text(text)
            try:
                pair = emulate.Comparison(str(path), ranks, options, number, weak)
                pair.run(emulator.parse(pair.ptx), 2, True)
            except (memory.Fault, SystemExit, NotImplementedError) as fault:
                print(f"number {number}, {ranks} ranks, {options}{', weak' * weak}: {fault!r}\n{text}")
                return 1
    print(f"{arguments.count} programs: the same bits as on the CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
