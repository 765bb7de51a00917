"""Runs the PTX of a kernel on N ranks, thread by thread, without a GPU.

Every function of the text becomes a Python generator. At operations of several threads (barriers, shuffles, votes) and
at reads of memory that others write, the scheduler may continue with another thread, which it draws at random. An
access beyond an allocation, or a misaligned one, ends the run. The memory decides when stores become visible: at once
and in order (memory.py), which tests addresses, indices and synchronization, or as late as PTX allows
(weak_memory.py), which also tests fences and scopes.
"""

import dataclasses
import random
from typing import Any

from matrices import TOGETHER, Maps, wgmma
from memory import LEVELS, SLOT, Fault, Memory
from ptx_module import Module, Thread, parse
from registers import combined
from thread import Context

__all__ = ["Module", "Run", "parse"]

# What threads of a warp wait for each other at.
WARP = ("warp", "shfl", "vote", "redux", "together")


@dataclasses.dataclass
class Fiber:
    context: Context
    body: Thread
    cta: "Cta"
    waits: tuple[Any, ...] | None = None
    answer: Any = None
    over: bool = False


@dataclasses.dataclass
class Cta:
    rank: int
    number: int
    shared: dict[str, int]
    fibers: list[Fiber] = dataclasses.field(default_factory=list)
    #: The first thread of a warp that has no turn for a while.
    rests: int = -1


class Run:
    """One launch of a kernel on all ranks."""

    def __init__(self, module: Module, name: str, memory: Memory, seed: int) -> None:
        self.module, self.name, self.memory, self.random = module, name, memory, random.Random(seed)
        # The launches of a sequence have a name each, and its own is empty.
        source = module.sources.get(name, "")
        memory.proxies.is_followed = "c.groups" in source
        #: Warps of a CTA are late now and then: it multiplies matrices.
        self.has_rests = "'group'" in source or "'ldmatrix'" in source
        self.ctas: list[Cta] = []
        self.variables = {n: memory.take(size) for n, size in module.variables.items()}

    def add(self, rank: int, params: int, ctas: int, threads: int, cluster: int, dynamic: int) -> None:
        for number in range(ctas):
            shared = {n: self.memory.take(max(s, dynamic, 16), low=True) for n, s in self.module.shared.items()}
            cta = Cta(rank, number, shared)
            maps = Maps()
            for thread in range(threads):
                own = {n: self.memory.take(s) for n, s in self.module.local[self.name].items()}
                symbols = shared | self.variables | own
                who = self.memory.viewer(rank, number, cluster, thread)
                context = Context(self.memory, who, params, thread, threads, number, ctas, cluster, symbols, maps)
                body = self.module.functions[self.name](context, self.module.functions)
                cta.fibers.append(Fiber(context, body, cta))
            self.ctas.append(cta)

    def group(self, cta: Cta, cluster: int) -> list[Fiber]:
        """Threads of the cluster of a CTA."""
        first = cta.number // cluster * cluster
        return [f for c in self.ctas if c.rank == cta.rank and first <= c.number < first + cluster for f in c.fibers]

    def run(self, limit: int = 3000) -> None:
        """Until all threads have ended; a turn that brings nobody on, many times, is a hang."""
        idle = 0
        # Of copies of tiles, which are slow or fast in all of a launch.
        pace = self.random.choice((0.5, 0.5, 0.1)) if self.has_rests else 0.5
        for cta in self.ctas:
            if self.has_rests and self.random.random() < 0.5:
                cta.rests = self.random.choice(range(0, len(cta.fibers), 32))
        while any(not f.over for c in self.ctas for f in c.fibers):
            order = list(self.ctas)
            self.random.shuffle(order)
            moved = False
            for cta in order:
                self.memory.turn()
                if self.memory.transfers and self.random.random() < pace:
                    self.memory.transfers.popleft()()
                looks = self.random.choice((1, 2, 8))
                # In any order: one that comes before another has not seen what that stores.
                if self.has_rests and self.random.random() < 0.03:
                    cta.rests = self.random.choice(range(-32, len(cta.fibers), 32))
                turns = [f for f in cta.fibers if f.context.thread // 32 * 32 != cta.rests]
                if self.random.random() < 0.5:
                    self.random.shuffle(turns)
                for fiber in turns:
                    if not fiber.over and fiber.waits is None:
                        self.step(fiber, looks)
                moved |= self.meet(cta)
            before = self.digest
            self.digest = hash(tuple(hash(bytes(p)) for p in self.memory.parts.values()))
            idle = 0 if moved or before != self.digest else idle + 1
            if idle > limit:
                waiting = {(c.rank, c.number): f.waits for c in self.ctas for f in c.fibers if not f.over}
                raise Fault(f"nobody gets on: {waiting}")
        self.memory.settle()
        for cta in self.ctas:
            for address in cta.shared.values():
                del self.memory.parts[address >> SLOT]

    digest = 0

    def step(self, fiber: Fiber, looks: int) -> None:
        """Goes on until the thread meets others, or has looked so often at memory.

        Threads of a CTA have the same turns, and no other CTA comes between them: what a warp stores with one
        instruction is seen as a whole, on which lines of 128 bytes rely.
        """
        while True:
            try:
                asked = fiber.body.send(fiber.answer)
            except StopIteration:
                fiber.over = True
                fiber.context.groups.end()
                return
            fiber.answer = None
            if asked[0] == "look":
                looks -= 1
                if looks == 0:
                    return
            elif asked[0] == "mapa":
                fiber.answer = self.mapped(fiber, asked[1], asked[2])
            elif asked[0] != "arrive":
                fiber.waits = asked
                return

    def mapped(self, fiber: Fiber, address: int, rank: int) -> int:
        number = fiber.cta.number // fiber.context.cluster * fiber.context.cluster + rank
        for name, base in fiber.cta.shared.items():
            if base >> SLOT == address >> SLOT:
                other = next(c for c in self.ctas if c.rank == fiber.cta.rank and c.number == number)
                return other.shared[name] + address - base
        raise Fault(f"mapa of {address:#x}, which is no shared memory")

    def meet(self, cta: Cta) -> bool:
        """Lets those go on who have all come."""
        moved = False
        alive = [fiber for fiber in cta.fibers if not fiber.over]
        moved |= self.barriers(cta, alive)
        if alive and all(f.waits and f.waits[0] == "cluster" for f in alive):
            everybody = [f for f in self.group(cta, alive[0].context.cluster) if not f.over]
            if all(f.waits and f.waits[0] == "cluster" for f in everybody):
                moved |= self.free(everybody, "cluster")
        for first in range(0, len(cta.fibers), 32):
            moved |= self.warp(cta.fibers[first : first + 32])
        for first in range(0, len(cta.fibers), 128):
            moved |= self.group_of_warps(cta, cta.fibers[first : first + 128])
        return moved

    def barriers(self, cta: Cta, alive: list[Fiber]) -> bool:
        """Barriers of all threads of a CTA, or of a number of them."""
        waiting: dict[int, list[Fiber]] = {}
        for fiber in alive:
            if fiber.waits and fiber.waits[0] == "bar":
                waiting.setdefault(fiber.waits[1], []).append(fiber)
        moved = False
        for fibers in waiting.values():
            counts = {f.waits[3] or len(alive) for f in fibers if f.waits}
            if len(counts) > 1 or len(fibers) > max(counts):
                raise Fault("threads wait at one barrier for other numbers of threads")
            if len(fibers) < max(counts):
                continue
            for first in range(0, len(cta.fibers), 32):
                lanes = [f for f in cta.fibers[first : first + 32] if f in fibers]
                if len({f.waits[2] for f in lanes if f.waits}) > 1:
                    raise Fault("threads of a warp are at different instructions bar.sync, which is .aligned")
            moved |= self.free(fibers, "cta")
        if not moved and len(waiting) > 1 and sum(map(len, waiting.values())) == len(alive):
            raise Fault("threads wait at different barriers")
        return moved

    def group_of_warps(self, cta: Cta, threads: list[Fiber]) -> bool:
        """Four warps that multiply."""
        asked = [f.waits for f in threads if not f.over and f.waits and f.waits[0] == "group"]
        if len(asked) < 128:
            return False
        if len({waits[1] for waits in asked}) > 1:
            raise Fault("warps of a group are at different instructions wgmma")
        (shared,) = cta.shared.values()
        _, _, shape, kinds, _ = asked[0]
        first = threads[0].context
        answers = wgmma(self.memory, first.who, first.groups, shared, shape, kinds, [waits[4] for waits in asked])
        for fiber, answer in zip(threads, answers, strict=True):
            fiber.answer = answer
        if self.random.random() < 0.1:  # One of the warps is late with what it does next.
            cta.rests = self.random.choice(threads).context.thread // 32 * 32
        return self.free(threads)

    def free(self, fibers: list[Fiber], level: str = "") -> bool:
        """They go on; a barrier lets them see what the others of that level have stored."""
        if level:
            self.memory.meet([fiber.context.who for fiber in fibers], LEVELS.index(level))
        for fiber in fibers:
            fiber.waits = None
        return True

    def warp(self, lanes: list[Fiber]) -> bool:
        first = next((f for f in lanes if f.waits and f.waits[0] in WARP), None)
        if not first or not first.waits:
            return False
        members = first.waits[-1] & 0xFFFFFFFF
        mine = [(i, f) for i, f in enumerate(lanes) if members >> i & 1]
        if not all(f.waits and f.waits[0] == first.waits[0] for _, f in mine):
            if any(f.over for _, f in mine):
                raise Fault("a lane that is waited for has ended")
            return False
        if first.waits[0] == "vote":
            said = [bool(f.waits[2]) for _, f in mine if f.waits]
            result: Any = {"all": all(said), "any": any(said), "uni": len(set(said)) == 1}.get(first.waits[1])
            if first.waits[1] == "ballot":
                result = sum(1 << i for i, f in mine if f.waits and f.waits[2])
            for _, fiber in mine:
                fiber.answer = result
        if first.waits[0] == "redux":
            _, what, kind, *_ = first.waits
            result = combined(what, kind, [f.waits[3] for _, f in mine if f.waits])
            for _, fiber in mine:
                fiber.answer = result
        if first.waits[0] == "together":
            given = [f.waits for _, f in mine if f.waits]
            if len(given) < 32 or len({waits[1] for waits in given}) > 1:
                raise Fault(f"lanes of a warp do not come to one {first.waits[1]} together")
            answers = TOGETHER[first.waits[1]](self.memory, [waits[2] for waits in given])
            for (_, fiber), answer in zip(mine, answers, strict=True):
                fiber.answer = answer
        if first.waits[0] == "shfl":
            values = {i: f.waits for i, f in mine}
            for i, fiber in mine:
                fiber.answer = self.shuffled(i, values)
        return self.free([fiber for _, fiber in mine], "warp" if first.waits[0] == "warp" else "")

    def shuffled(self, lane: int, values: dict[int, Any]) -> tuple[int, bool]:
        _, mode, own, by, control, _ = values[lane]
        clamp, segment = control & 31, control >> 8 & 31
        low, high = lane & segment, lane & segment | clamp & ~segment
        other, inside = {
            "up": (lane - by, lane - by >= high),
            "down": (lane + by, lane + by <= high),
            "bfly": (lane ^ by, (lane ^ by) <= high),
            "idx": (low | by & ~segment & 31, (low | by & ~segment & 31) <= high),
        }[mode]
        if not inside:
            return own, False
        if other not in values:
            raise Fault(f"lane {lane} reads lane {other}, which takes no part")
        return values[other][2], True
