"""Programs of synchronization, as differential.py draws them: what each block of each rank does."""

import dataclasses
import random
from collections.abc import Callable

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
