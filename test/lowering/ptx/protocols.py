"""Random programs whose blocks pass memory to each other.

Each part of a window or an array belongs to one block of one rank, and only this block reads and writes it. It passes
parts to blocks of its own and other ranks by signals, puts, packets, poison, channels, collectives and barriers, with
explicit fences or with the orders of the ops. All programs therefore end without races. The checker must accept them.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

PROTOCOLS = ["ll", "ll128", "lamport", "pull", "push"]  # Of channels.
KINDS = ["i32", "i8", "i64", "f32", "f32", "bf16", "bf16"]
PART = 128  # Elements of a part: a tile of ll128.
PARTS = 3  # Of each memory, for each block.
BOX = 2 * PART  # i64 of a box of packets: elements of 64 bits take two.


class Agent(NamedTuple):
    rank: int
    block: int


class Team(NamedTuple):
    """A team of the program, and the world ranks of each of its parts."""

    name: str
    parts: list[list[int]]


class Part(NamedTuple):
    """`PART` elements of a rank's memory: of its window, which all reach, or of its array."""

    rank: int
    memory: str
    number: int


class Program:
    """A kernel's text, and whom each part belongs to. `multicast`: it may have accesses to all ranks at once."""

    def __init__(self, lots: random.Random, ranks: int, blocks: int, multicast: bool) -> None:
        self.lots, self.ranks, self.blocks, self.kind = lots, ranks, blocks, lots.choice(KINDS)
        self.multicast, self.arguments, self.channels = multicast, list[str](), 0
        half = 2 if ranks % 2 == 0 else 1
        everybody = list(range(ranks))
        self.teams = [
            Team("%team", [everybody]),
            Team("%inner", [everybody[first : first + half] for first in range(0, ranks, half)]),
            Team("%outer", [everybody[first::half] for first in range(half)]),
        ]
        self.agents = [Agent(rank, block) for rank in range(ranks) for block in range(blocks)]
        self.numbers = range(PARTS * blocks)
        self.parts = [Part(rank, where, n) for rank in range(ranks) for where in "wa" for n in self.numbers]
        self.names = self.cells = self.counts = self.boxes = self.shells = 0
        self.steps: list[tuple[Agent, list[str]]] = []  # Since the last barrier.
        self.lines: list[str] = []
        self.owners: dict[Part, Agent] = {}
        self.deal(self.agents)

    # Text -------------------------------------------------------------------------------------------------------------

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    @property
    def size(self) -> int:
        return PART * PARTS * self.blocks

    @property
    def memref(self) -> str:
        return f"memref<{self.size}x{self.kind}>"

    @property
    def window(self) -> str:
        return f"!comms.window<{self.size}x{self.kind}>"

    def tensor(self, length: int) -> str:
        return f"tensor<{length}x{self.kind}>"

    def number(self, into: list[str], value: int) -> str:
        """An index; compilers know it, or they do not."""
        name = self.name()
        into.append(f"{name} = arith.constant {value} : index")
        if self.lots.random() < 0.3:
            hidden = self.name()
            into.append(f"{hidden} = arith.addi {name}, %zero : index")
            return hidden
        return name

    def view(self, into: list[str], who: Agent, part: Part) -> str:
        """A memref with the part: a window is reached as a peer's, the own rank's now and then, too."""
        if part.memory == "a":
            return "%array"
        if part.rank == who.rank and self.lots.random() < 0.7:
            return "%local"
        peer, name = self.number(into, part.rank), self.name()
        into.append(f"{name} = comms.peer %window at {peer} of %team : {self.window} -> {self.memref}")
        return name

    # Who has what -----------------------------------------------------------------------------------------------------

    def deal(self, among: Sequence[Agent]) -> None:
        """Parts that belong to these get owners among them. An array is of its rank's blocks."""
        for part in self.parts:
            if part in self.owners and self.owners[part] not in among:
                continue
            fit = [agent for agent in among if part.memory == "w" or agent.rank == part.rank]
            self.owners[part] = self.lots.choice(fit)

    def owned(self, who: Agent, memory_: str = "wa", rank: int | None = None) -> list[Part]:
        return [
            part
            for part, owner in self.owners.items()
            if owner == who and part.memory in memory_ and rank in (None, part.rank)
        ]

    def hand(self, giver: Agent, taker: Agent, besides: Sequence[Part] = ()) -> None:
        """The taker owns some of the giver's parts, and these."""
        fit = [part for part in self.owned(giver) if part.memory == "w" or part.rank == taker.rank]
        for part in [*self.lots.sample(fit, min(len(fit), self.lots.randint(0, 3))), *besides]:
            self.owners[part] = taker

    # What a block does ------------------------------------------------------------------------------------------------

    def place(self, into: list[str], part: Part, length: int) -> str:
        return self.number(into, part.number * PART + self.lots.randint(0, PART - length))

    def length(self) -> int:
        return self.lots.choice([1, 7, 8, 16, 33, PART])

    @property
    def word(self) -> int:
        """Elements in 16 bytes."""
        return 128 // int(re.sub("[a-z]+", "", self.kind))

    def valid(self, into: list[str], length: int) -> str:
        return f" valid {self.number(into, self.lots.randint(0, length))}" if self.lots.random() < 0.15 else ""

    def load(self, into: list[str], who: Agent, length: int, after: str = "") -> str:
        """A tile of a part that the block has; of nothing where it has none."""
        parts = self.owned(who)
        if not parts:
            name = self.name()
            into.append(f"{name} = comms.splat %none : {self.kind} -> {self.tensor(length)}")
            return name
        part = self.lots.choice(parts)
        view, at = self.view(into, who, part), self.place(into, part, length)
        valid, name = self.valid(into, length), self.name()
        into.append(f"{name} = comms.tile_load {view}[{at}]{valid}{after} : {self.memref} -> {self.tensor(length)}")
        return name

    def computed(self, into: list[str], who: Agent, length: int, after: str = "") -> str:
        tile = self.load(into, who, length, after)
        for _ in range(self.lots.randint(0, 2)):
            name, real = self.name(), self.kind[0] != "i"
            if self.lots.random() < 0.25:
                row, spread = self.name(), self.name()
                into.append(f"{row} = comms.row_reduce max {tile} : {self.tensor(length)} -> {self.tensor(1)}")
                into.append(f"{spread} = comms.broadcast_row {row} : {self.tensor(1)} -> {self.tensor(length)}")
                other = spread
            else:
                other = self.load(into, who, length)
            op = self.lots.choice(["addf", "subf", "maximumf"] if real else ["addi", "subi", "xori"])
            into.append(f"{name} = arith.{op} {tile}, {other} : {self.tensor(length)}")
            tile = name
        return tile

    def store(self, into: list[str], who: Agent, tile: str, length: int) -> None:
        parts = self.owned(who)
        if parts:
            part = self.lots.choice(parts)
            view, at = self.view(into, who, part), self.place(into, part, length)
            valid = self.valid(into, length)
            into.append(f"comms.tile_store {tile}, {view}[{at}]{valid} : {self.tensor(length)}, {self.memref}")

    def move(self, into: list[str], who: Agent) -> None:
        """One element."""
        parts = self.owned(who)
        if parts:
            source, target = self.lots.choice(parts), self.lots.choice(parts)
            name, view = self.name(), self.view(into, who, source)
            into.append(f"{name} = memref.load {view}[{self.place(into, source, 1)}] : {self.memref}")
            view = self.view(into, who, target)
            into.append(f"memref.store {name}, {view}[{self.place(into, target, 1)}] : {self.memref}")

    def get(self, into: list[str], who: Agent) -> None:
        sources, targets = self.owned(who, "w"), self.owned(who, rank=who.rank)
        if sources and targets and sources != targets:
            source = self.lots.choice(sources)
            target = self.lots.choice(targets)
            if source == target:
                return
            view, length = "%array" if target.memory == "a" else "%local", self.length()
            a, b = self.place(into, source, length), self.place(into, target, length)
            peer, count = self.number(into, source.rank), self.number(into, length)
            into.append(
                f"comms.get %window[{a}] to {view}[{b}] count {count} at {peer} of %team : {self.window}, {self.memref}"
            )

    def bulk(self, into: list[str], who: Agent) -> None:
        """Copies at once, of words of 16 bytes, to parts that nothing else of them touches."""
        parts = self.lots.sample(self.owned(who), len(self.owned(who)))
        copies = list[str]()
        into.append("comms.fence acq_rel sys proxy async")
        for source, target in zip(parts[::2], parts[1::2], strict=False):
            length, most = self.lots.randrange(self.word, PART + 1, self.word), PART // self.word
            start = self.lots.randint(0, most - length // self.word) * self.word
            views = [self.view(into, who, part) for part in (source, target)]
            a, b = self.number(into, source.number * PART + start), self.number(into, target.number * PART)
            count, name = self.number(into, length), self.name()
            into.append(
                f"{name} = comms.bulk_copy {views[0]}[{a}] to {views[1]}[{b}] count {count}"
                f" : {self.memref}, {self.memref}"
            )
            copies.append(name)
        if copies:
            into.append(f"{self.name()} = comms.bulk_wait {', '.join(copies)}")
            into.append("comms.fence acq_rel sys proxy async")

    def some(self, into: list[str], who: Agent, after: str = "") -> None:
        """Work on what the block has."""
        for _ in range(self.lots.randint(0, 3)):
            choice, length = self.lots.random(), self.length()
            if choice < 0.15:
                self.move(into, who)
            elif choice < 0.25:
                self.get(into, who)
            elif choice < 0.35:
                self.bulk(into, who)
            else:
                self.store(into, who, self.computed(into, who, length, after), length)

    def work(self) -> None:
        who, text = self.lots.choice(self.agents), list[str]()
        self.some(text, who)
        if text and self.lots.random() < 0.3:
            text = ["scf.for %unused = %c0 to %one step %c1 {", *text, "}"]
        self.steps.append((who, text))

    # Handing on -------------------------------------------------------------------------------------------------------

    def two(self) -> tuple[Agent, Agent]:
        giver, taker = self.lots.sample(self.agents, 2)
        return giver, taker

    def put(self, into: list[str], giver: Agent, taker: Agent) -> tuple[str, Part] | None:
        """The beginning of a put to a part that the taker will have."""
        sources, targets = self.owned(giver, rank=giver.rank), self.owned(giver, "w", taker.rank)
        if not sources or not targets:
            return None
        source, target = self.lots.choice(sources), self.lots.choice(targets)
        if source == target:
            return None
        view, length = "%array" if source.memory == "a" else "%local", self.length()
        a, b = self.place(into, source, length), self.place(into, target, length)
        peer, count = self.number(into, taker.rank), self.number(into, length)
        return f" {view}[{a}] to %window[{b}] count {count} at {peer} of %team", target

    def begun(self, into: list[str], giver: Agent, taker: Agent, put: str, target: Part) -> None:
        """A put; what it has read is written again now and then, before it is known to have come."""
        choice, types = self.lots.choice(["counted", "flushed", "plain"]), f"{self.memref}, {self.window}"
        if choice == "counted":
            cell, cells = self.number(into, self.counts), "!comms.counter<COUNTS>"
            into.append(f"comms.put{put} counted %counts[{cell}] : {cells} : {types}")
            into.append(f"{self.name()} = comms.wait_counter %counts[{cell}] ge %launch : {cells}")
            self.counts += 1
        else:
            into.append(f"comms.put{put} : {types}")
            into += ["comms.flush %team"] * (choice == "flushed")
        self.owners[target] = taker
        if choice != "plain":
            self.some(into, giver)

    def signal(self) -> None:
        """Parts go with a cell of their own, which counts all launches or is reset in each."""
        giver, taker = self.two()
        near = giver.rank == taker.rank
        give, take = list[str](), list[str]()
        self.some(give, giver)
        how, reset = self.lots.choice(["inc", "add", "set"]), self.lots.random() < 0.2
        step = self.lots.randint(2, 9) if how == "add" else 1
        launch = "%first_launch" if reset else "%launch"
        wanted = launch if step == 1 else self.name()
        given = {"inc": "", "set": f" value {launch}", "add": f" value {wanted}s"}[how]
        if how == "add":
            for text in (give, take):
                text.append(f"{wanted}s = arith.constant {step} : i64")
            take.append(f"{wanted} = arith.muli {launch}, {wanted}s : i64")
        cell, peer = self.number(give, self.cells), self.number(give, taker.rank)
        scope = self.lots.choice(["gpu", "sys"]) if near else "sys"
        started = self.put(give, giver, taker) if self.lots.random() < 0.5 else None
        besides = [started[1]] if started else []
        types = f"{self.memref}, {self.window}"
        if started and self.lots.random() < 0.5:
            give.append(
                f"comms.put_signal{started[0]} then {how} %cells[{cell}]{given} : {types}, !comms.signal<CELLS>"
            )
        else:
            if started:
                self.begun(give, giver, taker, *started)
            relaxed = ""
            if self.lots.random() < 0.4:
                order = self.lots.choice(["release", "acq_rel"])
                give.append(f"comms.fence {order} {'sys' if started else scope}")
                relaxed = " order relaxed"
            # The rank of a block of one's own is what the scope is checked by.
            peer = "%me" if near and scope == "gpu" else peer
            scoped = f" scope {scope}" if scope == "gpu" else ""
            give.append(
                f"comms.signal {how} %cells[{cell}]{given} at {peer} of %team{relaxed}{scoped} : !comms.signal<CELLS>"
            )
        token = self.wait(take, giver, wanted, near)
        if reset:
            cell = self.number(take, self.cells)
            take.append(f"comms.reset_signal %cells[{cell}] : !comms.signal<CELLS>")
        self.hand(giver, taker, besides)
        self.some(take, taker, token)
        self.steps += [(giver, give), (taker, take)]
        self.cells += 1

    def wait(self, into: list[str], giver: Agent, wanted: str, near: bool) -> str:
        cell, token = self.number(into, self.cells), self.name()
        kind, relaxed = self.lots.choice(["ge", "eq"]), self.lots.random() < 0.4
        order = " order relaxed" if relaxed else ""
        if self.lots.random() < 0.3:
            peer = self.number(into, giver.rank)
            into.append(
                f"{token} = comms.wait_signal_from %cells[{cell}] {kind} {wanted} from {peer} of %team{order}"
                " : !comms.signal<CELLS>"
            )
        else:
            into.append(f"{token} = comms.wait_signal %cells[{cell}] {kind} {wanted}{order} : !comms.signal<CELLS>")
        if relaxed:
            scope = self.lots.choice(["gpu", "sys"]) if near else "sys"
            into.append(f"comms.fence {self.lots.choice(['acquire', 'acq_rel'])} {scope}")
        return f" after {token}" if self.lots.random() < 0.5 else ""

    def packets(self) -> None:
        """A tile goes in packets; parts with it where there are fences."""
        giver, taker = self.two()
        length, give, take = self.length(), list[str](), list[str]()
        self.some(give, giver)
        tile, fenced = self.computed(give, giver, length), self.lots.random() < 0.5
        poison = self.kind[0] != "i" and self.lots.random() < 0.4
        number = self.shells if poison else self.boxes
        name, box = ("%shells", self.shell) if poison else ("%boxes", self.box)
        peer, view, own, got = self.number(give, taker.rank), self.name(), self.name(), self.name()
        a, b = self.number(give, number * BOX), self.number(take, number * BOX)
        give.append(f"{view} = comms.peer {name} at {peer} of %team : !comms.window<{box}> -> memref<{box}>")
        take.append(f"{own} = comms.local {name} : !comms.window<{box}> -> memref<{box}>")
        if fenced:
            give.append("comms.fence release sys")
        tensor = self.tensor(length)
        if poison:
            self.shells += 1
            give.append(f"comms.poison_store {tile}, {view}[{a}] : {tensor}, memref<{box}>")
            take.append(f"{got} = comms.poison_load {own}[{b}] : memref<{box}> -> {tensor}")
        else:
            self.boxes += 1
            give.append(f"comms.packet_store {tile}, {view}[{a}] flag %flag : {tensor}, memref<{box}>")
            take.append(f"{got} = comms.packet_load {own}[{b}] flag %flag : memref<{box}> -> {tensor}")
        if fenced:
            take.append("comms.fence acquire sys")
            self.hand(giver, taker)
        self.store(take, taker, got, length)
        self.some(take, taker)
        self.steps += [(giver, give), (taker, take)]

    @property
    def box(self) -> str:
        return "BOXESxi64"

    @property
    def shell(self) -> str:
        return f"SHELLSx{self.kind}"

    # Everybody --------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes the steps: one after the other, or all of a block in one branch."""
        steps, self.steps = self.steps, []
        if self.lots.random() < 0.6:
            joined = {who: list[str]() for who, _ in steps}
            for who, text in steps:
                joined[who] += text
            steps = list(joined.items())
            self.lots.shuffle(steps)
        for who, text in steps:
            if not text:
                continue
            if self.lots.random() < 0.2:
                role = f'comms.role "{self.name()[1:]}" blocks {who.block} to {who.block + 1} {{'
                self.lines += [role, f"scf.if %isr{who.rank}_{who.block} {{", *text, "}", "}"]
            else:
                self.lines += [f"scf.if %is{who.rank}_{who.block} {{", *text, "}"]

    def barrier(self) -> None:
        self.meet(self.lots.choice(self.teams), self.lots.choice(["block", "grid"]), busy=True)

    def meet(self, team: Team, extent: str, busy: bool = False) -> None:
        """A barrier; `busy`: with work between its halves."""
        self.flush()
        fenced = self.lots.random() < 0.3
        self.lines += ["comms.fence release sys"] * fenced
        before = dict(self.owners)
        for ranks in team.parts:
            for blocks in [list(range(self.blocks))] if extent == "grid" else [[n] for n in range(self.blocks)]:
                self.deal([agent for agent in self.agents if agent.rank in ranks and agent.block in blocks])
        if self.lots.random() < 0.3:
            come, all_ = self.name(), self.name()
            order = " order relaxed" if fenced else ""
            self.lines.append(f"{come} = comms.barrier_arrive {team.name} {extent}{order}")
            if busy:
                self.between(before)
            self.lines.append(f"{all_} = comms.barrier_wait {come}{order}")
        else:
            self.lines.append(f"comms.barrier {team.name} {extent}{' order relaxed' * fenced}")
        self.lines += ["comms.fence acquire sys"] * fenced

    def between(self, before: dict[Part, Agent]) -> None:
        """Work between the halves of a barrier, on what is not handed on."""
        after, self.owners = self.owners, {part: who for part, who in self.owners.items() if before[part] == who}
        for _ in range(self.lots.randint(0, 2)):
            self.work()
        self.flush()
        self.owners = after

    def everybody(self, length: int = 0) -> tuple[list[str], str, int, str]:
        """Text that all blocks run, and in it the beginning of a part of the array that each has, a length, a tile."""
        length = length or self.length()
        self.meet(self.teams[0], "grid")
        for agent in self.agents:
            self.owners[Part(agent.rank, "a", agent.block)] = agent
        at, tile = self.name(), self.name()
        load = f"{tile} = comms.tile_load %array[{at}] : {self.memref} -> {self.tensor(length)}"
        return [f"{at} = arith.muli %block, %cPART : index", load], at, length, tile

    def keep(self, text: list[str], at: str, tile: str, length: int) -> None:
        """Ends such text by a tile that is stored there."""
        self.lines += [*text, f"comms.tile_store {tile}, %array[{at}] : {self.tensor(length)}, {self.memref}"]

    def added(self, into: list[str], a: str, b: str, length: int) -> str:
        name = self.name()
        into.append(f"{name} = arith.{'addi' if self.kind[0] == 'i' else 'addf'} {a}, {b} : {self.tensor(length)}")
        return name

    def channel(self) -> None:
        """Tiles go through the slots of a channel, round after round where it is reused."""
        poison = self.kind in ("f32", "bf16")
        protocol = self.lots.choice([one for one in PROTOCOLS if poison or one != "lamport"])
        pattern = self.lots.choice(["multicast", "pairwise", "single"] if self.ranks > 1 else ["multicast"])
        reused, slots = protocol in ("pull", "push") and self.lots.random() < 0.6, self.lots.randint(1, 2)
        text, at, length, tile = self.everybody(PART if protocol == "ll128" else self.length())
        kind, tensor = f"!comms.channel<{protocol}, {length}x{self.kind}>", self.tensor(length)
        name, result, carried = self.name(), self.name(), self.name()
        head = f"{name} = comms.channel {self.channels} {pattern} over %team slots {slots * self.blocks}"
        head += f"{' reused' * reused} : {kind}"
        self.channels += 1
        rounds, valid = self.number(text, self.lots.randint(1, 3) if reused else 1), self.valid(text, length)
        trips = f"scf.for {self.name()} = %c0 to {rounds} step %c1 iter_args({carried} = {tile}) -> ({tensor}) {{"
        body = ["comms.barrier %team block"] * reused
        first, count = self.name(), self.number(text, slots)
        text.append(f"{first} = arith.muli %block, {count} : index")
        numbers = [self.name() for _ in range(slots)]
        for place, number in enumerate(numbers):
            text.append(f"{number} = arith.addi {first}, {self.number(text, place)} : index")
        peers = [self.number(text, rank) for rank in range(self.ranks)]
        targets = {"multicast": [""], "single": [" to %next"], "pairwise": [f" to {peer}" for peer in peers]}[pattern]
        others = {"multicast": peers, "single": ["%before"], "pairwise": peers}[pattern]
        mine = carried if reused else tile
        for slot in numbers:
            for rank, to in enumerate(targets):
                send = [f"comms.send {mine} on {name}[{slot}]{to}{valid} : {tensor}, {kind}"]
                body += self.but(rank, send) if pattern == "pairwise" else send
            mine = self.added(body, mine, tile, length)
        body.append(f"comms.channel_barrier {name} : {kind}")
        for slot in numbers:
            for rank, peer in enumerate(others):
                got = self.name()
                receive = f"{got} = comms.recv {name}[{slot}] from {peer}{valid} : {kind} -> {tensor}"
                if pattern == "pairwise":
                    there, chosen = self.name(), self.name()
                    body.append(f"{there} = arith.cmpi ne, %me, %r{rank}_0 : index")
                    body += [f"{chosen} = scf.if {there} -> ({tensor}) {{", receive, f"scf.yield {got} : {tensor}"]
                    body += ["} else {", f"scf.yield {tile} : {tensor}", "}"]
                    got = chosen
                else:
                    body.append(receive)
                mine = self.added(body, mine, got, length)
        if reused:
            body += [f"scf.yield {mine} : {tensor}", "}"]
            body, mine = [f"{result} = {trips}", *body], result
        self.keep([*text, head, *body], at, mine, length)

    def but(self, rank: int, text: list[str]) -> list[str]:
        """The text for all other ranks."""
        there = self.name()
        return [f"{there} = arith.cmpi ne, %me, %r{rank}_0 : index", f"scf.if {there} {{", *text, "}"]

    def collective(self) -> None:
        """A collective of memory of its own, filled by the blocks before it and read by them behind it."""
        text, at, length, tile = self.everybody()
        size, number = PART * self.blocks * self.ranks, len(self.arguments)
        exact = ["max", "min"] if self.kind[0] == "f" or self.kind == "bf16" else ["sum", "max", "xor"]
        what = self.lots.choice(["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"])
        head = {"all_reduce": f" {self.lots.choice(exact)}", "reduce_scatter": f" {self.lots.choice(exact)}"}
        head |= {"broadcast": f" root {self.lots.randrange(self.ranks)}"}
        ways = ["one_shot"] * (what != "broadcast") + ["ring"] * (what != "all_to_all") + ["permutation"]
        algorithm = self.lots.choice(ways + ["two_shot"] * (what in ("all_reduce", "broadcast")))
        protocol = "push" if algorithm == "permutation" else self.lots.choice(["ll", "pull", "push"])
        way = f'{{algorithm = "{algorithm}", protocol = "{protocol}"}}'
        sizes = {"all_gather": (size // self.ranks, size), "reduce_scatter": (size, size // self.ranks)}
        first, last = sizes.get(what, (size, size))
        windows = [f"!comms.window<{first}x{self.kind}>", f"!comms.window<{last}x{self.kind}>"]
        views = [f"memref<{first}x{self.kind}>", f"memref<{last}x{self.kind}>"]
        self.arguments += [f"%in{number}: {windows[0]}", f"%out{number}: {windows[1]}"]
        mine, theirs, got = self.name(), self.name(), self.name()
        text += [
            f"{mine} = comms.local %in{number} : {windows[0]} -> {views[0]}",
            f"comms.tile_store {tile}, {mine}[{at}] : {self.tensor(length)}, {views[0]}",
            "comms.barrier %team grid",
            f"comms.{what}{head.get(what, '')} %team ins(%in{number} : {windows[0]})"
            f" outs(%out{number} : {windows[1]}) {way}",
            "comms.barrier %team grid",
            f"{theirs} = comms.local %out{number} : {windows[1]} -> {views[1]}",
            f"{got} = comms.tile_load {theirs}[{at}] : {views[1]} -> {self.tensor(length)}",
        ]
        self.keep(text, at, self.added(text, tile, got, length), length)

    def switch(self) -> None:
        """Accesses to all ranks at once, each block to a part of its own."""
        text, at, length, tile = self.everybody()
        size, number, tensor = PART * self.blocks * self.ranks, len(self.arguments), self.tensor(PART)
        window, view = f"!comms.window<{size}x{self.kind}>", f"memref<{size}x{self.kind}>"
        all_view = f"memref<{size}x{self.kind}, #comms.space<multimem>>"
        self.arguments.append(f"%all{number}: {window}")
        v = [self.name() for _ in range(9)]
        text += [
            f"{v[0]} = comms.multimem %all{number} of %team : {window} -> {all_view}",
            f"{v[1]} = comms.local %all{number} : {window} -> {view}",
            f"{v[2]} = comms.tile_load %array[{at}] : {self.memref} -> {tensor}",
            f"{v[3]} = arith.constant {self.blocks} : index",
            f"{v[4]} = arith.muli %me, {v[3]} : index",
            f"{v[5]} = arith.addi {v[4]}, %block : index",
            f"{v[6]} = arith.muli {v[5]}, %cPART : index",
        ]
        fence, barrier = "comms.fence acq_rel sys proxy alias", "comms.barrier %team grid"
        # Sums of floats, and their greatest where there are NaN, are the switch's own.
        kinds = ["sum", "max", "xor"] if self.kind in ("i32", "i64") else []
        choice = self.lots.choice(["load", "reduce", "store"] if kinds else ["store"])
        kind = self.lots.choice(kinds or [""])
        if choice == "load":
            text.append(f"comms.tile_store {v[2]}, {v[1]}[{at}] : {tensor}, {view}")
            text += [fence, barrier, fence]
            text.append(f"{v[7]} = comms.multimem_load_reduce {kind} {v[0]}[{at}] : {all_view} -> {tensor}")
        else:
            where = v[6] if choice == "store" else at
            op = "multimem_store" if choice == "store" else f"multimem_reduce {kind}"
            text.append(fence)
            text.append(f"comms.{op} {v[2]}, {v[0]}[{where}] : {tensor}, {all_view}")
            text += [fence, barrier, fence]
            text.append(f"{v[7]} = comms.tile_load {v[1]}[{at}] : {view} -> {tensor}")
        text.append(f"comms.tile_store {v[7]}, %array[{at}] : {tensor}, {self.memref}")
        self.lines += text
        self.meet(self.teams[0], "grid")

    def crowd(self) -> None:
        """Every block puts to the same block of all other ranks, signals them, and waits for all."""
        text, at, length, tile = self.everybody()
        for agent in self.agents:
            for rank in range(self.ranks):
                self.owners[Part(agent.rank, "w", rank * self.blocks + agent.block)] = agent
        v, cells = [self.name() for _ in range(20)], "!comms.signal<CELLS>"
        back, counted = " reversed" * (self.lots.random() < 0.5), self.lots.random() < 0.5
        text += [
            f"{v[0]} = arith.constant {self.blocks} : index",
            f"{v[1]} = arith.muli %me, {v[0]} : index",
            f"{v[2]} = arith.addi {v[1]}, %block : index",
            f"{v[3]} = arith.muli {v[2]}, %cPART : index",
            f"{v[4]} = arith.constant {self.cells} : index",
            f"{v[5]} = arith.addi {v[4]}, %block : index",
            f"{v[6]} = arith.constant {self.ranks - 1} : i64",
            f"{v[7]} = arith.muli %launch, {v[6]} : i64",
        ]
        count = self.number(text, length)
        put = f"%array[{at}] to %window[{v[3]}] count {count} at {v[8]} of %team"
        types = f"{self.memref}, {self.window}"
        signal = f"comms.signal inc %cells[{v[5]}] at {v[8]} of %team : {cells}"
        both = f"comms.put_signal {put} then inc %cells[{v[5]}] : {types}, {cells}"
        text += [f"comms.for_peers %team{back} as {v[8]} {{"]
        text += [f"comms.put {put} : {types}", signal] if counted else [both]
        text += ["}", f"{v[9]} = comms.wait_signal %cells[{v[5]}] ge {v[7]} : {cells}"]
        for rank in range(self.ranks):
            there, part, got, chosen = (self.name() for _ in range(4))
            text += [
                f"{part} = arith.constant {rank * self.blocks * PART} : index",
                f"{there} = arith.addi {part}, {at} : index",
                f"{got} = comms.tile_load %local[{there}] after {v[9]} : {self.memref} -> {self.tensor(length)}",
            ]
            tile = self.added(text, tile, got, length)
        self.cells += self.blocks
        self.keep(text, at, tile, length)

    def shift(self) -> None:
        """Every block puts to the same block of its rank's successor, in code that all have in common."""
        self.meet(self.teams[0], "grid")
        for agent in self.agents:
            after = (agent.rank + 1) % self.ranks
            self.owners[Part(agent.rank, "a", agent.block)] = agent
            self.owners[Part(after, "w", agent.block)] = agent
        text, length = list[str](), self.length()
        at, put = self.name(), self.lots.random() < 0.5
        text.append(f"{at} = arith.muli %block, %cPART : index")
        first, count = self.number(text, self.cells), self.number(text, length)
        cell = self.name()
        text.append(f"{cell} = arith.addi {first}, %block : index")
        tile, token, got = self.name(), self.name(), self.name()
        text.append(f"{tile} = comms.tile_load %array[{at}] : {self.memref} -> {self.tensor(length)}")
        twice = self.name()
        op = "addi" if self.kind[0] == "i" else "addf"
        text.append(f"{twice} = arith.{op} {tile}, {tile} : {self.tensor(length)}")
        if put:
            text.append(f"comms.tile_store {twice}, %array[{at}] : {self.tensor(length)}, {self.memref}")
            text.append(
                f"comms.put_signal %array[{at}] to %window[{at}] count {count} at %next of %team then inc"
                f" %cells[{cell}] : {self.memref}, {self.window}, !comms.signal<CELLS>"
            )
        else:
            view = self.name()
            text.append(f"{view} = comms.peer %window at %next of %team : {self.window} -> {self.memref}")
            text.append(f"comms.tile_store {twice}, {view}[{at}] : {self.tensor(length)}, {self.memref}")
            text.append(f"comms.signal inc %cells[{cell}] at %next of %team : !comms.signal<CELLS>")
        text.append(f"{token} = comms.wait_signal %cells[{cell}] ge %launch : !comms.signal<CELLS>")
        text.append(f"{got} = comms.tile_load %local[{at}] after {token} : {self.memref} -> {self.tensor(length)}")
        text.append(f"comms.tile_store {got}, %array[{at}] : {self.tensor(length)}, {self.memref}")
        self.cells += self.blocks
        for agent in self.agents:
            self.owners[Part(agent.rank, "w", agent.block)] = agent
        self.lines += text

    def ring(self) -> None:
        """A tile goes around in a loop, through two parts of each window; who has read one lets it be written again."""
        self.meet(self.teams[0], "grid")
        rounds, length, fenced = self.lots.randint(2, 4), self.length(), self.lots.random() < 0.4
        for agent in self.agents:
            self.owners[Part(agent.rank, "a", agent.block)] = agent
        tensor, cells, order = self.tensor(length), "!comms.signal<CELLS>", " order relaxed" * fenced
        release, acquire = ["comms.fence release sys"] * fenced, ["comms.fence acquire sys"] * fenced
        v = [self.name() for _ in range(30)]
        text = [
            f"{v[0]} = arith.constant {rounds} : index",
            f"{v[1]} = arith.constant {rounds - 2} : index",
            f"{v[2]} = arith.constant {PARTS * PART} : index",
            f"{v[3]} = arith.subi %epoch, %c1 : index",
            f"{v[4]} = arith.muli {v[3]}, {v[0]} : index",
            f"{v[5]} = arith.muli {v[3]}, {v[1]} : index",
            f"{v[6]} = arith.muli %block, {v[2]} : index",
            f"{v[7]} = arith.constant {self.cells} : index",
            f"{v[8]} = arith.constant {self.cells + self.blocks} : index",
            f"{v[9]} = arith.addi {v[7]}, %block : index",
            f"{v[10]} = arith.addi {v[8]}, %block : index",
            f"{v[11]} = arith.muli %block, %cPART : index",
            f"{v[12]} = comms.tile_load %array[{v[11]}] : {self.memref} -> {tensor}",
            f"{v[13]} = comms.peer %window at %next of %team : {self.window} -> {self.memref}",
        ]
        trips = self.number(text, rounds)
        text += [
            f"{v[14]} = scf.for {v[15]} = %c0 to {trips} step %c1 iter_args({v[16]} = {v[12]}) -> ({tensor}) {{",
            f"{v[17]} = arith.remui {v[15]}, %c2 : index",
            f"{v[18]} = arith.muli {v[17]}, %cPART : index",
            f"{v[19]} = arith.addi {v[6]}, {v[18]} : index",
            f"{v[20]} = arith.cmpi uge, {v[15]}, %c2 : index",
            f"scf.if {v[20]} {{",
            f"{v[21]} = arith.subi {v[15]}, %c1 : index",
            f"{v[22]} = arith.addi {v[5]}, {v[21]} : index",
            f"{v[22]}w = arith.index_cast {v[22]} : index to i64",
            f"{v[22]}t = comms.wait_signal %cells[{v[10]}] ge {v[22]}w{order} : {cells}",
            *acquire,
            "}",
            f"comms.tile_store {v[16]}, {v[13]}[{v[19]}] : {tensor}, {self.memref}",
            *release,
            f"comms.signal inc %cells[{v[9]}] at %next of %team{order} : {cells}",
            f"{v[23]} = arith.addi {v[4]}, {v[15]} : index",
            f"{v[24]} = arith.addi {v[23]}, %c1 : index",
            f"{v[24]}w = arith.index_cast {v[24]} : index to i64",
            f"{v[24]}t = comms.wait_signal %cells[{v[9]}] ge {v[24]}w{order} : {cells}",
            *acquire,
            f"{v[25]} = comms.tile_load %local[{v[19]}] after {v[24]}t : {self.memref} -> {tensor}",
            f"{v[26]} = arith.addi {v[15]}, %c2 : index",
            f"{v[27]} = arith.cmpi ult, {v[26]}, {v[0]} : index",
            f"scf.if {v[27]} {{",
            *release,
            f"comms.signal inc %cells[{v[10]}] at %before of %team{order} : {cells}",
            "}",
            f"{v[28]} = arith.{'addi' if self.kind[0] == 'i' else 'addf'} {v[16]}, {v[25]} : {tensor}",
            f"scf.yield {v[28]} : {tensor}",
            "}",
            f"comms.tile_store {v[14]}, %array[{v[11]}] : {tensor}, {self.memref}",
        ]
        self.cells += 2 * self.blocks
        for agent in self.agents:
            for number in (0, 1):
                self.owners[Part(agent.rank, "w", agent.block * PARTS + number)] = agent
        self.lines += text

    def text(self) -> str:
        ways: dict[Callable[[], None], float]
        ways = {self.work: 3, self.signal: 6, self.packets: 4, self.barrier: 2, self.shift: 1, self.ring: 1}
        ways |= {self.channel: 1.5, self.collective: 0.7, self.switch: 0.5 * self.multicast}
        ways |= {self.crowd: float(1 < self.ranks <= PARTS)}
        for _ in range(self.lots.randint(6, 14)):
            self.lots.choices(list(ways), list(ways.values()))[0]()
        self.meet(self.teams[0], "grid")
        half = len(self.teams[1].parts[0])
        head = [
            "%team = comms.team world",
            f"%inner = comms.team_split %team inner {half}",
            f"%outer = comms.team_split %team outer {half}",
            "%first_launch = arith.constant 1 : i64",
            "%me = comms.rank %team",
            "%block = comms.block_id",
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%c2 = arith.constant 2 : index",
            "%c40 = arith.constant 40 : index",
            f"%cPART = arith.constant {PART} : index",
            f"%cranks = arith.constant {self.ranks} : index",
            f"%none = arith.constant {'0' if self.kind[0] == 'i' else '0.0'} : {self.kind}",
            "%epoch = comms.epoch",
            "%launch = arith.index_cast %epoch : index to i64",
            "%flag = arith.index_cast %epoch : index to i32",
            "%zero = arith.shrui %epoch, %c40 : index",
            "%one = arith.addi %zero, %c1 : index",
            "%after = arith.addi %me, %c1 : index",
            "%next = arith.remui %after, %cranks : index",
            f"%last = arith.constant {self.ranks - 1} : index",
            "%around = arith.addi %me, %last : index",
            "%before = arith.remui %around, %cranks : index",
            f"%local = comms.local %window : {self.window} -> {self.memref}",
        ]
        for rank, block in self.agents:
            head += [
                f"%r{rank}_{block} = arith.constant {rank} : index",
                f"%b{rank}_{block} = arith.constant {block} : index",
                f"%isr{rank}_{block} = arith.cmpi eq, %me, %r{rank}_{block} : index",
                f"%isb{rank}_{block} = arith.cmpi eq, %block, %b{rank}_{block} : index",
                f"%is{rank}_{block} = arith.andi %isr{rank}_{block}, %isb{rank}_{block} : i1",
            ]
        arguments = f"%window: {self.window}, %array: {self.memref}, %cells: !comms.signal<CELLS>"
        arguments += f", %boxes: !comms.window<{self.box}>, %counts: !comms.counter<COUNTS>"
        arguments += "".join(f", {argument}" for argument in self.arguments)
        if self.shells:
            arguments += f", %shells: !comms.window<{self.shell}>"
            # Block 0 empties what comes as poison before anybody stores there.
            head += [
                f"%shell = comms.local %shells : !comms.window<{self.shell}> -> memref<{self.shell}>",
                "%first = arith.cmpi eq, %block, %c0 : index",
                "%empty = arith.constant SHELLS : index",
                "scf.if %first {",
                f"comms.poison_fill %shell[%c0] count %empty : memref<{self.shell}>",
                "}",
                "comms.barrier %team grid",
            ]
        lines = [f"comms.kernel @program({arguments}) attributes {{blocks = {self.blocks} : i64}} {{"]
        depth = 1
        for line in head + self.lines + ["comms.return"]:
            depth -= line == "}"
            lines.append("  " * depth + line)
            depth += line.endswith("{")
        text = "\n".join(lines) + "\n}\n"
        sizes = {"CELLS": self.cells, "COUNTS": self.counts, "BOXES": self.boxes * BOX, "SHELLS": self.shells * BOX}
        for word, count in sizes.items():
            text = text.replace(word, str(max(count, 2)))
        return text
