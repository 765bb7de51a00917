"""Random programs as cases: the programs of the PTX emulator's tests, on real GPUs."""

import pathlib
import random
import re
import sys
from collections.abc import Sequence

import numpy as np
from cases import ROOT, Cases
from shipped import lacks_types

sys.path += [str(ROOT / "test/lowering/ptx"), str(ROOT / "test/exec")]

import programs
import protocols

#: Programs of each kind at the quick level; ten times as many at the full one.
QUICK = 12
OUTPUTS = ("left", "seen")  # What a program of one block leaves: its first values do not count.


def add_drawn(cases: Cases) -> None:
    """Programs of one rank, and of all numbers of ranks up to 4 whose blocks hand memory to each other."""
    for number in range(QUICK * (10 if cases.full else 1)):
        if not lacks_types():
            add_arithmetic(cases, number)
            for ranks in [1, *(n for n in cases.ranks if 1 < n <= 4)]:
                add_region(cases, number, ranks)
        for ranks in [0, 1, *(n for n in cases.ranks if 1 < n <= 4)]:
            lots = random.Random(1_000 * number + ranks)
            if ranks:
                blocks = lots.choice([2, 3] if ranks == 1 else [1, 2])
                text, kind = protocols.Program(lots, ranks, blocks, multicast=False).text(), "hands on"
            else:
                text, kind = programs.Program(lots, 1, 1).text(), "one block"
            memory = re.findall(r"%(\w+): (?:!comms\.window|memref)", text.partition("{")[0])
            inputs = [f"{name}=random:{number + 1}" for name in memory if name not in OUTPUTS]
            add(cases, f"{kind} {number}", text, max(ranks, 1), inputs, memory, lots)


def add_arithmetic(cases: Cases, number: int) -> None:
    """Each op of many types, also on NaN and infinities. Inputs are made by ml_dtypes."""
    import expressions

    lots = random.Random(number)
    program = expressions.Program(lots)
    folder = pathlib.Path(cases.folder) / f"arithmetic{number}"
    folder.mkdir()
    inputs = []
    for name, array in program.inputs(np.random.default_rng(number)).items():
        np.save(folder / f"{name}.npy", array)
        inputs.append(f"{name}={folder / f'{name}.npy'}")
    outputs = [name for name in program.sizes() if name[0] != "x"]
    add(cases, f"arithmetic {number}", program.text(), 1, inputs, outputs, lots)


def add_region(cases: Cases, number: int, ranks: int) -> None:
    """The same in a region of a collective, in a way that any collective takes."""
    import regions

    lots = random.Random(1_000 * number + ranks)
    program = regions.Program(lots, ranks)
    folder = pathlib.Path(cases.folder) / f"region{number}-{ranks}"
    folder.mkdir()
    inputs = []
    for name, arrays in program.inputs(np.random.default_rng(number)).items():
        for rank, array in enumerate(arrays):
            np.save(folder / f"{name}-{rank}.npy", array)
        inputs.append(f"{name}={folder}/{name}-%r.npy")
    outputs = [name for name in program.shapes() if name[0] == "y"]
    algorithm, protocol = lots.choice(program.safe_ways())
    way = ["--algorithm", algorithm] * bool(algorithm)
    way += ["--protocol", protocol, "--blocks", str(lots.choice([1, 2, 5]))]
    said = f"region {number} {program.collective} {' '.join(way[1::2])}"
    add(cases, said, program.text(), ranks, inputs, outputs, lots, way)


def add(
    cases: Cases,
    name: str,
    text: str,
    ranks: int,
    inputs: list[str],
    outputs: list[str],
    lots: random.Random,
    way: Sequence[str] = (),
) -> None:
    threads = lots.choice([32, 32, 64, 128])
    cases.add(
        name=f"drawn {name} r{ranks} t{threads}",
        group="drawn",
        source=cases.source(text),
        ranks=ranks,
        inputs=inputs,
        outputs=outputs,
        common=["--launches", "2", *way],
        cuda=["--threads", str(threads)],
    )
