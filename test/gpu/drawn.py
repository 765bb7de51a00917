"""Random programs as cases: those that the emulator of PTX draws, too, on what it can only model."""

import random
import re
import sys

from cases import ROOT, Cases

sys.path.append(str(ROOT / "test/lowering/ptx"))

import programs
import protocols

#: Programs of each kind at the quick level; ten times as many at the full one.
QUICK = 12
OUTPUTS = ("left", "seen")  # What a program of one block leaves: its first values do not count.


def add_drawn(cases: Cases) -> None:
    """Programs of one rank, and of all numbers of ranks up to 4 whose blocks hand memory to each other."""
    for number in range(QUICK * (10 if cases.full else 1)):
        for ranks in [0, 1, *(n for n in cases.ranks if 1 < n <= 4)]:
            lots = random.Random(1_000 * number + ranks)
            if ranks:
                blocks = lots.choice([2, 3] if ranks == 1 else [1, 2])
                text, kind = protocols.Program(lots, ranks, blocks, multicast=False).text(), "hands on"
            else:
                text, kind = programs.Program(lots, 1, 1).text(), "one block"
            threads = lots.choice([32, 32, 64, 128])
            memory = re.findall(r"%(\w+): (?:!comms\.window|memref)", text.partition("{")[0])
            arrays = [name for name in memory if name not in OUTPUTS]
            cases.add(
                name=f"drawn {kind} {number} r{max(ranks, 1)} t{threads}",
                group="drawn",
                source=cases.source(text),
                ranks=max(ranks, 1),
                inputs=[f"{name}=random:{number + 1}" for name in arrays],
                outputs=memory,
                common=["--launches", "2"],
                cuda=["--threads", str(threads)],
            )
