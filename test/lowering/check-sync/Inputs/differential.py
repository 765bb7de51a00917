"""Looks for kernels that the checker accepts and that can hang or race.

Usage: differential.py [--seed S] [--programs N] [--schedules K] [--jobs J] [--chains] [--keep FOLDER] [--alarms]

Takes correct programs of signals, packets, poison, barriers, fences, puts, gets, counters, channels and accesses to
single elements, by load and store, by GIN and by the switch, through views, in loops whose count is data, and in roles,
written for each rank and block, and changes a few of their ops: it deletes, duplicates, swaps, weakens or redirects
them. Some programs are written once for all blocks, with places and cells that depend on the block's number. An
implementation of the memory model that shares nothing with the checker runs each under random schedules, launch after
launch, with the clocks of the values that were actually read. It looks for deadlocks, for races, and for loads that
see other packets or tiles in other schedules. Unordered writes of a cell, packet or element come in any order, and
reads take any value that they may take (M13). A program that the checker accepts must pass all schedules, and must
still be accepted after redundant barriers are removed. --chains draws only programs in which a write follows another
through a chain of messages. --jobs is the number of processes. --alarms prints the programs that the checker refuses
although no schedule fails.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

LAUNCHES = 3
WIDTH = 16  # elements of a tile
PLACES = 4  # tiles of a window
CELLS = 4
CONTEXTS = 2  # of GIN
SLOTS = 2  # of a channel
Template = Callable[[random.Random, int], dict[int, list["Op"]]]
Thread = tuple[int, ...]  # rank and block; an adapter's way: context, peer and whether for gets, too
Place = tuple[int, ...]  # rank and tile of a window; of a channel, also the source, the slot and the buffer
ALIAS = (-1,)  # before a thread: what a fence of proxy alias has passed on


@dataclasses.dataclass(frozen=True)
class Op:
    """One op of one block. A value is `a * launch + b`; a place is the tile `(b + a * (launch % 2))`."""

    kind: str
    peer: int = 0
    at: int = 0  # place, cell or first packet
    a: int = 0
    b: int = 0
    order: str = ""
    scope: str = "sys"
    how: str = ""  # inc, set, add; ge, eq; block, grid
    place: int = 0  # of a put's source, or the destination of a get
    via: int = -1  # a context of GIN; -1: by load and store
    counter: int = -1  # a put's, or none
    base: int = 0  # first of the places that `at` counts from
    stripe: str = ""  # of all blocks: own, first, next, half; whose places and cells a block takes
    only: tuple[str, int] | None = None  # of all blocks: those below, at, or of this remainder by two
    often: bool = False  # as often as data of the rank say, 0 to 3 times
    viewed: bool = False  # through a view of the part

    def value(self, launch: int) -> int:
        return self.a * launch + self.b

    def tile(self, launch: int) -> int:
        return self.base + (self.at + self.a * (launch % 2)) % PLACES

    def slot(self, launch: int) -> int:
        """Of poison: one of `a` buffers."""
        return self.base + (self.at + (launch + self.b) % max(self.a, 1)) % PLACES

    def of_block(self, block: int, blocks: int) -> "Op":
        """The same as that block does it."""
        lane = {"own": block, "first": 0, "next": (block + 1) % blocks, "half": block // 2}[self.stripe]
        if self.kind in ("send", "recv", "close"):  # Block b meets blocks b.
            return self
        if self.kind in ("fill", "poison", "take", "spread", "combine"):
            return dataclasses.replace(self, base=PLACES * lane)
        if self.kind in ("store", "load", "put", "get", "read", "write", "copy"):
            counter = self.counter if self.counter < 0 else self.counter + CELLS * lane
            return dataclasses.replace(self, base=PLACES * lane, place=self.place + PLACES * lane, counter=counter)
        counter = self.counter if self.counter < 0 else self.counter + CELLS * lane
        return dataclasses.replace(self, at=self.at + CELLS * lane, counter=counter)

    def is_of(self, block: int) -> bool:
        if self.only is None:
            return True
        how, number = self.only
        return {"below": block < number, "at": block == number, "even": block % 2 == number % 2}[how]


@dataclasses.dataclass
class Program:
    ranks: int
    blocks: int
    ops: dict[Thread, list[Op]]
    # Written once for all blocks: the ops of each rank, as its block 0.
    striped: dict[Thread, list[Op]] | None = None
    # Blocks are told apart by roles, not by conditions.
    roles: bool = False
    # The kernel states packets_cumulative (M25).
    assumes: bool = False
    # Of its channel.
    protocol: str = "ll"

    def stripes(self) -> int:
        return 1 if self.striped is None else self.blocks

    def uses(self, *kinds: str) -> bool:
        return any(op.kind in kinds for ops in self.ops.values() for op in ops)

    def threads(self) -> list[Thread]:
        return [(rank, block) for rank in range(self.ranks) for block in range(self.blocks)]


# Right programs ------------------------------------------------------------------------------------------------------


def message(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Everybody stores to its successor, signals and waits."""
    fence = random_.random() < 0.4
    order = "relaxed" if fence else "release"
    wait = "relaxed" if random_.random() < 0.3 else "acquire"
    how = random_.choice(["inc", "set"])
    cell = random_.randrange(CELLS)
    ops = {}
    for rank in range(ranks):
        to = (rank + 1) % ranks
        mine = [Op("store", to, 0)] if random_.random() < 0.6 else [Op("put", to, 0, place=1)]
        mine += [Op("fence", order="release")] if fence else []
        mine += [Op("signal", to, cell, 1, 0, order, how=how)]
        mine += [Op("wait", 0, cell, 1, 0, wait, how="ge")]
        mine += [Op("fence", order="acquire")] if wait == "relaxed" else []
        mine += [Op("load", rank, 0), Op("barrier", order="acq_rel", how="block")]
        ops[rank] = mine
    return ops


def gather(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Everybody stores to rank 0, which counts the signals; its answer lets them go on."""
    ops: dict[int, list[Op]] = {}
    own = random_.random() < 0.5
    for rank in range(1, ranks):
        ops[rank] = [
            Op("store", 0, rank % PLACES),
            Op("signal", 0, rank if own else 0, 1, 0, "release", how="inc"),
            Op("wait", 0, 3, 1, 0, "acquire", how="ge"),
        ]
    waits = (
        [Op("wait", 0, rank, 1, 0, "acquire", how="ge") for rank in range(1, ranks)]
        if own
        else [Op("wait", 0, 0, ranks - 1, 0, "acquire", how="ge")]
    )
    ops[0] = waits + [Op("load", 0, rank % PLACES) for rank in range(1, ranks)]
    ops[0] += [Op("signal", rank, 3, 1, 0, "release", how="inc") for rank in range(1, ranks)]
    return ops


def rounds(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Two rounds through one place: the receiver answers before it is written again."""
    ops = {}
    how = random_.choice(["inc", "set"])
    for rank in range(ranks):
        to, of = (rank + 1) % ranks, (rank - 1) % ranks
        mine: list[Op] = []
        for turn in range(2):
            if turn or random_.random() < 0.3:
                mine.append(Op("wait", 0, 1, 2, -2 + turn, "acquire", how="ge"))
            mine.append(Op("store", to, 0))
            mine.append(Op("signal", to, 0, 2, turn - 1, "release", how=how))
            mine.append(Op("wait", 0, 0, 2, turn - 1, "acquire", how="ge"))
            mine.append(Op("load", rank, 0))
            mine.append(Op("signal", of, 1, 2, turn - 1, "release", how=how))
        ops[rank] = mine + [Op("barrier", order="acq_rel", how="block")]
    return ops


def buffers(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Two buffers by launch, no barrier: each hears from those that it writes to."""
    ops = {}
    for rank in range(ranks):
        others = [peer for peer in range(ranks) if peer != rank]
        mine = [Op("store", peer, 2 * (rank % 2), 1) for peer in others] if ranks == 2 else []
        mine += [Op("signal", peer, rank % CELLS, 1, 0, "release", how="inc") for peer in others]
        mine += [Op("wait", 0, peer % CELLS, 1, 0, "acquire", how="ge") for peer in others]
        mine += [Op("load", rank, 2 * (peer % 2), 1) for peer in others] if ranks == 2 else []
        ops[rank] = mine
    return ops


def packets(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Packets to the successor; fences make signals of them, or not needed."""
    data = random_.random() < 0.5
    ops = {}
    for rank in range(ranks):
        to = (rank + 1) % ranks
        mine = [Op("store", to, 2), Op("fence", order="release")] if data else []
        mine += [Op("packet", to, 0, 1, 0)]
        mine += [Op("receive", rank, 0, 1, 0)]
        mine += [Op("fence", order="acquire"), Op("load", rank, 2)] if data else []
        ops[rank] = mine + [Op("barrier", order="acq_rel", how="block")]
    return ops


def pulls(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Everybody writes its own part, all read it between two barriers."""
    ops = {}
    for rank in range(ranks):
        mine = [Op("store", rank, 1), Op("barrier", order="acq_rel", how="block")]
        copies = random_.random() < 0.3
        mine += [Op("copy", peer, 1, place=2) if copies else Op("load", peer, 1) for peer in range(ranks)]
        ops[rank] = mine + [Op("barrier", order="acq_rel", how="block")]
    return ops


def resets(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Counts from zero in each launch, with a reset between two barriers."""
    ops = {}
    for rank in range(ranks):
        to = (rank + 1) % ranks
        ops[rank] = [
            Op("store", to, 3),
            Op("signal", to, 2, 0, 1, "release", how="inc"),
            Op("wait", 0, 2, 0, 1, "acquire", how=random_.choice(["ge", "eq"])),
            Op("load", rank, 3),
            Op("reset", 0, 2),
            Op("barrier", order="acq_rel", how="block"),
        ]
    return ops


def far(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """A chain: the last rank reads what the first wrote, by way of all."""
    ops: dict[int, list[Op]] = {0: [Op("store", ranks - 1, 0)]}
    for rank in range(ranks):
        mine = ops.setdefault(rank, [])
        if rank:
            mine.append(Op("wait", 0, 0, 1, 0, "acquire", how="ge"))
        if rank + 1 < ranks:
            mine.append(Op("signal", rank + 1, 0, 1, 0, "release", how="inc"))
    ops[ranks - 1].append(Op("load", ranks - 1, 0))
    for rank in range(ranks):
        ops[rank].append(Op("barrier", order="acq_rel", how="block"))
    return ops


def overtakes(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Rank 0 counts a signal of all; later ones of the last rank come only when it has."""
    last = ranks - 1
    ops: dict[int, list[Op]] = {rank: [Op("store", 0, rank % PLACES)] for rank in range(1, ranks)}
    for rank in range(1, ranks):
        ops[rank].append(Op("signal", 0, 0, ranks, -1, "release", how="inc"))
    ops[last] += [Op("wait", 0, 1, 1, 0, "acquire", how="ge"), Op("signal", 0, 0, 0, 1, "release", how="inc")]
    ops[0] = [Op("wait", 0, 0, ranks, -1, "acquire", how="ge")]
    ops[0] += [Op("load", 0, rank % PLACES) for rank in range(1, ranks)]
    ops[0] += [Op("signal", last, 1, 1, 0, "release", how="inc"), Op("wait", 0, 0, ranks, 0, "acquire", how="ge")]
    for rank in range(ranks):
        ops[rank].append(Op("barrier", order="acq_rel", how="block"))
    return ops


def puts(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Two puts from one source to one place, a flush and a release between them."""
    ops = {}
    for rank in range(ranks):
        to = (rank + 1) % ranks
        mine: list[Op] = []
        for turn in range(2):
            mine += [Op("store", rank, 1), Op("put", to, 2, place=1), Op("flush")]
            mine += [Op("signal", to, 1, 2, turn - 1, "release", how="inc")]
        mine += [Op("wait", 0, 1, 2, 0, "acquire", how="ge"), Op("load", rank, 2)]
        ops[rank] = mine + [Op("barrier", order="acq_rel", how="block")]
    return ops


def adapters(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Puts by GIN to the successor, in one context or two, each with its signal."""
    ops = {}
    ways = random_.choice([[0], [1], [0, 1]])
    for rank in range(ranks):
        to = (rank + 1) % ranks
        mine: list[Op] = []
        for at, via in enumerate(ways):
            mine += [Op("write", rank, 2 + at), Op("put", to, at, place=2 + at, via=via)]
            mine += [Op("signal", to, at, 1, 0, "release", how="inc", via=via)]
        mine += [Op("flush", via=via) for via in ways]
        mine += [Op("store", rank, 2)] if random_.random() < 0.5 else []
        for at in range(len(ways)):
            mine += [Op("wait", 0, at, 1, 0, "acquire", how="ge"), Op("load", rank, at)]
        ops[rank] = mine + [Op("barrier", order="acq_rel", how="block")]
    return ops


def answers(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """A put by GIN whose source is free when the peer has answered, or it was counted."""
    ops = {}
    counted = random_.random() < 0.5
    for rank in range(ranks):
        to, of = (rank + 1) % ranks, (rank - 1) % ranks
        mine = [Op("put", to, 0, place=1, via=0, counter=0 if counted else -1)]
        mine += [Op("signal", to, 0, 1, 0, "release", how="inc", via=0)]
        mine += [Op("wait", 0, 0, 1, 0, "acquire", how="ge"), Op("read", rank, 0)]
        if counted:
            mine += [Op("count", 0, 0, 1, 0)]
        else:
            mine += [Op("signal", of, 1, 1, 0, "release", how="inc"), Op("wait", 0, 1, 1, 0, "acquire", how="ge")]
        ops[rank] = [*mine, Op("store", rank, 1), Op("barrier", order="acq_rel", how="block")]
    return ops


def gets(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Everybody gets what the next rank has written, by GIN or by loads, and shows it to all."""
    ops = {}
    via = random_.choice([-1, 0, 1])
    barrier = Op("barrier", order="acq_rel", how="block")
    for rank in range(ranks):
        to = (rank + 1) % ranks
        mine = [Op("write", rank, 1), barrier, Op("get", to, 1, place=0, via=via), Op("flush", via=via), barrier]
        ops[rank] = [*mine, Op("read", to, 0), Op("copy", rank, 0, place=3), barrier]
    return ops


def tells(random_: random.Random, way: list[int], cell: int, value: tuple[int, int]) -> dict[int, list[Op]]:
    """The first rank of `way` tells the last, each rank the next: by signals or packets, most often in order."""
    ops: dict[int, list[Op]] = {rank: [] for rank in way}
    a, b = value
    for of, to in itertools.pairwise(way):
        how = random_.choice(["release", "release", "fence", "packet", "relaxed"])
        fenced = how in ("fence", "packet") and random_.random() < 0.8
        if fenced:
            ops[of].append(Op("fence", order=random_.choice(["release", "acq_rel"])))
        if how == "packet":
            ops[of].append(Op("packet", to, cell, a, b))
            ops[to].append(Op("receive", to, cell, a, b))
        else:
            ops[of].append(Op("signal", to, cell, a, b, "release" if how == "release" else "relaxed", how="set"))
            ops[to].append(Op("wait", 0, cell, a, b, "acquire" if how == "release" else "relaxed", how="ge"))
        if fenced:
            ops[to].append(Op("fence", order=random_.choice(["acquire", "acq_rel"])))
    return ops


def lamports(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """A ring over poison in three buffers: each fills in launch k what it took in launch k - 1, or after the load."""
    ops = {}
    barrier, late = random_.random() < 0.5, random_.random() < 0.3
    for rank in range(ranks):
        fill = Op("fill", rank, 0, 3, 0 if late else 2)
        mine = [Op("poison", (rank + 1) % ranks, 0, 3, 0), Op("take", rank, 0, 3, 0)]
        mine = [*mine, fill] if late else [mine[0], fill, mine[1]]
        ops[rank] = [*mine, Op("barrier", order="acq_rel", how="block")] if barrier else mine
    return ops


def refills(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """The receiver fills what it took; the sender hears of it, perhaps by other ranks, and stores again."""
    receiver = random_.randrange(ranks)
    others = [rank for rank in range(ranks) if rank != receiver]
    random_.shuffle(others)
    sender, relays = others[0], others[1 : random_.choice([1, 2, ranks])]
    ops: dict[int, list[Op]] = {rank: [] for rank in range(ranks)}
    for turn in range(2):
        ops[sender].append(Op("poison", receiver, 0, 1, 0))
        ops[receiver] += [Op("take", receiver, 0, 1, 0), Op("fill", receiver, 0, 1, 0)]
        if turn == 0 or random_.random() < 0.3:
            for rank, more in tells(random_, [receiver, *relays, sender], 2 + turn, (1, 0)).items():
                ops[rank] += more
    for rank in range(ranks):
        ops[rank].append(Op("barrier", order="acq_rel", how="block"))
    return ops


def handovers(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """One rank writes a cell or a packet, its owner tells another, and that writes it again."""
    owner, first, second = (random_.sample(range(ranks), 3) if ranks > 2 else [1, 0, 0])[:3]
    ops: dict[int, list[Op]] = {rank: [] for rank in range(ranks)}
    by_packet, ordered = random_.random() < 0.5, random_.random() < 0.5

    def write(rank: int, b: int) -> None:
        if by_packet:
            ops[rank].append(Op("packet", owner, 0, 2, b))
            ops[owner].append(Op("receive", owner, 0, 2, b))
        else:
            order, wait = ("release", "acquire") if ordered else ("relaxed", "relaxed")
            ops[rank].append(Op("signal", owner, 0, 2, b, order, how=random_.choice(["set", "set", "inc"])))
            ops[owner].append(Op("wait", 0, 0, 2, b, wait, how="ge"))

    write(first, -1)
    others = [rank for rank in range(ranks) if rank not in (owner, second)]
    way = [owner, *others[: random_.choice([0, 0, 1])], second]
    for rank, more in tells(random_, way, 1, (1, 0)).items():
        ops[rank] += more
    write(second, 0)
    for rank in range(ranks):
        ops[rank].append(Op("barrier", order="acq_rel", how="block"))
    return ops


def exchanges(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """Tiles through a channel to all others, or to the next rank with a barrier behind."""
    ring, slots = random_.random() < 0.5, random_.choice([1, 1, SLOTS])
    ops = {}
    for rank in range(ranks):
        others = [peer for peer in range(ranks) if peer != rank]
        targets, sources = ([(rank + 1) % ranks], [(rank - 1) % ranks]) if ring else (others, others)
        mine = [Op("send", peer, slot) for peer in targets for slot in range(slots)]
        mine.append(Op("close", order="acq_rel", how="channel"))
        mine += [Op("recv", peer, slot) for peer in sources for slot in range(slots)]
        ops[rank] = [*mine, Op("barrier", order="acq_rel", how="block")] if ring else mine
    return ops


def switches(random_: random.Random, ranks: int) -> dict[int, list[Op]]:
    """The switch brings a tile to all ranks, or adds up what all have stored."""
    barrier, alias = Op("barrier", order="acq_rel", how="block"), Op("alias")
    ops = {}
    spreads = random_.random() < 0.5
    meets = random_.choice([[alias, barrier], [barrier, alias]])
    for rank in range(ranks):
        if spreads:
            mine = [Op("spread", at=rank % PLACES), *meets]
            mine += [Op("load", rank, peer % PLACES) for peer in range(ranks)]
        else:
            mine = [Op("store", rank, 1), *meets, Op("combine", at=1)]
        ops[rank] = [*mine, barrier]
    return ops


CHAINS = [lamports, refills, handovers]
TEMPLATES = [
    *CHAINS,
    message,
    gather,
    rounds,
    buffers,
    packets,
    pulls,
    resets,
    far,
    overtakes,
    puts,
    adapters,
    answers,
    gets,
    exchanges,
    switches,
]

#: Ops that may be repeated as often as data say, and those that may go through a view.
REPEATED = ("store", "load", "read", "write", "copy")
VIEWED = ("store", "load", "read", "write")


def varied(random_: random.Random, ops: dict[Thread, list[Op]]) -> dict[Thread, list[Op]]:
    """Some accesses through views, and some as often as data say."""
    views, loops = random_.random() < 0.3, random_.random() < 0.25
    return {
        thread: [
            dataclasses.replace(
                op,
                viewed=views and op.kind in VIEWED and random_.random() < 0.5,
                often=loops and op.kind in REPEATED and random_.random() < 0.4,
            )
            for op in mine
        ]
        for thread, mine in ops.items()
    }


def make(random_: random.Random, templates: Sequence[Template]) -> Program:
    ranks = random_.choice([2, 2, 3, 3, 4])
    blocks = random_.choice([1, 1, 2])
    ops: dict[Thread, list[Op]] = {}
    for block in range(blocks):
        # Blocks that touch the same places and cells meet only now and then.
        parts = [random_.choice(templates)(random_, ranks) for _ in range(random_.choice([1, 1, 2]))]
        for rank in range(ranks):
            ops[rank, block] = [op for part in parts for op in part.get(rank, [])]
    if blocks == 2 and random_.random() < 0.5:
        # Block 0 tells block 1 of its own rank.
        scope = random_.choice(["sys", "gpu"])
        for rank in range(ranks):
            ops[rank, 0] += [Op("store", rank, 3), Op("fence", order="release", scope=scope)]
            ops[rank, 0] += [Op("signal", rank, 3, 1, 0, "relaxed", how="set")]
            ops[rank, 1] += [Op("wait", 0, 3, 1, 0, "relaxed", how="ge"), Op("fence", order="acquire", scope=scope)]
            ops[rank, 1] += [Op("load", rank, 3)]
    roles, assumes = blocks == 2 and random_.random() < 0.4, random_.random() < 0.3
    protocol = random_.choice(["ll", "push", "pull"])
    return Program(ranks, blocks, varied(random_, ops), roles=roles, assumes=assumes, protocol=protocol)


def spread(ops: dict[Thread, list[Op]], ranks: int, blocks: int) -> Program:
    """All blocks do what `ops` has for block 0."""
    every: dict[Thread, list[Op]] = {
        (rank, block): [op.of_block(block, blocks) for op in ops[rank, 0] if op.is_of(block)]
        for rank in range(ranks)
        for block in range(blocks)
    }
    return Program(ranks, blocks, every, ops)


def make_striped(random_: random.Random) -> Program:
    """One of blocks that do the same in places of their own, changed here and there."""
    ranks, blocks = random_.choice([2, 2, 3]), random_.choice([4, 5, 6])
    parts = [random_.choice(TEMPLATES)(random_, ranks) for _ in range(random_.choice([1, 1, 2]))]
    ops: dict[Thread, list[Op]] = {
        (rank, 0): [dataclasses.replace(op, stripe="own") for part in parts for op in part.get(rank, [])]
        for rank in range(ranks)
    }
    for _ in range(random_.choice([0, 0, 1, 1, 2])):
        change(random_, Program(ranks, 1, ops))
    for _ in range(random_.choice([0, 0, 1, 2])):
        mine = ops[random_.randrange(ranks), 0]
        if not mine:
            continue
        index = random_.randrange(len(mine))
        if random_.random() < 0.6:
            mine[index] = dataclasses.replace(mine[index], stripe=random_.choice(["first", "next", "half"]))
        else:
            only = random_.choice(["below", "at", "even"]), random_.randrange(1, blocks)
            mine[index] = dataclasses.replace(mine[index], only=only)
    if random_.random() < 0.15:
        # The same blocks of all ranks do it, or do without.
        only = random_.choice(["below", "at", "even"]), random_.randrange(1, blocks)
        ops = {thread: [dataclasses.replace(op, only=only) for op in mine] for thread, mine in ops.items()}
    if random_.random() < 0.1:
        # All blocks are moved on by one.
        ops = {thread: [dataclasses.replace(op, stripe="next") for op in mine] for thread, mine in ops.items()}
    return spread(ops, ranks, blocks)


# Changes -------------------------------------------------------------------------------------------------------------


def change(random_: random.Random, program: Program) -> None:
    thread = random_.choice([thread for thread in program.threads() if program.ops[thread]] or [(0, 0)])
    ops = program.ops[thread]
    if not ops:
        return
    index = random_.randrange(len(ops))
    op = ops[index]
    what = random_.choice(["delete", "delete", "double", "swap", "swap", "borrow", *["weaken"] * 6])
    if what == "delete":
        del ops[index]
    elif what == "double":
        ops.insert(random_.randrange(len(ops) + 1), op)
    elif what == "swap":
        other = random_.randrange(len(ops))
        ops[index], ops[other] = ops[other], ops[index]
    elif what == "borrow":
        others = program.ops[random_.choice(program.threads())]
        ops[index:index] = random_.sample(others, min(len(others), 1))
    else:
        ops[index] = weakened(random_, program, op)


ORDERS = {
    "signal": ["relaxed", "release"],
    "wait": ["relaxed", "acquire"],
    "barrier": ["relaxed", "release", "acquire", "acq_rel"],
    "fence": ["release", "acquire", "acq_rel"],
}


def weakened(random_: random.Random, program: Program, op: Op) -> Op:
    """Another peer, place, cell, value, order, scope or kind: what the op has."""
    what = random_.choice(
        {
            "signal": ["peer", "at", "a", "b", "order", "order", "how", "via"],
            "wait": ["at", "a", "b", "b", "order", "order", "how"],
            "barrier": ["order", "how"],
            "fence": ["order", "scope", "scope"],
            "reset": ["at"],
            "packet": ["peer", "at", "a", "b"],
            "receive": ["at", "a", "b"],
            "poison": ["peer", "at", "a", "b"],
            "take": ["at", "a", "b"],
            "fill": ["peer", "at", "a", "b"],
            "put": ["peer", "at", "a", "via", "counter"],
            "get": ["peer", "at", "a", "via"],
            "flush": ["via"],
            "count": ["at", "a", "b"],
            "send": ["peer", "slot"],
            "recv": ["peer", "slot"],
            "close": ["slot"],
            "alias": ["peer"],
            "spread": ["at", "a"],
            "combine": ["at", "a"],
        }.get(op.kind, ["peer", "at", "a"])
    )
    if what == "peer":
        return dataclasses.replace(op, peer=random_.randrange(program.ranks))
    if what == "at":
        return dataclasses.replace(op, at=random_.randrange(CELLS))
    if what == "slot":
        return dataclasses.replace(op, at=random_.randrange(SLOTS))
    if what == "a":
        return dataclasses.replace(op, a=max(0, op.a + random_.choice([-1, 1])))
    if what == "b":
        return dataclasses.replace(op, b=op.b + random_.choice([-1, 1]))
    if what == "order":
        return dataclasses.replace(op, order=random_.choice(ORDERS[op.kind]))
    if what == "via":
        return dataclasses.replace(op, via=random_.randrange(-1, CONTEXTS))
    if what == "counter":
        return dataclasses.replace(op, counter=random_.randrange(-1, CELLS))
    if what == "scope":
        return dataclasses.replace(op, scope="gpu" if op.scope == "sys" else "sys")
    if op.via >= 0:
        return dataclasses.replace(op, how=random_.choice(["inc", "add"]))
    ways = {"signal": ["inc", "set", "add"], "wait": ["ge", "eq"], "barrier": ["block", "grid"]}
    return dataclasses.replace(op, how=random_.choice(ways[op.kind]))


# The model -----------------------------------------------------------------------------------------------------------


class Wrong(Exception):
    """A schedule in which the program hangs or races."""


Clock = dict[Thread, int]


def join(into: Clock, other: Clock) -> None:
    for thread, time in other.items():
        if into.get(thread, 0) < time:
            into[thread] = time


@dataclasses.dataclass(eq=False)
class Change:
    """A write of a cell, of packets or of poison."""

    thread: Thread
    time: int  # of the thread's clock
    amount: int  # a signal's value, a flag, or 1: a tile and 0: poison
    sets: bool  # otherwise it adds
    clock: Clock  # of a release pattern that ends in it
    near: Clock  # the same for blocks of the rank
    chain: Clock  # what was released before it, as far as its thread has heard (M25)
    made: tuple[int, int] = (0, 0)  # the launch and op
    readers: Clock = dataclasses.field(default_factory=dict)  # who has read it first when


@dataclasses.dataclass
class Cell:
    """The writes of a cell, a slot of packets or a tile of poison, in their order."""

    changes: list[Change] = dataclasses.field(default_factory=list)

    def value(self, end: int) -> int:
        total = 0
        for change in self.changes[:end]:
            total = change.amount if change.sets else total + change.amount
        return total

    def since(self, end: int) -> list[Change]:
        """What a read of the value behind so many changes reads from: the last that set it, and what was added."""
        begin = next((i for i in reversed(range(end)) if self.changes[i].sets), 0)
        return self.changes[begin:end]


@dataclasses.dataclass
class State:
    """One block."""

    launch: int = 1
    pc: int = 0
    done: bool = False
    arrived: int = -1
    clock: Clock = dataclasses.field(default_factory=dict)
    fenced: dict[str, Clock] = dataclasses.field(default_factory=lambda: {"sys": {}, "gpu": {}})
    pending: dict[str, Clock] = dataclasses.field(default_factory=lambda: {"sys": {}, "gpu": {}})
    chain: Clock = dataclasses.field(default_factory=dict)
    # Puts that nothing has released yet: what they touch; and whether a fence came behind.
    puts: list[tuple[tuple[int, int], bool, bool]] = dataclasses.field(default_factory=list)
    barriers: dict[tuple[str, int], int] = dataclasses.field(default_factory=dict)


class Model:
    def __init__(self, program: Program, random_: random.Random) -> None:
        self.program = program
        self.random = random_
        self.states = {thread: State() for thread in program.threads()}
        self.cells: dict[tuple[str, *tuple[int, ...]], Cell] = {}
        # What loads of packets and poison have taken: the storing thread, launch and op.
        self.taken: dict[tuple[Thread, int, int], tuple[Thread, tuple[int, int]]] = {}
        self.writes: dict[Place, dict[Thread, int]] = {}
        self.reads: dict[Place, dict[Thread, int]] = {}
        # In which launch each thread wrote a place last, and whether through the switch.
        self.proxies: dict[tuple[Place, Thread], tuple[int, bool]] = {}
        # The launch whose tile lies in a slot that barriers guard.
        self.sent: dict[Place, int] = {}
        # What adapters have done, and puts that counters have counted: the way, its moment, the source.
        self.ways: dict[Thread, int] = {}
        self.counted: dict[tuple[int, int], list[tuple[Thread, int, tuple[int, int]]]] = {}
        self.joined: dict[tuple[str, int, int], tuple[int, Clock]] = {}
        # How often data say, by rank and launch.
        self.often: dict[tuple[int, int], int] = {}
        for thread, state in self.states.items():
            state.clock[thread] = 1

    def cell(self, rank: int, index: int, kind: str = "signal") -> Cell:
        return self.cells.setdefault((kind, rank, index), Cell())

    def slot(self, thread: Thread, op: Op) -> Place:
        """Where the tile of a send or receive lies (M16, M17)."""
        source, dest = (thread[0], op.peer) if op.kind == "send" else (op.peer, thread[0])
        at = source if self.program.protocol == "pull" else dest
        return at, -1, source, dest, thread[1], op.at, self.states[thread].launch % 2

    def polled(self, thread: Thread, op: Op) -> Cell:
        """The slot of a channel whose receivers poll the data."""
        return self.cells.setdefault(("channel", *self.slot(thread, op)), Cell())

    def is_behind(self, thread: Thread, change: Change) -> bool:
        """Whether what the thread does next at that place comes behind the change (M5, M13, M25)."""
        if change.thread == thread or thread in change.readers:
            return True
        state = self.states[thread]
        known = [state.clock, state.chain] if self.program.assumes else [state.clock]
        events = [(change.thread, change.time), *change.readers.items()]
        return any(clock.get(other, 0) >= time for other, time in events for clock in known)

    def lowest(self, thread: Thread, cell: Cell) -> int:
        """How many of the changes come before anything that the thread does next."""
        return next((i + 1 for i in reversed(range(len(cell.changes))) if self.is_behind(thread, cell.changes[i])), 0)

    def write(self, thread: Thread, cell: Cell, change: Change, mail: bool) -> None:
        """Behind all that come before it, and, of those that nothing orders, some."""
        # Nothing comes between an atomic change and the value that it found.
        places = [i for i in range(self.lowest(thread, cell), len(cell.changes)) if mail or cell.changes[i].sets]
        place = self.random.choice(places) if places and self.random.random() < 0.5 else len(cell.changes)
        cell.changes.insert(place, change)

    def readable(self, thread: Thread, op: Op) -> tuple[Cell, list[int]]:
        """What a wait or load may read, and end: the cell, and the numbers of changes behind which."""
        state = self.states[thread]
        if op.kind == "wait":
            cell, want = self.cell(thread[0], op.at), op.value(state.launch)
        elif op.kind == "receive":
            cell, want = self.cell(thread[0], op.at, "packet"), op.value(state.launch) & 0xFFFFFFFF
        elif op.kind == "recv":
            cell, want = self.polled(thread, op), state.launch
        else:
            cell, want = self.cell(thread[0], op.slot(state.launch), "poison"), 1
        exact = op.kind != "wait" or op.how == "eq"
        found = []
        for end in range(self.lowest(thread, cell), len(cell.changes) + 1):
            value = cell.value(end)
            if value == want if exact else value >= want:
                found.append(end)
        return cell, found

    def read(self, thread: Thread, state: State, op: Op) -> list[Change]:
        """Reads one of those values; returns the changes that made it."""
        cell, ends = self.readable(thread, op)
        end = self.random.choice(ends)
        since = cell.since(end)
        for change in since[-1:]:
            change.readers.setdefault(thread, state.clock[thread])
        return since

    def touch(self, thread: Thread, place: Place, write: bool, alias: bool = False) -> None:
        state = self.states[thread]
        for other, time in self.writes.get(place, {}).items():
            crosses = self.proxies.get((place, other)) == (state.launch, not alias)
            if crosses and state.clock.get((*ALIAS, *other), 0) < time:
                raise Wrong(f"{thread} touches {place} through another proxy than {other}")
        if write:
            self.proxies[place, thread] = state.launch, alias
        for put, wrote, _ in state.puts:
            if put == place and (write or wrote):
                raise Wrong(f"{thread} touches {place}, which its put may still touch")
        for known, both in ((self.writes, False), (self.reads, True)):
            for other, time in known.get(place, {}).items():
                if (write or not both) and other != thread and state.clock.get(other, 0) < time:
                    raise Wrong(f"race of {thread} and {other} at {place}")
        (self.writes if write else self.reads).setdefault(place, {})[thread] = state.clock[thread]

    def transfer(self, thread: Thread, op: Op, places: list[tuple[tuple[int, int], bool]]) -> tuple[Thread, int]:
        """An adapter does it: who hears of a later moment of this way comes after it."""
        way = (*thread, op.via, op.peer, int(op.kind == "get"))
        time = self.ways[way] = self.ways.get(way, 0) + 1
        for place, write in places:
            times = (self.writes if write else self.reads).setdefault(place, {})
            before = times.get(thread, 0)
            self.touch(thread, place, write)
            times[thread], times[way] = before, time
        return way, time

    def settled(self, thread: Thread, way: Thread, both: bool, only: tuple[int, tuple[int, int]] | None = None) -> None:
        """What went this way has left its source; `both`: and has come."""
        for known in (self.reads, self.writes) if both else (self.reads,):
            for place, times in known.items():
                if way in times and (only is None or only == (times[way], place)):
                    del times[way]
                    times[thread] = self.states[thread].clock[thread]

    def release(self, thread: Thread, order: str) -> tuple[Clock, Clock]:
        """What goes with a signal: to other ranks, and to blocks of the same."""
        state = self.states[thread]
        if order in ("release", "acq_rel"):
            self.settle(thread)
            clocks = dict(state.clock), dict(state.clock)
        else:
            state.puts = [put for put in state.puts if not put[2]]
            near = dict(state.fenced["sys"])
            join(near, state.fenced["gpu"])
            clocks = dict(state.fenced["sys"]), near
        state.clock[thread] += 1
        return clocks

    def settle(self, thread: Thread) -> None:
        """The puts of a block are over: they count as made now."""
        state = self.states[thread]
        puts, state.puts = state.puts, []
        for place, write, _ in puts:
            self.touch(thread, place, write)

    def acquire(self, thread: Thread, order: str, clock: Clock, near: Clock) -> None:
        state = self.states[thread]
        join(state.chain, near)
        if order in ("acquire", "acq_rel"):
            join(state.clock, near)
        else:
            join(state.pending["sys"], clock)
            join(state.pending["sys"], near)
            join(state.pending["gpu"], near)

    def ready(self, thread: Thread) -> bool:
        state = self.states[thread]
        ops = self.program.ops[thread]
        if state.done:
            return False
        if state.pc == len(ops):
            return True
        op = ops[state.pc]
        if op.kind in ("wait", "receive", "take") or (op.kind == "recv" and self.program.protocol == "ll"):
            return bool(self.readable(thread, op)[1])
        if op.kind == "count":
            return len(self.counted.get((thread[0], op.at), [])) >= op.value(state.launch)
        if self.meets(op) and state.arrived >= 0:
            extent, block = op.how, 0 if op.how == "grid" else thread[1]
            members = self.program.ranks * (self.program.blocks if op.how == "grid" else 1)
            return self.joined[extent, block, state.arrived][0] == members
        return True

    def meets(self, op: Op) -> bool:
        """Whether it is a barrier: a channel's where receivers do not poll."""
        return op.kind == "barrier" or (op.kind == "close" and self.program.protocol != "ll")

    def step(self, thread: Thread) -> None:
        state = self.states[thread]
        ops = self.program.ops[thread]
        if state.pc == len(ops):
            self.end(thread)
            return
        op = ops[state.pc]
        if self.meets(op) and state.arrived < 0:
            self.arrive(thread, op)
            return
        times = 1
        if op.often:
            times = self.often.setdefault((thread[0], state.launch), self.random.randrange(4))
        for _ in range(times):
            getattr(self, "do_" + op.kind)(thread, state, op)
        state.pc += 1

    def end(self, thread: Thread) -> None:
        """Launches of a rank follow one another, with a fence between them."""
        rank = thread[0]
        self.settle(thread)
        state = self.states[thread]
        state.done = True
        states = {t: s for t, s in self.states.items() if t[0] == rank}
        if not all(s.done for s in states.values()) or state.launch == LAUNCHES:
            return
        everything: Clock = {}
        for s in states.values():
            join(everything, s.clock)
            join(everything, s.pending["sys"])
        for t, s in states.items():
            s.clock = dict(everything)
            s.fenced = {"sys": dict(everything), "gpu": dict(everything)}
            s.clock[t] = everything[t] + 1
            s.done, s.pc = False, 0
            s.launch += 1

    def arrive(self, thread: Thread, op: Op) -> None:
        state = self.states[thread]
        extent, block = op.how, 0 if op.how == "grid" else thread[1]
        number = state.barriers.get((extent, block), 0)
        state.barriers[extent, block] = number + 1
        count, clock = self.joined.get((extent, block, number), (0, {}))
        join(clock, self.release(thread, op.order)[0])
        self.joined[extent, block, number] = count + 1, clock
        state.arrived = number

    def do_barrier(self, thread: Thread, state: State, op: Op) -> None:
        block = 0 if op.how == "grid" else thread[1]
        clock = self.joined[op.how, block, state.arrived][1]
        self.acquire(thread, op.order, clock, clock)
        state.arrived = -1

    def do_store(self, thread: Thread, state: State, op: Op) -> None:
        self.touch(thread, (op.peer, op.tile(state.launch)), True)

    def do_load(self, thread: Thread, state: State, op: Op) -> None:
        self.touch(thread, (op.peer, op.tile(state.launch)), False)

    def do_spread(self, thread: Thread, state: State, op: Op) -> None:
        for rank in range(self.program.ranks):
            self.touch(thread, (rank, op.tile(state.launch)), op.kind == "spread", alias=True)

    do_combine = do_spread

    def do_alias(self, thread: Thread, state: State, op: Op) -> None:
        self.do_fence(thread, state, Op("fence", order="acquire"))
        # What the fence releases has passed it.
        state.clock |= {(*ALIAS, *other): time for other, time in state.clock.items() if other[:1] != ALIAS}
        self.do_fence(thread, state, Op("fence", order="release"))

    def do_send(self, thread: Thread, state: State, op: Op) -> None:
        if self.program.protocol == "ll":
            self.mail(thread, self.polled(thread, op), op.peer, state.launch)
            return
        place = self.slot(thread, op)
        self.touch(thread, place, True)
        self.sent[place] = state.launch

    def do_recv(self, thread: Thread, state: State, op: Op) -> None:
        if self.program.protocol == "ll":
            self.do_receive(thread, state, op)
            return
        place = self.slot(thread, op)
        self.touch(thread, place, False)
        if self.sent.get(place) != state.launch:
            raise Wrong(f"{thread} receives what nobody has sent")

    def do_close(self, thread: Thread, state: State, op: Op) -> None:
        if self.meets(op):
            self.do_barrier(thread, state, op)

    def do_read(self, thread: Thread, state: State, op: Op) -> None:
        self.do_load(thread, state, op)

    def do_write(self, thread: Thread, state: State, op: Op) -> None:
        self.do_store(thread, state, op)

    def do_copy(self, thread: Thread, state: State, op: Op) -> None:
        self.touch(thread, (op.peer, op.tile(state.launch)), False)
        self.touch(thread, (thread[0], op.place), True)

    def do_get(self, thread: Thread, state: State, op: Op) -> None:
        source, target = (op.peer, op.tile(state.launch)), (thread[0], op.place)
        if op.via >= 0:
            self.transfer(thread, op, [(source, False), (target, True)])
            return
        self.touch(thread, source, False)
        self.touch(thread, target, True)

    def do_count(self, thread: Thread, state: State, op: Op) -> None:
        counted = self.counted.get((thread[0], op.at), [])
        if len(counted) == op.value(state.launch):
            for way, time, source in counted:
                if way[:2] == thread:
                    self.settled(thread, way, False, (time, source))

    def do_put(self, thread: Thread, state: State, op: Op) -> None:
        source, target = (thread[0], op.place), (op.peer, op.tile(state.launch))
        if op.via >= 0:
            way, time = self.transfer(thread, op, [(source, False), (target, True)])
            if op.counter >= 0:
                self.counted.setdefault((thread[0], op.counter), []).append((way, time, source))
            return
        self.touch(thread, source, False)
        self.touch(thread, target, True)
        state.puts += [(source, False, False), (target, True, False)]

    def do_signal(self, thread: Thread, state: State, op: Op) -> None:
        cell = self.cell(op.peer, op.at)
        clock, near = self.release(thread, op.order)
        way = (*thread, op.via, op.peer, 0)
        if op.order == "release" and way in self.ways:
            for one in (clock, near):
                one[way] = max(one.get(way, 0), self.ways[way])
        if op.value(state.launch) < 0 and op.how != "inc":
            raise Wrong(f"{thread} signals a negative number")
        amount = 1 if op.how == "inc" else op.value(state.launch)
        near = near if op.peer == thread[0] else {}
        self.write(thread, cell, self.changed(thread, amount, op.how == "set", clock, near), mail=False)

    def changed(self, thread: Thread, amount: int, sets: bool, clock: Clock, near: Clock) -> Change:
        """A change that the thread has just made, of which `release` returned the clocks."""
        state = self.states[thread]
        chain = dict(state.chain)
        join(chain, clock)
        join(chain, near)
        made = state.launch, state.pc
        return Change(thread, state.clock[thread] - 1, amount, sets, clock, near, chain, made)

    def hear(self, thread: Thread, order: str, changes: list[Change]) -> None:
        clock: Clock = {}
        for change in changes:
            join(clock, change.clock)
        near = dict(clock)
        for change in changes:
            join(near, change.near)
        self.acquire(thread, order, clock, near)
        for change in changes:
            join(self.states[thread].chain, change.chain)

    def do_wait(self, thread: Thread, state: State, op: Op) -> None:
        self.hear(thread, op.order, self.read(thread, state, op))

    def do_flush(self, thread: Thread, state: State, op: Op) -> None:
        if op.via < 0:
            state.puts = [put for put in state.puts if put[1]]
        for way in self.ways:
            if way[:2] == thread and way[2] == op.via:
                self.settled(thread, way, bool(way[4]))

    def do_reset(self, thread: Thread, state: State, op: Op) -> None:
        state.clock[thread] += 1
        self.write(thread, self.cell(thread[0], op.at), self.changed(thread, 0, True, {}, {}), mail=False)

    def do_fence(self, thread: Thread, state: State, op: Op) -> None:
        if op.order in ("acquire", "acq_rel"):
            join(state.clock, state.pending[op.scope])
        if op.order in ("release", "acq_rel"):
            # A put before the fence has been made for whoever hears of it.
            puts = state.puts
            self.settle(thread)
            state.puts = [(place, write, True) for place, write, _ in puts]
            state.fenced["gpu"] = dict(state.clock)
            if op.scope == "sys":
                state.fenced["sys"] = dict(state.clock)
            state.clock[thread] += 1

    def mail(self, thread: Thread, cell: Cell, rank: int, amount: int) -> None:
        clock, near = self.release(thread, "relaxed")
        clock, near = ({}, near) if rank == thread[0] else (clock, {})
        self.write(thread, cell, self.changed(thread, amount, True, clock, near), mail=True)

    def do_packet(self, thread: Thread, state: State, op: Op) -> None:
        flag = op.value(state.launch) & 0xFFFFFFFF
        self.mail(thread, self.cell(op.peer, op.at, "packet"), op.peer, flag)

    def do_poison(self, thread: Thread, state: State, op: Op) -> None:
        self.mail(thread, self.cell(op.peer, op.slot(state.launch), "poison"), op.peer, 1)

    def do_fill(self, thread: Thread, state: State, op: Op) -> None:
        self.mail(thread, self.cell(op.peer, op.slot(state.launch), "poison"), op.peer, 0)

    def do_receive(self, thread: Thread, state: State, op: Op) -> None:
        changes = self.read(thread, state, op)
        for change in changes:
            self.taken[thread, state.launch, state.pc] = change.thread, change.made
        self.hear(thread, "relaxed", changes)

    do_take = do_receive

    def run(self) -> None:
        threads = self.program.threads()
        # Some blocks are slow: they run when nobody else can.
        slow = {thread for thread in threads if self.random.random() < 0.3}
        while True:
            ready = [thread for thread in threads if self.ready(thread)]
            if not ready:
                break
            quick = [thread for thread in ready if thread not in slow]
            thread = self.random.choice(quick or ready)
            for _ in range(self.random.choice([1, 1, 3, 20])):
                if not self.ready(thread):
                    break
                self.step(thread)
            if self.random.random() < 0.02:
                slow = {thread for thread in threads if self.random.random() < 0.3}
        if not all(state.done and state.launch == LAUNCHES for state in self.states.values()):
            raise Wrong("deadlock")


def fault(program: Program, random_: random.Random, schedules: int) -> str:
    taken = None
    for _ in range(schedules):
        model = Model(program, random_)
        try:
            model.run()
        except Wrong as wrong:
            return str(wrong)
        taken = model.taken if taken is None else taken
        for place, found in model.taken.items():
            if taken[place] != found:
                return f"{place} takes what {taken[place]} or {found} stored"
        kept = sorted(model.taken.items())
        for (one, found), (other, again) in itertools.combinations(kept, 2):
            if found == again and one[0] == other[0] and one[1] != other[1]:
                return f"{other} takes again what {one} took"
    return ""


# Text ----------------------------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, name: str, program: Program) -> None:
        self.name, self.program, self.next = name, program, 0
        self.lines: list[str] = []
        elements = WIDTH * PLACES * program.stripes()
        self.data, self.mail = f"{elements}xf32", f"{elements}xi64"
        self.part = "memref<16xf32, strided<[1], offset: ?>>"
        self.signal = f"!comms.signal<{CELLS * program.stripes()}>"
        self.counter = f"!comms.counter<{CELLS * program.stripes()}>"
        self.all = f"memref<{self.data}, #comms.space<multimem>>"
        self.channel = f"!comms.channel<{program.protocol}, {WIDTH}xf32>"

    def add(self, text: str) -> str:
        self.next += 1
        self.lines.append(f"    %v{self.next} = {text}")
        return f"%v{self.next}"

    def value(self, op: Op, kind: str) -> str:
        product = self.add(f"arith.muli %launch, {self.add(f'arith.constant {op.a} : index')} : index")
        total = self.add(f"arith.addi {product}, {self.add(f'arith.constant {op.b} : index')} : index")
        return self.add(f"arith.index_cast {total} : index to {kind}")

    def index(self, value: int) -> str:
        return self.add(f"arith.constant {value} : index")

    def tile(self, op: Op) -> str:
        parity = self.add(f"arith.remui %launch, {self.index(2)} : index")
        moved = self.add(f"arith.muli {parity}, {self.index(op.a)} : index")
        place = self.add(f"arith.addi {moved}, {self.index(op.at)} : index")
        inside = self.add(f"arith.remui {place}, {self.index(PLACES)} : index")
        return self.times(self.moved(inside, op, PLACES), WIDTH)

    def slot(self, op: Op) -> str:
        moved = self.add(f"arith.addi %launch, {self.index(op.b % max(op.a, 1))} : index")
        buffer = self.add(f"arith.remui {moved}, {self.index(max(op.a, 1))} : index")
        place = self.add(f"arith.addi {buffer}, {self.index(op.at)} : index")
        inside = self.add(f"arith.remui {place}, {self.index(PLACES)} : index")
        return self.times(self.moved(inside, op, PLACES), WIDTH)

    def times(self, value: str, factor: int) -> str:
        return self.add(f"arith.muli {value}, {self.index(factor)} : index")

    def moved(self, value: str, op: Op, distance: int) -> str:
        """Moved to the places or cells of the block."""
        if op.stripe in ("", "first"):
            return value
        lane = "%block"
        if op.stripe == "next":
            above = self.add(f"arith.addi %block, {self.index(1)} : index")
            lane = self.add(f"arith.remui {above}, {self.index(self.program.blocks)} : index")
        elif op.stripe == "half":
            lane = self.add(f"arith.divui %block, {self.index(2)} : index")
        return self.add(f"arith.addi {value}, {self.times(lane, distance)} : index")

    def cell(self, op: Op) -> str:
        return self.moved(self.index(op.at), op, CELLS)

    def packets(self, op: Op) -> str:
        return self.times(self.cell(op), WIDTH)

    def open(self, op: Op) -> bool:
        """Begins the condition under which blocks perform the op."""
        if op.only is None:
            return False
        how, number = op.only
        value, other = "%block", number
        if how == "even":
            value, other = self.add(f"arith.remui %block, {self.index(2)} : index"), number % 2
        predicate = "ult" if how == "below" else "eq"
        self.lines.append(f"    scf.if {self.add(f'arith.cmpi {predicate}, {value}, {self.index(other)} : index')} {{")
        return True

    def window(self, op: Op, name: str, kind: str) -> str:
        at = self.index(op.peer)
        return self.add(f"comms.peer %{name} at {at} of %team : !comms.window<{kind}> -> memref<{kind}>")

    def subview(self, memory: str, at: str) -> str:
        return self.add(f"memref.subview {memory}[{at}] [16] [1] : memref<{self.data}> to {self.part}")

    def view(self, op: Op) -> tuple[str, str, str]:
        """The memory that an access goes to, the place there, and the type."""
        window, tile = self.window(op, "x", self.data), self.tile(op)
        if not op.viewed:
            return window, tile, f"memref<{self.data}>"
        return self.subview(window, tile), "%c0", self.part

    def write(self, op: Op) -> None:
        if op.often:
            self.lines.append("    scf.for %i = %c0 to %often step %c1 {")
            self.write(dataclasses.replace(op, often=False))
            self.lines.append("    }")
            return
        order = f" order {op.order}" if op.order else ""
        gin = f" gin <context_id = {op.via}>" if op.via > 0 else " gin <>" if op.via == 0 else ""
        if op.kind == "store":
            window, tile = self.window(op, "x", self.data), self.tile(op)
            self.lines.append(f"    comms.tile_store %one, {window}[{tile}] : tensor<16xf32>, memref<{self.data}>")
        elif op.kind == "load":
            window, tile = self.window(op, "x", self.data), self.tile(op)
            self.add(f"comms.tile_load {window}[{tile}] : memref<{self.data}> -> tensor<16xf32>")
        elif op.kind == "put":
            at, tile = self.index(op.peer), self.tile(op)
            source = self.times(self.moved(self.index(op.place), op, PLACES), WIDTH)
            counted = ""
            if op.counter >= 0 and op.via >= 0:
                counter = self.moved(self.index(op.counter), op, CELLS)
                counted = f" counted %n[{counter}] : {self.counter}"
            self.lines.append(
                f"    comms.put %own[{source}] to %x[{tile}] count %c16 at {at} of %team{counted}{gin}"
                f" : memref<{self.data}>, !comms.window<{self.data}>"
            )
        elif op.kind == "signal":
            value = "" if op.how == "inc" else f" value {self.value(op, 'i64')}"
            cell, at = self.cell(op), self.index(op.peer)
            text = f"comms.signal {op.how} %s[{cell}]{value} at {at} of %team{order}{gin} : {self.signal}"
            self.lines.append(f"    {text}")
        elif op.kind == "wait":
            value, cell = self.value(op, "i64"), self.cell(op)
            self.add(f"comms.wait_signal %s[{cell}] {op.how} {value}{order} : {self.signal}")
        elif op.kind == "reset":
            self.lines.append(f"    comms.reset_signal %s[{self.cell(op)}] : {self.signal}")
        elif op.kind == "flush":
            self.lines.append(f"    comms.flush %team{gin}")
        elif op.kind == "get":
            at, tile = self.index(op.peer), self.tile(op)
            target = self.times(self.moved(self.index(op.place), op, PLACES), WIDTH)
            self.lines.append(
                f"    comms.get %x[{tile}] to %own[{target}] count %c16 at {at} of %team{gin}"
                f" : !comms.window<{self.data}>, memref<{self.data}>"
            )
        elif op.kind == "read":
            memory, tile, kind = self.view(op)
            self.add(f"memref.load {memory}[{tile}] : {kind}")
        elif op.kind == "write":
            memory, tile, kind = self.view(op)
            self.lines.append(f"    memref.store %f1, {memory}[{tile}] : {kind}")
        elif op.kind == "copy":
            window, tile = self.window(op, "x", self.data), self.tile(op)
            target = self.times(self.moved(self.index(op.place), op, PLACES), WIDTH)
            part = "memref<16xf32, strided<[1], offset: ?>>"
            views = [
                self.add(f"memref.subview {of}[{at}] [16] [1] : memref<{self.data}> to {part}")
                for of, at in ((window, tile), ("%own", target))
            ]
            self.lines.append(f"    memref.copy {views[0]}, {views[1]} : {part} to {part}")
        elif op.kind == "count":
            value, cell = self.value(op, "i64"), self.cell(op)
            self.lines.append(f"    comms.wait_counter %n[{cell}] ge {value} : {self.counter}")
        elif op.kind == "fence":
            self.lines.append(f"    comms.fence {op.order} {op.scope}")
        elif op.kind == "alias":
            self.lines.append("    comms.fence acq_rel sys proxy alias")
        elif op.kind == "spread":
            self.lines.append(f"    comms.multimem_store %one, %all[{self.tile(op)}] : tensor<16xf32>, {self.all}")
        elif op.kind == "combine":
            self.add(f"comms.multimem_load_reduce sum %all[{self.tile(op)}] : {self.all} -> tensor<16xf32>")
        elif op.kind == "send":
            slot, peer = self.index(op.at), self.index(op.peer)
            self.lines.append(f"    comms.send %one on %ch[{slot}] to {peer} : tensor<16xf32>, {self.channel}")
        elif op.kind == "recv":
            slot, peer = self.index(op.at), self.index(op.peer)
            self.add(f"comms.recv %ch[{slot}] from {peer} : {self.channel} -> tensor<16xf32>")
        elif op.kind == "close":
            self.lines.append(f"    comms.channel_barrier %ch : {self.channel}")
        elif op.kind == "barrier":
            self.lines.append(f"    comms.barrier %team {op.how}{order}")
        elif op.kind == "packet":
            flag, window, at = self.value(op, "i32"), self.window(op, "box", self.mail), self.packets(op)
            types = f"tensor<16xf32>, memref<{self.mail}>"
            self.lines.append(f"    comms.packet_store %one, {window}[{at}] flag {flag} : {types}")
        elif op.kind in ("poison", "fill"):
            window, at = self.window(op, "pool", self.data), self.slot(op)
            self.lines.append(
                f"    comms.poison_store %one, {window}[{at}] : tensor<16xf32>, memref<{self.data}>"
                if op.kind == "poison"
                else f"    comms.poison_fill {window}[{at}] count %c16 : memref<{self.data}>"
            )
        elif op.kind == "take":
            self.add(f"comms.poison_load %basin[{self.slot(op)}] : memref<{self.data}> -> tensor<16xf32>")
        elif op.kind == "receive":
            flag, at = self.value(op, "i32"), self.packets(op)
            self.add(f"comms.packet_load %mail[{at}] flag {flag} : memref<{self.mail}> -> tensor<16xf32>")

    def text(self) -> str:
        striped = self.program.striped
        for (rank, block), ops in (self.program.ops if striped is None else striped).items():
            if not ops:
                continue
            here = self.add(f"arith.cmpi eq, %rank, {self.index(rank)} : index")
            if self.program.roles:
                self.lines.append(f'    comms.role "r{rank}b{block}" blocks {block} to {block + 1} {{')
            elif striped is None:
                there = self.add(f"arith.cmpi eq, %block, {self.index(block)} : index")
                here = self.add(f"arith.andi {here}, {there} : i1")
            self.lines.append(f"    scf.if {here} {{")
            for op in ops:
                is_open = self.open(op)
                self.write(op)
                self.lines += ["    }"] if is_open else []
            self.lines += ["    }"] * (1 + self.program.roles)
        arguments = f"%x: !comms.window<{self.data}>, %box: !comms.window<{self.mail}>, %s: {self.signal}"
        arguments += f", %n: {self.counter}, %counts: memref<1xi64>"
        arguments += f', %pool: !comms.window<{self.data}> {{comms.hidden, comms.init = "poison"}}'
        assumes = ', comms.assumes = ["packets_cumulative"]' if self.program.assumes else ""
        head = f"""comms.kernel @{self.name}({arguments})
    attributes {{ranks = {self.program.ranks}, blocks = {self.program.blocks}{assumes}}} {{
    %team = comms.team world
    %rank = comms.rank %team
    %block = comms.block_id
    %launch = comms.epoch
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : i64
    %c16 = arith.constant 16 : index
    %count = memref.load %counts[%c0] : memref<1xi64>
    %few = arith.minui %count, %c3 : i64
    %often = arith.index_cast %few : i64 to index
    %one = arith.constant dense<1.0> : tensor<16xf32>
    %f1 = arith.constant 1.0 : f32
    %own = comms.local %x : !comms.window<{self.data}> -> memref<{self.data}>
    %mail = comms.local %box : !comms.window<{self.mail}> -> memref<{self.mail}>
    %basin = comms.local %pool : !comms.window<{self.data}> -> memref<{self.data}>
"""
        if self.program.uses("spread", "combine"):
            head += f"    %all = comms.multimem %x of %team : !comms.window<{self.data}> -> {self.all}\n"
        if self.program.uses("send", "recv", "close"):
            head += f"    %ch = comms.channel 0 pairwise over %team slots {SLOTS} : {self.channel}\n"
        return head + "\n".join(self.lines) + "\n    comms.return\n}\n"


def doubled(random_: random.Random, program: Program) -> Program:
    """Some barriers twice, of which the compiler takes one away."""
    if program.striped is not None:
        once = doubled(random_, Program(program.ranks, 1, program.striped))
        return spread(once.ops, program.ranks, program.blocks)
    ops = {
        thread: [op for op in mine for _ in range(1 + (op.kind == "barrier" and random_.random() < 0.6))]
        for thread, mine in program.ops.items()
    }
    return dataclasses.replace(program, ops=ops)


def verdicts(texts: list[str], opt: str, *passes: str) -> list[str]:
    """The first error of each kernel after some passes, or ''."""
    source = "// -----\n".join(texts)
    command = [opt, "-split-input-file", *passes, "-comms-check-sync", "-o", "/dev/null"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"comms-opt ended with {done.returncode}\n{done.stderr}")
    starts, line = [], 1
    for text in texts:
        starts.append(line)
        line += text.count("\n") + 1
    found = [""] * len(texts)
    for at, kind, what in re.findall(r"^[^:\n]*:(\d+):\d+: (error|warning): (.*)$", done.stderr, re.M):
        index = max(i for i, start in enumerate(starts) if start <= int(at))
        if kind == "warning" or not what.startswith(("deadlock: ", "'comms.", "'scf.", "'memref.")):
            sys.exit(f"{what}\n{texts[index]}")
        found[index] = found[index] or what
    return found


def shrink(program: Program, seed: int, schedules: int, opt: str) -> Program:
    """Leaves ops out for as long as the program stays accepted and wrong."""
    if program.striped is not None:
        return program
    again = True
    while again:
        again = False
        for thread in program.threads():
            for index in reversed(range(len(program.ops[thread]))):
                ops = {t: list(o) for t, o in program.ops.items()}
                del ops[thread][index]
                less = dataclasses.replace(program, ops=ops)
                if not verdicts([Writer("k", less).text()], opt)[0] and fault(less, random.Random(seed), schedules):
                    program, again = less, True
    return program


@dataclasses.dataclass
class Found:
    """What came of some programs."""

    accepted: int = 0
    refused: int = 0
    alarms: int = 0
    # What was said of each that was accepted though it is wrong.
    failures: list[str] = dataclasses.field(default_factory=list)
    said: list[str] = dataclasses.field(default_factory=list)


def draw(options: argparse.Namespace, number: int) -> Program:
    random_ = random.Random(options.seed * 1_000_003 + number)
    if number % 4 == 3 and not options.chains:
        return make_striped(random_)
    program = make(random_, CHAINS if options.chains else TEMPLATES)
    for _ in range(random_.choice([0, 1, 1, 1, 2, 3])):
        change(random_, program)
    return program


def judge(options: argparse.Namespace, first: int, last: int) -> Found:
    """Compares the checker with the model on programs of these numbers."""
    found = Found()
    programs = [draw(options, number) for number in range(first, last)]
    texts = [Writer(f"k{first + i}", program).text() for i, program in enumerate(programs)]
    # What is right has to stay so when barriers are taken away.
    twice = [doubled(random.Random(options.seed + i), program) for i, program in enumerate(programs)]
    more = texts + [Writer(f"k{first + i}", program).text() for i, program in enumerate(twice)]
    before, behind = (verdicts(more, options.comms_opt, *p) for p in ((), ("-comms-eliminate-barriers",)))
    for text, was, now in zip(more, before, behind, strict=True):
        if not was and now:
            found.failures.append(f"accepted, but not without barriers that are taken away: {now}\n{text}")
    for i, verdict in enumerate(before[: len(texts)]):
        seed = options.seed + first + i
        found.accepted, found.refused = found.accepted + (not verdict), found.refused + bool(verdict)
        if verdict and not options.alarms:
            continue
        wrong = fault(programs[i], random.Random(seed), options.schedules)
        if verdict and not wrong:
            found.alarms += 1
            found.said.append(f"k{first + i}: no schedule fails, but: {verdict}")
        if not verdict and wrong:
            found.failures.append(f"k{first + i}: accepted, but {wrong}\n{explain(options, programs[i], first + i)}")
    return found


def explain(options: argparse.Namespace, program: Program, number: int) -> str:
    """The text of a program that is accepted though it is wrong; with --keep the least of its kind, and its ops."""
    if not options.keep:
        return Writer(f"k{number}", program).text()
    seed, schedules = options.seed + number, 4 * options.schedules
    less = shrink(program, seed, schedules, options.comms_opt)
    (options.keep / f"{options.seed}-{number}.mlir").write_text(Writer(f"k{number}", less).text())
    lines = [fault(less, random.Random(seed), schedules)]
    for thread, ops in less.ops.items():
        lines += [str(thread), *(f"  {op}" for op in ops)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--comms-opt", default="comms-opt")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--alarms", action="store_true")
    options = parser.parse_args()
    total = Found()
    size = 100
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        batches = [
            pool.submit(judge, options, first, min(first + size, options.programs))
            for first in range(0, options.programs, size)
        ]
        for batch in concurrent.futures.as_completed(batches):
            found = batch.result()
            total.accepted += found.accepted
            total.refused += found.refused
            total.alarms += found.alarms
            total.failures += found.failures
            for text in found.said + found.failures:
                print(text, flush=True)
    if total.failures:
        print(f"{len(total.failures)} accepted though they are wrong, {total.accepted} accepted in all")
        return 1
    said = f", {total.alarms} of them though no schedule fails" if options.alarms else ""
    print(f"{total.accepted} accepted, none of them wrong; {total.refused} refused{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
