"""Runs random programs in the PTX emulator, seed after seed, until one has other bits than on the CPU."""

import argparse
import pathlib
import random
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import emulate
import emulator
import memory


class Draw(NamedTuple):
    """A program, and how it is run: its ranks, options of comms-to-nvvm, over weak memory or not."""

    text: str
    ranks: int
    options: str
    weak: bool


def main(description: str | None, draw: Callable[[random.Random], Draw], continues: bool) -> int:
    """The program of a test: its options, and its exit status. `continues`: launches continue with what there is."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print the programs alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mlir"
        for number in range(arguments.seed * 1_000_003, arguments.seed * 1_000_003 + arguments.count):
            text, ranks, options, weak = draw(random.Random(number))
            said = f"number {number}, {ranks} ranks, {options}{', weak' * weak}"
            if arguments.show:
                print(f"// {said}\n{text}")
                continue
            path.write_text(text)
            try:
                pair = emulate.Comparison(str(path), ranks, options, number, weak)
                pair.run(emulator.parse(pair.ptx), 2, continues)
            except (memory.Fault, SystemExit, NotImplementedError) as fault:
                print(f"{said}: {fault!r}\n{text}")
                return 1
    print(f"{arguments.count} programs: the same bits as on the CPU")
    return 0
