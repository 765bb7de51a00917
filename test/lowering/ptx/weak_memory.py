"""A memory that uses the freedom of PTX's memory model: stores become visible late and out of order.

At first only its own thread sees a store. At a random time it becomes visible to all others, in any order except for
stores to one address. A fence, a release or a barrier makes the store, and all stores that its thread has seen there,
visible to the scope that it names: first to the warp, the CTA, the cluster or the GPU, which then see it before others
do. A load returns any version that is not older than what its thread knows of: through an acquire of a release, through
a barrier, or because the thread has read it. So a kernel with a missing fence, or one that is too weak or of too small
a scope, gives wrong results for some seeds.

This is weaker than real GPUs, but not all of the model: a load does not return data that its own thread stores later;
16 aligned bytes are stored and loaded as one, as on H200, and so are lines of 128 bytes that a warp stores with one
instruction if `whole_lines` is set (ll128 relies on it).
"""

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

from memory import LEVELS, ORDERED, RELAXED, SLOT, SYS, WEAK, Memory, Viewer

GRANULE = 16
KEPT = 24  # Versions of a granule.
CTA, CLUSTER = LEVELS.index("cta"), LEVELS.index("cluster")


@dataclasses.dataclass(slots=True)
class Release:
    """What a thread knew when it released: who acquires it knows it, too."""

    floor: int
    seen: dict[int, int]
    scope: int
    place: tuple[Any, ...]

    def reaches(self, place: tuple[Any, ...], scope: int) -> bool:
        return bool(self.place[self.scope] == place[self.scope] and self.place[scope] == place[scope])


@dataclasses.dataclass(slots=True, eq=False)
class Store:
    address: int
    data: bytes
    place: tuple[Any, ...]
    level: int  # Who sees it, with place.
    number: int
    turn: int
    release: Release | None
    is_slow: bool

    @property
    def granule(self) -> int:
        return self.address // GRANULE


@dataclasses.dataclass(slots=True)
class Version:
    number: int
    data: bytes
    releases: tuple[Release | None, ...]  # By word of 4 bytes.


class WeakThread(Viewer):
    """What a thread knows in addition to what is known at its place."""

    def __init__(self, rank: int, cta: int, cluster: int, thread: int) -> None:
        super().__init__(rank, cta, cluster, thread)
        self.floor = 0
        self.fenced: Release | None = None
        self.hopes: list[Release] = []  # Of relaxed loads: a fence makes them acquire.
        self.given: Release | None = None


class WeakMemory(Memory):
    def __init__(self, seed: int, whole_lines: bool = False) -> None:
        super().__init__()
        self.lots, self.whole_lines = random.Random(seed), whole_lines
        self.version = self.number = self.turns = 0
        self.begin()

    def begin(self) -> None:
        self.start = self.version
        self.pending: dict[Any, dict[int, Store]] = {}
        self.waiting: dict[int, list[Store]] = {}
        self.history: dict[int, list[Version]] = {}
        self.seen: dict[Any, dict[int, int]] = {}
        self.drained: dict[Any, int] = {}
        self.chosen: dict[tuple[Any, bool], int] = {}
        self.releases: dict[int, Release] = {}
        self.haste = self.lots.choice((0.02, 0.1, 0.5))
        self.staleness = self.lots.choice((0.1, 0.5, 0.9))

    def viewer(self, rank: int, cta: int, cluster: int, thread: int) -> WeakThread:
        made = WeakThread(rank, cta, cluster, thread)
        made.floor = self.start
        return made

    # Stores ------------------------------------------------------------------------------------------------------

    def hold(self, store: Store, level: int) -> None:
        """Who is at the store's place, up to this level, sees it from now on."""
        self.number += 1
        store.level, store.number = level, self.number
        self.pending.setdefault(store.place[level], {})[self.number] = store

    def drain(self, store: Store) -> None:
        """Everybody can see it, and what was there before it."""
        for one in self.with_line(store):
            for older in list(self.waiting.get(one.granule, ())):
                is_first = (-older.level, older.number) < (-one.level, one.number)
                if is_first and older.place[older.level] == one.place[older.level]:
                    self.version += 1
                    self.finish(older)
        self.version += 1
        for one in self.with_line(store):
            self.finish(one)

    def with_line(self, store: Store) -> list[Store]:
        if not self.whole_lines:
            return [store]
        first = store.address // 128 * (128 // GRANULE)
        line = [one for granule in range(first, first + 128 // GRANULE) for one in self.waiting.get(granule, ())]
        return [one for one in line if one.place[1] == store.place[1] and one.turn == store.turn]

    def finish(self, store: Store) -> None:
        granule, at = store.granule, store.address % GRANULE
        whole = self.granule(granule)
        versions = self.history.setdefault(granule, [Version(self.start, whole, (None,) * 4)])
        data = whole[:at] + store.data + whole[at + len(store.data) :]
        words = range(at // 4, (at + len(store.data) + 3) // 4)
        releases = tuple(store.release if n in words else old for n, old in enumerate(versions[-1].releases))
        versions.append(Version(self.version, data, releases))
        del versions[:-KEPT]
        part = self.parts[store.address >> SLOT]
        start = store.address & (1 << SLOT) - 1
        part[start : start + len(store.data)] = store.data
        place = store.place[store.level]
        self.seen.setdefault(place, {})[granule] = self.version
        self.drained[place] = self.version
        del self.pending[place][store.number]
        self.waiting[granule].remove(store)
        if not self.waiting[granule]:
            del self.waiting[granule]

    def granule(self, granule: int) -> bytes:
        address = granule * GRANULE
        at = address & (1 << SLOT) - 1
        return bytes(self.parts[address >> SLOT][at : at + GRANULE]).ljust(GRANULE, b"\xee")

    def flush(self, who: WeakThread, scope: int) -> None:
        """What the thread has stored, and what it has seen of others before they saw it, is seen by all of a scope."""
        for level in range(scope - 1, -1, -1):
            for store in list(self.pending.get(who.place[level], {}).values()):
                if store.number not in self.pending[who.place[level]]:
                    continue  # It went with another.
                if scope == SYS:
                    self.drain(store)
                else:
                    del self.pending[who.place[level]][store.number]
                    self.hold(store, scope)

    def release(self, who: WeakThread, scope: int) -> Release:
        self.flush(who, scope)
        floor = max([who.floor, *(self.drained.get(place, 0) for place in who.place)])
        seen: dict[int, int] = {}
        for place in who.place:
            join(seen, self.seen.get(place, {}))
        return Release(floor, seen, scope, who.place)

    def acquire(self, who: WeakThread, releases: Sequence[Release], scope: int) -> None:
        for release in releases:
            if release.reaches(who.place, scope):
                who.floor = max(who.floor, release.floor)
                join(self.seen.setdefault(who.place[0], {}), release.seen)

    # What threads do ---------------------------------------------------------------------------------------------

    def write(self, who: Any, address: int, size: int, values: Sequence[int], order: int, scope: int) -> None:
        self.part(address, size * len(values))
        release = self.release(who, scope) if order == ORDERED else who.fenced if order == RELAXED else None
        mask = (1 << 8 * size) - 1
        data = b"".join((value & mask).to_bytes(size, "little") for value in values)
        for at in range(0, len(data), GRANULE):
            is_slow = self.lots.random() < 0.1
            piece = data[at : at + GRANULE]
            store = Store(address + at, piece, who.place, 0, 0, self.turns, release, is_slow)
            self.waiting.setdefault(store.granule, []).append(store)
            self.hold(store, 0)

    def read(self, who: Any, address: int, size: int, count: int, order: int, scope: int) -> list[int]:
        values = self.load(address, size, count)
        length = size * count
        granules = range(address // GRANULE, (address + length - 1) // GRANULE + 1)
        if not any(granule in self.history or granule in self.waiting for granule in granules):
            return values
        time, found, data = self.choose(who, order), list[Release](), b""
        for granule in granules:
            words = range(max(0, address - granule * GRANULE) // 4, -(-(address + length - granule * GRANULE) // 4))
            data += self.look(who, granule, words, time, found)
        data = data[address % GRANULE :][:length]
        if order == ORDERED:
            self.acquire(who, found, scope)
        elif order == RELAXED:
            who.hopes = [*who.hopes[-64:], *found]
        return [int.from_bytes(data[i * size : (i + 1) * size], "little") for i in range(count)]

    def choose(self, who: WeakThread, order: int) -> int:
        """The time at which memory is read: one for a warp and a turn, so that its lanes see lines as a whole."""
        key = who.place[1], order == WEAK
        if key not in self.chosen:
            if self.lots.random() < self.staleness:
                oldest = self.lots.choice((self.start, max(self.start, self.version - 8)))
                self.chosen[key] = self.lots.randint(oldest, self.version)
            else:
                self.chosen[key] = self.version
        return self.chosen[key]

    def look(self, who: WeakThread, granule: int, words: range, time: int, found: list[Release]) -> bytes:
        known = max(self.seen.get(place, {}).get(granule, 0) for place in who.place)
        time = max(time, known, who.floor)
        whole = self.granule(granule)
        releases: list[Release | None] = [None] * 4
        if versions := self.history.get(granule):
            version = next((v for v in reversed(versions) if v.number <= time), versions[0])
            whole, releases = version.data, list(version.releases)
            self.seen.setdefault(who.place[0], {})[granule] = max(known, version.number)
        mine = [one for one in self.waiting.get(granule, ()) if one.place[one.level] == who.place[one.level]]
        for store in sorted(mine, key=lambda one: (-one.level, one.number)):
            at = store.address % GRANULE
            whole = whole[:at] + store.data + whole[at + len(store.data) :]
            for word in range(at // 4, (at + len(store.data) + 3) // 4):
                releases[word] = store.release
        found += [one for word in words if word < 4 and (one := releases[word])]
        return whole

    def update(
        self, who: Any, address: int, size: int, what: Callable[[int], int], order: int, scope: int, releases: bool
    ) -> int:
        self.part(address, size)
        made = self.release(who, scope) if order == ORDERED and releases else who.fenced if order != WEAK else None
        granule, word = address // GRANULE, address % GRANULE // 4
        for store in list(self.waiting.get(granule, ())):
            if store.place[store.level] == who.place[store.level] and store in self.waiting.get(granule, ()):
                self.drain(store)
        (old,) = self.load(address, size, 1)
        versions = self.history.get(granule)
        before = versions[-1].releases[word] if versions else None
        if before:
            if order == ORDERED:
                self.acquire(who, [before], scope)
            else:
                who.hopes = [*who.hopes[-64:], before]
        # Who acquires what an atomic has stored acquires what the atomics before it have released.
        if before and made:
            seen = dict(before.seen)
            join(seen, made.seen)
            made = Release(max(before.floor, made.floor), seen, min(before.scope, made.scope), who.place)
        data = (what(old) & (1 << 8 * size) - 1).to_bytes(size, "little")
        store = Store(address, data, who.place, 0, 0, self.turns, made or before, False)
        self.waiting.setdefault(granule, []).append(store)
        self.hold(store, 0)
        self.version += 1
        self.finish(store)
        return old

    def fence(self, who: Any, scope: int) -> None:
        self.acquire(who, who.hopes, scope)
        who.hopes = []
        who.fenced = self.release(who, scope)

    def arrive(self, who: Any, releases: bool) -> None:
        who.given = self.release(who, CLUSTER) if releases else None

    def meet(self, everybody: Sequence[Any], level: int) -> None:
        if level == CLUSTER:
            given = [who.given for who in everybody if who.given]
            for who in everybody:
                self.acquire(who, given, level)
            return
        for who in everybody:
            self.flush(who, level)
            place = who.place[level]
            for lower in who.place[:level]:
                join(self.seen.setdefault(place, {}), self.seen.pop(lower, {}))
                self.drained[place] = max(self.drained.get(place, 0), self.drained.pop(lower, 0))
        floor = max(who.floor for who in everybody)
        for who in everybody:
            who.floor = floor

    def expect(self, who: Any, address: int, arrivals: int, size: int) -> None:
        if who and arrivals:
            made = self.release(who, CTA)
            if before := self.releases.get(address):
                join(made.seen, before.seen)
                made.floor = max(made.floor, before.floor)
            self.releases[address] = made
        super().expect(who, address, arrivals, size)

    def has_passed(self, who: Any, address: int, parity: int) -> bool:
        passed = super().has_passed(who, address, parity)
        if passed and address in self.releases:
            self.acquire(who, [self.releases[address]], CTA)
        return passed

    # Time --------------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        self.turns += 1
        self.chosen.clear()
        for store in [one for waits in self.waiting.values() for one in waits]:
            comes = self.lots.random() < (self.haste / 20 if store.is_slow else self.haste)
            if comes and store in self.waiting.get(store.granule, ()):
                self.drain(store)

    def settle(self) -> None:
        while self.waiting:
            self.drain(next(iter(self.waiting.values()))[0])
        self.begin()


def join(into: dict[int, int], other: dict[int, int]) -> None:
    for granule, number in other.items():
        if into.get(granule, 0) < number:
            into[granule] = number
