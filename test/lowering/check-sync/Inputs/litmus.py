"""Enumerates the executions that the memory model (docs/Spec.md, M4 to M8, M12 to M14) allows of small programs.

Usage: litmus.py FILE.mlir

Comments after each kernel of the file (parts are split by "// -----") list the possible outcomes of its reads:

    // outcomes: 1:y 1:x in 00 01 11
    // final: 0:s[0] 0:s[1] in 11 12 21 22
    // race

The first line names reads, by rank (and block, if there are several: 0.1) and SSA name; the second names cells at the
end. Each lists all combinations of values in some execution, and no others. A program with a race says so instead. This
program parses the text itself: constants, ranks and blocks, conditions on them, signals, reads, waits, fences,
barriers, and accesses to one element of a window.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

Agent = tuple[int, int]
Place = tuple[str, int, int]


@dataclass
class Event:
    """One access to a cell or element, a fence, or a visit of a barrier."""

    number: int
    agent: Agent
    kind: str  # read, write, update, fence, arrive, depart
    place: Place | None = None
    order: str = "relaxed"
    scope: str = "sys"
    amount: int = 0
    least: int | None = None
    name: str = ""
    weak: bool = False
    barrier: int = -1

    @property
    def writes(self) -> bool:
        return self.kind in ("write", "update")

    @property
    def reads(self) -> bool:
        return self.kind in ("read", "update")

    def reaches(self, other: Event) -> bool:
        """Whether its scope includes the agent of the other (M6)."""
        if self.agent == other.agent:
            return True
        return self.scope == "sys" or (self.scope == "gpu" and self.agent[0] == other.agent[0])


@dataclass
class Agents:
    """The events of each agent, from the text of a kernel."""

    text: str
    events: list[Event] = field(default_factory=list)
    ranks: int = 1
    blocks: int = 1

    def __post_init__(self) -> None:
        for word in ("ranks", "blocks"):
            if found := re.search(rf"\b{word} = (\d+)", self.text):
                setattr(self, word, int(found[1]))
        body = self.text[self.text.index("{", self.text.index("attributes {") + 12) + 1 :].splitlines()
        for agent in itertools.product(range(self.ranks), range(self.blocks)):
            self.follow(agent, [line.split("//")[0].strip() for line in body])

    def follow(self, agent: Agent, lines: list[str]) -> None:
        known: dict[str, int] = {}
        skipped = visits = 0
        depth: list[bool] = []
        for line in lines:
            if line.startswith("scf.if"):
                condition = re.match(r"scf\.if (%\w+) \{", line)
                assert condition, line
                depth.append(not skipped and bool(known[condition[1]]))
                skipped += not depth[-1]
            elif line == "}":
                if not depth:
                    return
                skipped -= not depth.pop()
            elif line and not skipped:
                visits = self.step(agent, line, known, visits)

    def step(self, agent: Agent, line: str, known: dict[str, int], visits: int) -> int:
        add = self.events.append
        number = len(self.events)

        def attribute(name: str, default: str) -> str:
            found = re.search(rf"\b{name} (\w+)", line)
            return found[1] if found else default

        if found := re.match(r"(%\w+) = arith\.constant (?:dense<)?(-?\d+)(?:\.0>)? :", line):
            known[found[1]] = int(found[2])
        elif found := re.match(r"(%\w+) = comms\.(rank|block_id)", line):
            known[found[1]] = agent[0 if found[2] == "rank" else 1]
        elif found := re.match(r"(%\w+) = arith\.(\w+) (?:eq, )?(%\w+), (%\w+) :", line):
            a, b = known[found[3]], known[found[4]]
            known[found[1]] = {"cmpi": int(a == b), "andi": a & b, "addi": a + b, "muli": a * b}[found[2]]
        elif found := re.match(r"comms\.signal (set|inc|add) (%\w+)\[(%\w+)\](?: value (%\w+))? at (%\w+)", line):
            place = (found[2], known[found[5]], known[found[3]])
            amount = known[found[4]] if found[4] else 1
            kind = "write" if found[1] == "set" else "update"
            order, scope = attribute("order", "release"), attribute("scope", "sys")
            add(Event(number, agent, kind, place, order, scope, amount))
        elif found := re.match(r"(%\w+) = comms\.read_signal (%\w+)\[(%\w+)\]", line):
            place = (found[2], agent[0], known[found[3]])
            add(Event(number, agent, "read", place, attribute("order", "acquire"), name=found[1][1:]))
        elif found := re.match(r"%\w+ = comms\.wait_signal (%\w+)\[(%\w+)\] ge (%\w+)", line):
            place = (found[1], agent[0], known[found[2]])
            order, scope = attribute("order", "acquire"), attribute("scope", "sys")
            add(Event(number, agent, "read", place, order, scope, least=known[found[3]]))
        elif found := re.match(r"comms\.fence (\w+) (\w+)", line):
            add(Event(number, agent, "fence", None, found[1], found[2]))
        elif line.startswith("comms.barrier "):
            order = attribute("order", "acq_rel")
            for kind in ("arrive", "depart"):
                add(Event(len(self.events), agent, kind, None, order, barrier=visits))
            return visits + 1
        elif found := re.match(r"(%\w+) = comms\.peer (%\w+) at (%\w+)", line):
            known[found[1]] = known[found[3]]
            known[found[1] + " of"] = hash_of(found[2])
        elif found := re.match(r"(%\w+) = comms\.local (%\w+)", line):
            known[found[1]] = agent[0]
            known[found[1] + " of"] = hash_of(found[2])
        elif found := re.match(r"comms\.tile_store (%\w+), (%\w+)\[(%\w+)\]", line):
            place = (f"w{known[found[2] + ' of']}", known[found[2]], known[found[3]])
            add(Event(number, agent, "write", place, amount=known[found[1]], weak=True))
        elif found := re.match(r"(%\w+) = comms\.tile_load (%\w+)\[(%\w+)\]", line):
            place = (f"w{known[found[2] + ' of']}", known[found[2]], known[found[3]])
            add(Event(number, agent, "read", place, name=found[1][1:], weak=True))
        elif not re.match(r"%\w+ = comms\.team world|comms\.return", line):
            raise SystemExit(f"litmus.py does not know: {line}")
        return visits


def hash_of(name: str) -> int:
    """A number for a window's name."""
    return int.from_bytes(name.encode(), "big")


def closed(size: int, pairs: set[tuple[int, int]]) -> list[int]:
    """The transitive closure: for each event the events behind it, as bits."""
    after = [0] * size
    for a, b in pairs:
        after[a] |= 1 << b
    for middle in range(size):
        for a in range(size):
            if after[a] >> middle & 1:
                after[a] |= after[middle]
    return after


@dataclass
class Execution:
    """One choice of what reads read and of the order in which writes of a place are seen."""

    events: list[Event]
    source: dict[int, int]  # Reads: the write, or -1: the first value.
    seen: dict[Place, list[int]]  # Writes, from the first to the last.

    def value(self, write: int) -> int:
        """What a place holds after a write."""
        if write < 0:
            return 0
        event = self.events[write]
        return event.amount if event.kind == "write" else self.value(self.source[write]) + event.amount

    def contributes(self, read: int) -> Iterator[int]:
        """Writes whose value, or the sum to which they added, a read reads (M5)."""
        write = self.source[read]
        while write >= 0:
            yield write
            if self.events[write].kind == "write":
                return
            write = self.source[write]

    def releases(self, write: Event) -> Iterator[tuple[int, str]]:
        """Where release patterns that end in a write begin, and their scopes."""
        if write.weak:
            return
        if write.order in ("release", "acq_rel"):
            yield write.number, write.scope
        for fence in self.events[: write.number]:
            if fence.kind == "fence" and fence.agent == write.agent and fence.order in ("release", "acq_rel"):
                yield fence.number, fence.scope

    def acquires(self, read: Event) -> Iterator[tuple[int, str]]:
        if read.weak:
            return
        if read.order in ("acquire", "acq_rel") and read.kind == "read":
            yield read.number, read.scope
        for fence in self.events[read.number :]:
            if fence.kind == "fence" and fence.agent == read.agent and fence.order in ("acquire", "acq_rel"):
                yield fence.number, fence.scope

    def order(self) -> list[int]:
        """What comes before what (M4, M5, M6, M8, M12)."""
        pairs: set[tuple[int, int]] = set()
        for a, b in itertools.pairwise(self.events):
            if a.agent == b.agent:
                pairs.add((a.number, b.number))
        arrivals = [e for e in self.events if e.kind == "arrive" and e.order in ("release", "acq_rel")]
        departures = [e for e in self.events if e.kind == "depart" and e.order in ("acquire", "acq_rel")]
        for arrival, departure in itertools.product(arrivals, departures):
            if arrival.barrier == departure.barrier:
                pairs.add((arrival.number, departure.number))
        for number in self.source:
            read = self.events[number]
            for write in map(self.events.__getitem__, self.contributes(number)):
                for (first, given), (last, taken) in itertools.product(self.releases(write), self.acquires(read)):
                    release = Event(0, write.agent, "fence", scope=given)
                    acquire = Event(0, read.agent, "fence", scope=taken)
                    both = release.reaches(read) and acquire.reaches(write)
                    if both and write.reaches(read) and read.reaches(write) and write.agent != read.agent:
                        pairs.add((first, last))
        return closed(len(self.events), pairs)

    def judge(self) -> tuple[bool, bool]:
        """Whether the model allows it, and whether it has a race (M13, M14)."""
        after = self.order()

        def before(a: int, b: int) -> bool:
            return bool(after[a] >> b & 1)

        if any(before(e.number, e.number) for e in self.events):
            return False, False
        place_order: set[tuple[int, int]] = set()
        for place, writes in self.seen.items():
            position = {write: at for at, write in enumerate(writes)}
            for a, b in itertools.combinations(writes, 2):
                if before(b, a):
                    return False, False
                place_order.add((a, b))
            readers = [e for e in self.events if e.place == place and e.reads]
            for read in readers:
                source = self.source[read.number]
                if source >= 0 and before(read.number, source):
                    return False, False
                for write in writes:
                    later = source < 0 or position[write] > position[source]
                    if write == read.number or not later:
                        continue
                    # It reads from before this write.
                    if before(write, read.number):
                        return False, False
                    place_order.add((read.number, write))
                if source >= 0:
                    place_order.add((source, read.number))
                # What is read comes before what the read happens before.
                for write in () if read.weak else self.contributes(read.number):
                    newer = [b for b in writes if before(read.number, b) and position[b] < position[write]]
                    older = [
                        r
                        for r in readers
                        if before(read.number, r.number)
                        and (self.source[r.number] < 0 or position[self.source[r.number]] < position[write])
                    ]
                    if newer or older:
                        return False, False
            accesses = [e for e in self.events if e.place == place]
            place_order |= {(a.number, b.number) for a, b in itertools.combinations(accesses, 2) if a.agent == b.agent}
        # Each place is seen in one order by all.
        if any(row >> at & 1 for at, row in enumerate(closed(len(self.events), place_order))):
            return False, False
        race = any(
            a.agent != b.agent
            and a.place is not None
            and a.place == b.place
            and (a.writes or b.writes)
            and not (not a.weak and not b.weak and a.reaches(b) and b.reaches(a))
            and not before(a.number, b.number)
            and not before(b.number, a.number)
            for a, b in itertools.combinations(self.events, 2)
        )
        return True, race


def executions(events: list[Event]) -> Iterator[Execution]:
    """All choices in which waits are met."""
    places = sorted({e.place for e in events if e.place is not None})
    reads = [e for e in events if e.kind == "read"]
    orders = [itertools.permutations([e.number for e in events if e.place == p and e.writes]) for p in places]
    for chosen in itertools.product(*orders):
        seen = {place: list(writes) for place, writes in zip(places, chosen, strict=True)}
        updates = {}
        for writes in seen.values():
            for before, write in zip([-1, *writes], writes, strict=False):
                if events[write].kind == "update":
                    updates[write] = before
        options = [[-1, *seen[e.place]] for e in reads if e.place is not None]
        for sources in itertools.product(*options):
            made = Execution(events, {**updates, **{e.number: s for e, s in zip(reads, sources, strict=True)}}, seen)
            if all(e.least is None or made.value(made.source[e.number]) >= e.least for e in reads):
                yield made


def outcomes(agents: Agents, wanted: list[str], final: bool) -> tuple[set[str], bool]:
    """The values that what is named has in allowed executions, and whether one of them has a race."""
    found: set[str] = set()
    races = False
    for execution in executions(agents.events):
        allowed, race = execution.judge()
        if not allowed:
            continue
        races |= race
        values = []
        for name in wanted:
            who, what = name.split(":")
            rank, _, block = who.partition(".")
            if final:
                cell = re.match(r"(\w+)\[(\d+)\]", what)
                assert cell, name
                writes = execution.seen.get((f"%{cell[1]}", int(rank), int(cell[2])), [])
                values.append(execution.value(writes[-1] if writes else -1))
                continue
            agent = (int(rank), int(block or 0))
            read = [e for e in agents.events if e.agent == agent and e.name == what]
            values.append(execution.value(execution.source[read[-1].number]))
        found.add("".join(map(str, values)))
    return found, races


def main() -> int:
    with open(sys.argv[1]) as file:
        parts = [part for part in file.read().split("// -----") if "comms.kernel" in part]
    failed = 0
    for part in parts:
        name = re.search(r"@(\w+)", part)
        assert name
        agents = Agents(part[part.index("comms.kernel") :])
        said = re.findall(r"// (outcomes|final|race):? ?(.*)", part)
        if not said:
            print(f"{name[1]}: says nothing")
            failed += 1
        for kind, text in said:
            wanted, _, listed = text.partition(" in ")
            found, races = outcomes(agents, wanted.split(), kind == "final")
            if races or kind == "race":
                if not races or kind != "race":
                    print(f"{name[1]}: {'has a race' if races else 'has no race'}")
                    failed += 1
            elif found != set(listed.split()):
                print(f"{name[1]}: {wanted} in {' '.join(sorted(found))}, not {listed}")
                failed += 1
    print(f"{len(parts)} litmus tests, {failed} wrong")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
