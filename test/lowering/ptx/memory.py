"""The memory of an emulated machine, with the checks of a strict allocator: stores are visible at once and in order."""

import collections
from collections.abc import Callable, Sequence
from typing import Any

SLOT = 24  # Bits of an address within its allocation.
LEVELS = ("thread", "warp", "cta", "cluster", "gpu", "sys")  # Who sees a store. PTX has scopes of the last four.
SYS = LEVELS.index("sys")
WEAK, RELAXED, ORDERED = range(3)  # An access; ordered: .acquire, .release or both, as fits it.


class Fault(Exception):
    """What a GPU would not survive, or never end."""


class Viewer:
    """A thread, as memory knows it: of which warp, CTA, cluster and GPU it is."""

    def __init__(self, rank: int, cta: int, cluster: int, thread: int) -> None:
        self.place: tuple[Any, ...] = (
            ("thread", rank, cta, thread),
            ("warp", rank, cta, thread // 32),
            ("cta", rank, cta),
            ("cluster", rank, cta // cluster),
            ("gpu", rank),
            ("sys",),
        )


class Proxies:
    """Which bytes threads have written as they read and write memory. Copies of tiles and wgmma see them behind a
    fence.proxy.async, of the thread that has written or of the one that starts the copy."""

    def __init__(self) -> None:
        self.is_followed = False
        self.clock = 0
        #: By piece of 16 bytes: the thread that has last written there, and when.
        self.written: dict[int, tuple[Any, int]] = {}
        self.fences: dict[Any, int] = {}

    def note(self, who: Viewer, address: int, size: int) -> None:
        if self.is_followed:
            self.clock += 1
            for piece in range(address >> 4, (address + size - 1 >> 4) + 1):
                self.written[piece] = (who.place[0], self.clock)

    def fence(self, who: Viewer) -> None:
        self.clock += 1
        self.fences[who.place[0]] = self.clock

    def check(self, who: Viewer, address: int, size: int) -> None:
        for piece in range(address >> 4, (address + size - 1 >> 4) + 1):
            writer, time = self.written.get(piece, (None, 0))
            if max(self.fences.get(writer, 0), self.fences.get(who.place[0], 0)) < time:
                raise Fault(f"{writer} has written at {piece << 4:#x}, and no fence.proxy.async comes before the copy")


class Memory:
    def __init__(self) -> None:
        self.proxies = Proxies()
        #: Barriers of which the copies do not know yet, and who has made each.
        self.unfenced: dict[int, Viewer] = {}
        self.parts: dict[int, bytearray] = {}
        self.barriers: dict[int, list[int]] = {}
        self.multicast: dict[int, list[int]] = {}
        self.next = 4096
        #: Copies that are on their way, in their order.
        self.transfers: collections.deque[Callable[[], None]] = collections.deque()

    def take(self, size: int, low: bool = False) -> int:
        """Address of `size` bytes of zeros; a low one fits 32 bits."""
        slots = max(1, -(-size // (1 << SLOT)))
        if slots > 1:
            raise Fault(f"{size} bytes are more than one allocation holds here")
        if low:
            number = next(n for n in range(1, 256) if n not in self.parts)
        else:
            number, self.next = self.next, self.next + 2
        self.parts[number] = bytearray(size)
        return number << SLOT

    def take_multicast(self, parts: list[int]) -> int:
        """One address for the parts of all ranks."""
        number, self.next = self.next, self.next + 2
        self.multicast[number] = parts
        return number << SLOT

    def everywhere(self, address: int) -> list[int]:
        if address >> SLOT not in self.multicast:
            raise Fault(f"{address:#x} is not a multicast address")
        return [part + (address & (1 << SLOT) - 1) for part in self.multicast[address >> SLOT]]

    def part(self, address: int, size: int) -> tuple[bytearray, int]:
        data, at = self.parts.get(address >> SLOT), address & (1 << SLOT) - 1
        if data is None or at + size > len(data):
            raise Fault(f"access of {size} bytes at {address:#x}: {'no memory' if data is None else f'of {len(data)}'}")
        if at % size:
            raise Fault(f"access of {size} bytes at {address:#x}, which is not aligned")
        return data, at

    def load(self, address: int, size: int, count: int) -> list[int]:
        data, at = self.parts.get(address >> SLOT, b""), address & (1 << SLOT) - 1
        if at < len(data) < at + size * count <= 16 * -(-len(data) // 16):
            # ptxas is told (used_bytes_mask) that what lies behind the end, up to 16 bytes, is not used.
            data = bytes(data[at:]) + b"\xee" * 16
            return [int.from_bytes(data[i * size : (i + 1) * size], "little") for i in range(count)]
        data, at = self.part(address, size * count)
        return [int.from_bytes(data[at + i * size : at + (i + 1) * size], "little") for i in range(count)]

    def store(self, address: int, size: int, values: Sequence[int]) -> None:
        data, at = self.part(address, size * len(values))
        mask = (1 << 8 * size) - 1
        data[at : at + size * len(values)] = b"".join((v & mask).to_bytes(size, "little") for v in values)

    # What threads do. A memory that is not exact overrides these.

    def viewer(self, rank: int, cta: int, cluster: int, thread: int) -> Viewer:
        return Viewer(rank, cta, cluster, thread)

    def read(self, who: Viewer, address: int, size: int, count: int, order: int, scope: int) -> list[int]:
        return self.load(address, size, count)

    def write(self, who: Viewer, address: int, size: int, values: Sequence[int], order: int, scope: int) -> None:
        self.store(address, size, values)
        self.proxies.note(who, address, size * len(values))

    def update(
        self, who: Viewer, address: int, size: int, what: Callable[[int], int], order: int, scope: int, releases: bool
    ) -> int:
        """An atomic; `releases`: .release or .acq_rel, and not .acquire alone."""
        (old,) = self.load(address, size, 1)
        self.store(address, size, [what(old)])
        return old

    def fence(self, who: Viewer, scope: int) -> None:
        """fence.acq_rel"""

    def arrive(self, who: Viewer, releases: bool) -> None:
        """barrier.cluster.arrive"""

    def meet(self, everybody: Sequence[Viewer], level: int) -> None:
        """Threads have met at a barrier of their warp, CTA or cluster."""

    def turn(self) -> None:
        """Threads of another CTA go on."""

    def settle(self) -> None:
        """The launch is over on all ranks."""
        if self.transfers:
            raise Fault("a kernel ends while tiles are copied")
        self.proxies.written.clear()

    # Barriers in shared memory, by address: arrivals that are expected and missing, bytes that are missing, the phase.
    def open_barrier(self, who: Viewer, address: int, count: int) -> None:
        self.part(address, 8)
        self.unfenced[address] = who
        self.barriers[address] = [count, count, 0, 0]

    def expect(self, who: Viewer | None, address: int, arrivals: int, size: int) -> None:
        if address not in self.barriers:
            raise Fault(f"nobody has made a barrier at {address:#x}")
        if who is None and address in self.unfenced:
            raise Fault("a copy counts its bytes at a barrier without fence.mbarrier_init")
        state = self.barriers[address]
        state[1] -= arrivals
        state[2] += size
        if state[1] == 0 and state[2] == 0:
            state[1], state[3] = state[0], state[3] + 1

    def fence_barriers(self, who: Viewer) -> None:
        """fence.mbarrier_init"""
        self.unfenced = {address: maker for address, maker in self.unfenced.items() if maker is not who}

    def has_passed(self, who: Viewer, address: int, parity: int) -> bool:
        if address not in self.barriers:
            raise Fault(f"nobody has made the barrier at {address:#x} that is waited for")
        return self.barriers[address][3] % 2 != parity
