"""Right programs of signals, packets, poison, barriers, fences, puts, gets, counters, channels and accesses."""

import dataclasses
import itertools
import random
from collections.abc import Sequence

from sync_changes import change
from sync_program import CELLS, PLACES, SLOTS, Op, Program, Template, Thread


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
