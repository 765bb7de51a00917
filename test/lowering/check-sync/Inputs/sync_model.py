"""An implementation of the memory model (docs/Spec.md) that shares nothing with the checker, under random schedules."""

import dataclasses
import itertools
import random

from sync_program import ALIAS, LAUNCHES, Op, Place, Program, Thread


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
