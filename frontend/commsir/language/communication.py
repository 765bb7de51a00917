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

    Both have one type; `count` elements travel (a part that is a slice or a row has room for them, or the run ends with
    a BoundsError), or as many as both parts have. It may end before anything has moved:
    the source stays as it is until a `flush`, a barrier, or a wait for the counter `counted`, and the peer reads only
    behind a signal or barrier that follows.
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

    What the peer wrote is seen behind its signal or a barrier. The values are there when it ends, with `gin` after the
    next `flush`.
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
    """`put`, then `signal` of the same peer, which the data cannot be overtaken by."""


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
    """Increments a cell of a peer; with `add` adds to it, with `set` sets it.

    With the order "release" whoever waits for it sees all that this block did before, puts included.
    """


@op
def wait_signal(
    cell: Cell, *, ge: Index | None = None, eq: Index | None = None, order: str = "acquire", scope: str = "sys"
) -> Token:
    """Waits until a cell of this rank is at least `ge`, or equals `eq`, which a value that passes by may miss.

    With the order "acquire" what follows sees all that came before the signals. The cell stays as it is, in the next
    launch too: count with `epoch()`, or `reset_signal`.
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
    """As `wait_signal`, and the checker holds `peer` to signaling it."""


@op
def read_signal(cell: Cell, order: str = "acquire") -> int:
    """The present value of a cell of this rank (i64)."""


@op
def reset_signal(cell: Cell) -> None:
    """Sets a cell of this rank back to zero."""


@op
def wait_counter(cell: Cell, *, ge: Index) -> Token:
    """Waits until the counter is at least `ge`: that many counted puts have left their source."""


@op
def read_counter(cell: Cell) -> int:
    """The present value of a counter (i64)."""


@op
def reset_counter(cell: Cell) -> None:
    """Sets a counter back to zero."""


@op
def flush(team: Team | None = None, *, gin: str | None = None) -> None:
    """Waits until every earlier put of this block to the team has read its source, which may then be written.

    It does not say that a put has arrived: a signal does.
    """


@op
def fence(order: str = "acq_rel", scope: str = "sys", proxy: str = "generic") -> None:
    """Orders this block's earlier accesses before its later ones, as PTX's fence.

    `order` is "acquire", "release" or "acq_rel", `scope` "block", "cluster", "gpu" or "sys"; `proxy` names another way
    to memory than "generic", with which accesses are ordered as well.
    """


# Barriers.


@op
def barrier(team: Team | None = None, extent: str = "block", order: str = "acq_rel") -> None:
    """Waits for the same block ("block"), or all blocks ("grid"), of every rank of a team (the world).

    With the order "acq_rel" what any of them did before, puts included, comes before what any does after it.
    """


@op
def barrier_arrive(team: Team | None = None, extent: str = "block", order: str = "release") -> Token:
    """The first half of a barrier, which does not wait; its token is for `barrier_wait`."""


@op
def barrier_wait(arrived: Token, order: str = "acquire") -> Token:
    """The second half of a barrier: waits until all have arrived."""


# Packets and poison.


@op
def packet_store(
    tile: Tile, memory: Memory, offset: Index, flag: Index, valid: Index | None = None, assumes: str = "store8_whole"
) -> None:
    """Writes each 32 bits of a tile together with a flag, in one store: whoever sees the flag sees the data.

    `memory` is of i64, one for each 32 bits of the tile from `offset` on; `flag` is a number that the memory has not
    held there, such as `epoch()`. Nothing else is ordered.
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
    """Waits until every packet of a tile carries the flag, and reads the tile: `length` elements of `dtype`.

    `memory` is of i64, `offset` counts its elements: see `packet_store`.
    """


@op
def poison_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile, none of whose elements reads as poison: NaN are made the one of their type."""


@op
def poison_load(memory: Memory, offset: Index, length: int, valid: Index | None = None) -> Tile:
    """Waits until none of `length` elements from `offset` on is poison, and reads the tile.

    What was never filled with poison is not waited for: memory begins as zero, so `poison_fill` and a barrier come
    before the first load, as in `if epoch() == 1: …`.
    """


@op
def poison_fill(memory: Memory, offset: Index = 0, count: Index | None = None) -> None:
    """Fills `count` elements (all) with poison, a NaN that `poison_store` never writes: the slot is empty again."""


# Copies.


@op
def multimem_load_reduce(op: str, memory: Memory, offset: Index, length: int, valid: Index | None = None) -> Tile:
    """Reads a tile from every rank at once, combined by the switch."""


@op
def multimem_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile to every rank at once."""


@op
def multimem_reduce(op: str, tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Combines a tile into every rank's memory at once."""


@op
def bulk_copy(source: Memory | Tile, dest: Memory | Tile, count: Index | None = None) -> Token:
    """Starts an asynchronous copy through shared memory (TMA), of parts of one type and length.

    Neither part may be touched before `bulk_wait` of the token.
    """


@op
def bulk_wait(*copies: Token) -> Token:
    """Ends when the copies have been made."""


@op
def engine_copy(
    source: Memory | Tile, window: Window | Tile, peer: Index, team: Team | None = None, *, count: Index | None = None
) -> None:
    """A copy by the copy engine, as a step of the host: it begins when everything before it has ended on this rank.

    It orders nothing at the peer: a barrier or signal behind it does.
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
    """A channel that sends tiles of `length` elements between the ranks of a team, with `slots` slots for each pair.

    `pattern` is "multicast" (a tile goes to all, its sender included), "pairwise" or "single" (to one rank, from one).
    In a launch a slot carries one tile from a source to a destination. `protocol` says how: "pull", "push", "ll", ….
    """


@op
def send(tile: Tile, slot: Slot, peer: Index | None = None, valid: Index | None = None) -> None:
    """Sends a tile through a slot: to one peer, or (multicast) to all."""


@op
def recv(slot: Slot, peer: Index, valid: Index | None = None) -> Tile:
    """Waits for the tile that a peer sent through a slot, and reads it."""


@op
def channel_barrier(channel: Channel) -> None:
    """Ends a round of sends: every block passes it, and receives of the round may only follow it."""
