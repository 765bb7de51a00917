"""The functions of the kernel language by which ranks reach each other: copies, signals, barriers, packets, channels.

As in `functions`, these are signatures; `lowering` makes ops of them.
"""

# Their bodies are in `lowering`.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from typing import Any

from .functions import op
from .parameters import Cell, Channel, Index, Memory, Slot, Team, Tile, Token, Window

__all__ = [
    "barrier",
    "barrier_arrive",
    "barrier_wait",
    "bulk_copy",
    "bulk_wait",
    "channel",
    "channel_barrier",
    "engine_copy",
    "fence",
    "flush",
    "get",
    "multimem_load_reduce",
    "multimem_reduce",
    "multimem_store",
    "packet_load",
    "packet_store",
    "poison_fill",
    "poison_load",
    "poison_store",
    "put",
    "put_signal",
    "read_counter",
    "read_signal",
    "recv",
    "reset_counter",
    "reset_signal",
    "send",
    "signal",
    "wait_counter",
    "wait_signal",
    "wait_signal_from",
]


# One-sided operations.


@op
def put(
    source: Memory | Tile,
    window: Window | Tile,
    peer: Index,
    team: Team | None = None,
    *,
    count: Index | None = None,
    counted: Cell | None = None,
    gin: str | None = None,
) -> None:
    """Writes this rank's memory to a peer's part of a window: `put(x[0:32], inbox[o:o + 32], peer)`.

    Both parts have one element type. `count` elements are copied; by default as many as both parts have. A part that is
    a slice or a row must have room for `count` elements, otherwise the run ends with a BoundsError. A put is
    asynchronous: do not change the source until a `flush`, a barrier, or a wait for the counter `counted`. The peer may
    read the data only after a later signal or barrier.
    """


@op
def get(
    window: Window | Tile,
    dest: Memory | Tile,
    peer: Index,
    team: Team | None = None,
    *,
    count: Index | None = None,
    gin: str | None = None,
) -> None:
    """Reads a peer's part of a window into this rank's memory: `get(w[r], x[r], peer)`.

    A signal or barrier must order the peer's writes before the get. The data is there when the get returns or, with
    `gin`, after the next `flush`.
    """


@op
def put_signal(
    source: Memory | Tile,
    window: Window | Tile,
    peer: Index,
    cell: Cell,
    team: Team | None = None,
    *,
    count: Index | None = None,
    set: Index | None = None,
    add: Index | None = None,
    gin: str | None = None,
) -> None:
    """A `put` followed by a `signal` to the same peer, which the data precedes."""


@op
def signal(
    cell: Cell,
    peer: Index,
    team: Team | None = None,
    *,
    set: Index | None = None,
    add: Index | None = None,
    order: str = "release",
    scope: str = "sys",
    gin: str | None = None,
) -> None:
    """Adds 1 to a cell of a peer; `add` adds another amount, `set` sets the cell.

    With the order "release", a block that waits for the signal then sees everything this block did before, puts
    included.
    """


@op
def wait_signal(
    cell: Cell, *, ge: Index | None = None, eq: Index | None = None, order: str = "acquire", scope: str = "sys"
) -> Token:
    """Waits until a cell of this rank is at least `ge`, or equal to `eq`. A wait for `eq` may miss a value that changes
    again.

    With the order "acquire", later accesses see everything that preceded the signals. The cell keeps its value, also in
    the next launch: count with `epoch()`, or use `reset_signal`.
    """


@op
def wait_signal_from(
    cell: Cell,
    peer: Index,
    team: Team | None = None,
    *,
    ge: Index | None = None,
    eq: Index | None = None,
    order: str = "acquire",
    scope: str = "sys",
) -> Token:
    """Like `wait_signal`; the checker also verifies that `peer` sends the signal."""


@op
def read_signal(cell: Cell, order: str = "acquire") -> int:
    """Returns the current value of a cell of this rank (i64)."""


@op
def reset_signal(cell: Cell) -> None:
    """Sets a cell of this rank back to zero."""


@op
def wait_counter(cell: Cell, *, ge: Index) -> Token:
    """Waits until the counter is at least `ge`, that is, until so many counted puts have read their source."""


@op
def read_counter(cell: Cell) -> int:
    """Returns the current value of a counter (i64)."""


@op
def reset_counter(cell: Cell) -> None:
    """Sets a counter back to zero."""


@op
def flush(team: Team | None = None, *, gin: str | None = None) -> None:
    """Waits until every earlier put of this block to the team has read its source. The source may then be changed.

    A flush does not tell whether a put has arrived; use a signal for that.
    """


@op
def fence(order: str = "acq_rel", scope: str = "sys", proxy: str = "generic") -> None:
    """Orders this block's earlier accesses before its later ones, like PTX's fence.

    `order` is "acquire", "release" or "acq_rel"; `scope` is "block", "cluster", "gpu" or "sys". `proxy` names a proxy
    other than "generic" whose accesses are ordered too.
    """


# Barriers.


@op
def barrier(team: Team | None = None, extent: str = "block", order: str = "acq_rel") -> None:
    """Waits for the same block ("block"), or all blocks ("grid"), of every rank of a team (by default the world).

    With the order "acq_rel", everything these blocks did before, puts included, happens before everything they do after
    it.
    """


@op
def barrier_arrive(team: Team | None = None, extent: str = "block", order: str = "release") -> Token:
    """The first half of a barrier. Does not wait; pass the token to `barrier_wait`."""


@op
def barrier_wait(arrived: Token, order: str = "acquire") -> Token:
    """The second half of a barrier: waits until all have arrived."""


# Packets and poison.


@op
def packet_store(
    tile: Tile, memory: Memory, offset: Index, flag: Index, valid: Index | None = None, assumes: str = "store8_whole"
) -> None:
    """Writes each 32 bits of a tile together with a flag in one store. A reader that sees the flag sees the data.

    `memory` has i64 elements, one for each 32 bits of the tile from `offset` on. `flag` must be a value that the memory
    has not held there before, such as `epoch()`. The store orders nothing else.
    """


@op
def packet_load(
    memory: Memory,
    offset: Index,
    length: int,
    dtype: Any,
    flag: Index,
    valid: Index | None = None,
    assumes: str = "store8_whole",
) -> Tile:
    """Waits until every packet of a tile carries the flag, then reads the tile: `length` elements of `dtype`.

    `memory` has i64 elements, and `offset` counts them: see `packet_store`.
    """


@op
def poison_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile. NaNs become the canonical NaN of the type, so that no element reads as poison."""


@op
def poison_load(memory: Memory, offset: Index, length: int, valid: Index | None = None) -> Tile:
    """Waits until none of the `length` elements from `offset` on is poison, then reads the tile.

    Memory starts as zeros, which are not poison. Use `poison_fill` and a barrier before the first load, for example in
    `if epoch() == 1: …`.
    """


@op
def poison_fill(memory: Memory, offset: Index = 0, count: Index | None = None) -> None:
    """Fills `count` elements (by default all) with poison, a NaN that `poison_store` never writes. The slot is then
    empty.
    """


# Copies.


@op
def multimem_load_reduce(op: str, memory: Memory, offset: Index, length: int, valid: Index | None = None) -> Tile:
    """Reads a tile from every rank at once; the switch reduces it."""


@op
def multimem_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile to every rank at once."""


@op
def multimem_reduce(op: str, tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Adds a tile to, or combines it with, every rank's memory at once."""


@op
def bulk_copy(source: Memory | Tile, dest: Memory | Tile, count: Index | None = None) -> Token:
    """Starts an asynchronous copy through shared memory (TMA) between parts of one type and length.

    Access neither part before `bulk_wait` of the token.
    """


@op
def bulk_wait(*copies: Token) -> Token:
    """Waits until the copies are complete."""


@op
def engine_copy(
    source: Memory | Tile, window: Window | Tile, peer: Index, team: Team | None = None, *, count: Index | None = None
) -> None:
    """A copy by the GPU's copy engine, which the host starts when everything before it has ended on this rank.

    It orders nothing at the peer; a later barrier or signal does.
    """


# Channels.


@op
def channel(
    length: int,
    dtype: Any,
    team: Team | None = None,
    *,
    pattern: str = "multicast",
    slots: int = 1,
    protocol: str = "ll",
) -> Channel:
    """A channel that sends tiles of `length` elements between the ranks of a team, with `slots` slots per pair of
    ranks.

    `pattern` is "multicast" (every rank gets the tile, the sender included), "pairwise" or "single" (from one rank to
    one rank). In one launch, a slot carries one tile from a source to a destination. `protocol` selects the
    implementation: "pull", "push", "ll", ….
    """


@op
def send(tile: Tile, slot: Slot, peer: Index | None = None, valid: Index | None = None) -> None:
    """Sends a tile through a slot to one peer or, on a multicast channel, to all ranks."""


@op
def recv(slot: Slot, peer: Index, valid: Index | None = None) -> Tile:
    """Waits for the tile that a peer sent through a slot, and reads it."""


@op
def channel_barrier(channel: Channel) -> None:
    """Ends a round of sends of `channel`. Every block must reach it, and receives of the round must follow it."""
