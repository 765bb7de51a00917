"""The functions of the kernel language, named as the ops of the dialect (docs/Spec.md).

Here are their signatures and what they do; inside a kernel `lower.py` makes ops of them. Called outside a kernel they
raise, but for the collectives, which then build and simulate a kernel of their own.
"""

# The bodies are in lower.py.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from .. import errors
from .parameters import Array, Cell, Channel, Index, Memory, Slot, Team, Tile, Token, Window

if TYPE_CHECKING:
    from typing import Unpack

F = TypeVar("F", bound=Callable[..., Any])
ALL: list[Callable[..., Any]] = []


def _op(function: F) -> F:
    """A function of the language: its signature and documentation are those of `function`, which is never called."""

    @functools.wraps(function)
    def outside(*args: Any, **keywords: Any) -> Any:
        raise errors.UsageError(f"commsir.{function.__name__} works inside a function with @commsir.kernel")

    ALL.append(outside)
    return typing.cast(F, outside)


# Teams and identity.


@_op
def team(kind: str = "world") -> Team:
    """A team that always exists: "world", "lsa" (ranks in load and store reach) or "rail"."""


@_op
def team_split(team: Team, kind: str, factor: int) -> Team:
    """The part of a team that this rank belongs to: "inner" (runs of `factor`) or "outer" (every `factor`-th)."""


@_op
def rank(team: Team | None = None) -> int:
    """This rank's number in a team (the world)."""


@_op
def size(team: Team | None = None) -> int:
    """Number of ranks of a team (the world): a constant once the kernel is specialised to `ranks`."""


@_op
def translate_rank(rank: Index, source: Team, to: Team) -> int:
    """Rank `rank` of the team `source` as a rank of the team `to`, which it has to be in."""


@_op
def block_id() -> int:
    """This block's number on its rank."""


@_op
def num_blocks() -> int:
    """Number of blocks of each rank."""


@_op
def epoch() -> int:
    """Number of this launch of the kernel: 1 at the first."""


@_op
def for_peers(team: Team | None = None, reversed: bool = False) -> Iterator[int]:
    """`for peer in for_peers():` visits every other rank of a team, starting after this one."""


@_op
def role(name: str, first: int, last: int) -> AbstractContextManager[None]:
    """`with role("send", 0, 2):` runs its body on blocks first, …, last - 1 of every rank."""


def static_range(*arguments: int) -> range:
    """A range of constants: the loop over it is unrolled."""
    return range(*arguments)


ALL.append(static_range)


# Windows and memory.


@_op
def local(window: Window) -> Array:
    """This rank's own part of a window."""


@_op
def peer(window: Window, peer: Index, team: Team | None = None) -> Array:
    """The part of a window on rank `peer` of a team (the world), as an array: by load and store, of the window's shape.

    What the peer wrote is seen, and what is written is seen there, only behind a signal and its wait, or a barrier.
    """


@_op
def multimem(window: Window, team: Team | None = None) -> Array:
    """One address for all parts of a window, for the `multimem` functions: NVLink multicast."""


@_op
def scratch(dtype: Any, *shape: int, space: str = "") -> Array:
    """Memory of this block alone while the kernel runs: `scratch(f32, 4, 64, space="shared")`.

    `space` is "" (global), "scratch" or "shared". What it holds at first is undefined; in a loop it is the same memory.
    """


# Tiles.


@_op
def tile_load(
    memory: Memory, offset: Index, length: int, valid: Index | None = None, after: Token | None = None
) -> Tile:
    """`length` elements from `offset` on; those from `valid` on are zero and not touched."""


@_op
def tile_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile, or its first `valid` elements, at an offset in elements, in the type of the memory."""


@_op
def row_reduce(op: str, tile: Tile) -> Tile:
    """Combines the elements of a tile: "sum", "prod", "min", "max", "avg", "and", "or" or "xor"."""


@_op
def splat(value: Any, length: int, dtype: Any = None) -> Tile:
    """A tile of `length` elements that all equal a scalar, of its type or of `dtype`."""


@_op
def full(length: int, value: Any, dtype: Any = None) -> Tile:
    """`splat`, with NumPy's name and order."""


@_op
def zeros(length: int, dtype: Any = None) -> Tile:
    """A tile of `length` zeros, f32 or `dtype`."""


@_op
def broadcast_row(tile: Tile, length: int) -> Tile:
    """A tile of one element, repeated `length` times. Arithmetic does this by itself."""


@_op
def iota(length: int, dtype: Any = None) -> Tile:
    """The tile 0, 1, 2, … of `length` elements, i32 or `dtype`."""


@_op
def where(condition: Any, a: Any, b: Any) -> Tile:
    """Element by element, `a` where the condition holds, else `b`."""


@_op
def minimum(a: Any, b: Any) -> Tile:
    """The lesser of two, element by element; a NaN wins."""


@_op
def maximum(a: Any, b: Any) -> Tile:
    """The greater of two, element by element; a NaN wins."""


@_op
def clip(a: Any, low: Any, high: Any) -> Tile:
    """`a` held between two bounds, element by element; a NaN stays."""


@_op
def fma(a: Any, b: Any, c: Any) -> Tile:
    """a * b + c, rounded once."""


@_op
def cast(value: Any, dtype: Any) -> Tile:
    """A value in another type, as `tile.astype(dtype)`."""


@_op
def bitcast(value: Any, dtype: Any) -> Tile:
    """The bits of a value as another type of the same width: `bitcast(x, i32)` of f32."""


def _unary(name: str, what: str) -> Callable[[Any], Tile]:
    def function(x: Any) -> Tile: ...

    function.__name__ = function.__qualname__ = name
    function.__doc__ = what
    return _op(function)


exp = _unary("exp", "e to the power of x.")
exp2 = _unary("exp2", "2 to the power of x.")
expm1 = _unary("expm1", "exp(x) - 1.")
log = _unary("log", "The natural logarithm.")
log2 = _unary("log2", "The logarithm to base 2.")
log1p = _unary("log1p", "log(1 + x).")
sqrt = _unary("sqrt", "The square root.")
rsqrt = _unary("rsqrt", "1 / sqrt(x).")
cbrt = _unary("cbrt", "The cube root.")
tanh = _unary("tanh", "The hyperbolic tangent.")
sinh = _unary("sinh", "The hyperbolic sine.")
cosh = _unary("cosh", "The hyperbolic cosine.")
sin = _unary("sin", "The sine.")
cos = _unary("cos", "The cosine.")
tan = _unary("tan", "The tangent.")
asin = _unary("asin", "The inverse sine.")
acos = _unary("acos", "The inverse cosine.")
atan = _unary("atan", "The inverse tangent.")
erf = _unary("erf", "The error function.")
erfc = _unary("erfc", "1 - erf(x).")
floor = _unary("floor", "The greatest integer not above x.")
ceil = _unary("ceil", "The least integer not below x.")
trunc = _unary("trunc", "x without its fraction.")
rint = _unary("rint", "The nearest integer, ties to even.")
isnan = _unary("isnan", "Whether x is no number.")
isinf = _unary("isinf", "Whether x is infinite.")
isfinite = _unary("isfinite", "Whether x is a finite number.")


# One-sided operations.


@_op
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

    Both have one type; `count` elements travel, or as many as both parts have. It may end before anything has moved:
    the source stays as it is until a `flush`, a barrier, or a wait for the counter `counted`, and the peer reads only
    behind a signal or barrier that follows.
    """


@_op
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


@_op
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


@_op
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


@_op
def wait_signal(
    cell: Cell, *, ge: Index | None = None, eq: Index | None = None, order: str = "acquire", scope: str = "sys"
) -> Token:
    """Waits until a cell of this rank is at least `ge`, or equals `eq`, which a value that passes by may miss.

    With the order "acquire" what follows sees all that came before the signals. The cell stays as it is, in the next
    launch too: count with `epoch()`, or `reset_signal`.
    """


@_op
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
    """As `wait_signal`, and the checker holds `peer` to signalling it."""


@_op
def read_signal(cell: Cell, order: str = "acquire") -> int:
    """The present value of a cell of this rank (i64)."""


@_op
def reset_signal(cell: Cell) -> None:
    """Sets a cell of this rank back to zero."""


@_op
def wait_counter(cell: Cell, *, ge: Index) -> Token:
    """Waits until the counter is at least `ge`: that many counted puts have left their source."""


@_op
def read_counter(cell: Cell) -> int:
    """The present value of a counter (i64)."""


@_op
def reset_counter(cell: Cell) -> None:
    """Sets a counter back to zero."""


@_op
def flush(team: Team | None = None, *, gin: str | None = None) -> None:
    """Ends when every earlier put of this block to the team has left its source, which may then be written.

    It does not say that a put has arrived: a signal does.
    """


@_op
def fence(order: str = "acq_rel", scope: str = "sys", proxy: str = "generic") -> None:
    """Orders this block's earlier accesses before its later ones, as PTX's fence.

    `order` is "acquire", "release" or "acq_rel", `scope` "block", "cluster", "gpu" or "sys"; `proxy` names another way
    to memory than "generic", with which accesses are ordered as well.
    """


# Barriers.


@_op
def barrier(team: Team | None = None, extent: str = "block", order: str = "acq_rel") -> None:
    """Waits for the same block ("block"), or all blocks ("grid"), of every rank of a team (the world).

    With the order "acq_rel" what any of them did before, puts included, comes before what any does after it.
    """


@_op
def barrier_arrive(team: Team | None = None, extent: str = "block", order: str = "release") -> Token:
    """The first half of a barrier, which does not wait; its token is for `barrier_wait`."""


@_op
def barrier_wait(arrived: Token, order: str = "acquire") -> Token:
    """The second half of a barrier: waits until all have arrived."""


# Packets and poison.


@_op
def packet_store(
    tile: Tile, memory: Memory, offset: Index, flag: Index, valid: Index | None = None, assumes: str = "store8_whole"
) -> None:
    """Writes each 32 bits of a tile together with a flag, in one store: whoever sees the flag sees the data.

    `memory` is of i64, one for each 32 bits of the tile from `offset` on; `flag` is a number that the memory has not
    held there, such as `epoch()`. Nothing else is ordered.
    """


@_op
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


@_op
def poison_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile, none of whose elements reads as poison: NaN are made the one of their type."""


@_op
def poison_load(memory: Memory, offset: Index, length: int, valid: Index | None = None) -> Tile:
    """Waits until none of `length` elements from `offset` on is poison, and reads the tile.

    What was never filled with poison is not waited for: memory begins as zero, so `poison_fill` and a barrier come
    before the first load, as in `if epoch() == 1: …`.
    """


@_op
def poison_fill(memory: Memory, offset: Index = 0, count: Index | None = None) -> None:
    """Fills `count` elements (all) with poison, a NaN that `poison_store` never writes: the slot is empty again."""


# Copies.


@_op
def multimem_load_reduce(op: str, memory: Memory, offset: Index, length: int, valid: Index | None = None) -> Tile:
    """Reads a tile from every rank at once, combined by the switch."""


@_op
def multimem_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile to every rank at once."""


@_op
def multimem_reduce(op: str, tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Combines a tile into every rank's memory at once."""


@_op
def bulk_copy(source: Memory | Tile, dest: Memory | Tile, count: Index | None = None) -> Token:
    """Starts an asynchronous copy through shared memory (TMA), of parts of one type and length.

    Neither part may be touched before `bulk_wait` of the token.
    """


@_op
def bulk_wait(*copies: Token) -> Token:
    """Ends when the copies have been made."""


@_op
def engine_copy(
    source: Memory | Tile, window: Window | Tile, peer: Index, team: Team | None = None, *, count: Index | None = None
) -> None:
    """A copy by the copy engine, as a step of the host: what stands before it has ended on this rank when it begins.

    It orders nothing at the peer: a barrier or signal behind it does.
    """


# Channels.


@_op
def channel(
    length: int,
    dtype: Any,
    team: Team | None = None,
    *,
    pattern: str = "multicast",
    slots: int = 1,
    protocol: str = "ll",
) -> Channel:
    """Carries tiles of `length` elements between the ranks of a team, in `slots` places for each pair.

    `pattern` is "multicast" (a tile goes to all, its sender included), "pairwise" or "single" (to one rank, from one).
    In a launch a slot carries one tile from a source to a destination. `protocol` says how: "pull", "push", "ll", ….
    """


@_op
def send(tile: Tile, slot: Slot, peer: Index | None = None, valid: Index | None = None) -> None:
    """Sends a tile through a slot: to one peer, or (multicast) to all."""


@_op
def recv(slot: Slot, peer: Index, valid: Index | None = None) -> Tile:
    """Waits for the tile that a peer sent through a slot, and reads it."""


@_op
def channel_barrier(channel: Channel) -> None:
    """Ends a round of sends: every block passes it, and receives of the round may only follow it."""


# Checks.


@_op
def check_bounds(what: str, offset: Index, count: Index, limit: Index) -> None:
    """Ends the run with a BoundsError that has the text `what` when [offset, offset + count) leaves [0, limit)."""


# Collectives.

Region = Callable[..., Any]


class _Options(TypedDict, total=False):
    """What collectives take by name, besides what their kind takes."""

    outs: Any
    args: Any
    consume: Region | None
    produce: Region | None
    algorithm: str | None
    protocol: str | None


#: None is the default of the options but of `args`.
_DEFAULTS: dict[str, Any] = {name: None for name in _Options.__annotations__} | {"args": ()}

# Kinds of collectives: those that reduce have an `op`, those from or to one rank a `root`.


def _moves(x: Any, team: Any = None, **options: Unpack[_Options]) -> Any: ...
def _reduces(x: Any, team: Any = None, op: str = "sum", **options: Unpack[_Options]) -> Any: ...
def _has_root(x: Any, team: Any = None, root: int = 0, **options: Unpack[_Options]) -> Any: ...
def _reduces_to_root(x: Any, team: Any = None, op: str = "sum", root: int = 0, **options: Unpack[_Options]) -> Any: ...
def _varies(
    x: Any,
    team: Any = None,
    *,
    send_rows: Any,
    recv_rows: Any,
    max_rows: int | None = None,
    outs: Any = None,
    algorithm: str | None = None,
    protocol: str | None = None,
) -> Any: ...
def _from_to(
    x: Any, source: int, dest: int, team: Any = None, *, outs: Any = None, protocol: str | None = None
) -> Any: ...


def _collective(kind: F) -> Callable[[Callable[[], None]], F]:
    """A collective of the signature of `kind`; the function that is decorated has its name and documentation.

    Outside a kernel it runs on arrays: see host.py.
    """
    given = list(inspect.signature(kind).parameters.values())
    if given[-1].kind is inspect.Parameter.VAR_KEYWORD:
        types = {name: getattr(t, "__forward_arg__", t) for name, t in _Options.__annotations__.items()}
        given[-1:] = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
            for name, default in _DEFAULTS.items()
        ]
    signature = inspect.Signature(given, return_annotation=Any)

    def make(named: Callable[[], None]) -> F:
        name = named.__name__

        def collective(*args: Any, **keywords: Any) -> Any:
            from . import host

            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"commsir.{name}: {error}; it is {name}{_plain(signature)}") from None
            bound.apply_defaults()
            return host.collective(name, dict(bound.arguments))

        functools.update_wrapper(collective, named, ("__module__", "__name__", "__qualname__", "__doc__"))
        collective.__signature__ = signature  # type: ignore[attr-defined]
        del collective.__wrapped__  # type: ignore[attr-defined]
        ALL.append(collective)
        return typing.cast(F, collective)

    return make


def _plain(signature: inspect.Signature) -> inspect.Signature:
    """A signature without types, as errors show it."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return inspect.Signature(bare)


@_collective(_reduces)
def all_reduce() -> None:
    """Every rank gets the reduction over all ranks.

    In a kernel `x` is a window or array, or several; `outs` is written (without it `x`). `produce(*rows)` makes the
    tiles that travel of one row of every input, `consume(*reduced, *args)` the rows of the outputs. Ranks are combined
    in their order, narrow floats in f32. `op` is "sum", "prod", "min", "max", "avg", or of integers "and", "or", "xor".
    Outside a kernel `x` is a list of one array a rank; the reduced arrays are returned.
    """


@_collective(_reduces)
def reduce_scatter() -> None:
    """Rank r gets the r-th part of the reduction over all ranks: `outs` has 1/N of the rows of `x`."""


@_collective(_moves)
def all_gather() -> None:
    """Every rank gets the parts of all ranks, in rank order: `outs` has N times the rows of `x`."""


@_collective(_moves)
def all_to_all() -> None:
    """Rank r gets the r-th part of every rank, in rank order; `outs` has the shape of `x`."""


@_collective(_varies)
def all_to_all_v() -> None:
    """All-to-all with a number of rows for each pair of ranks, known at run time.

    `send_rows` (i32, one element a rank) are the rows for each rank, which lie one after the other in `x`, `recv_rows`
    those from each; no pair has more than `max_rows`.
    """


@_collective(_has_root)
def broadcast() -> None:
    """Every rank gets the root's array."""


@_collective(_reduces_to_root)
def reduce() -> None:
    """The root gets the reduction over all ranks; other outputs are left alone."""


@_collective(_has_root)
def gather() -> None:
    """The root gets the parts of all ranks, in rank order; other outputs are left alone."""


@_collective(_has_root)
def scatter() -> None:
    """Rank r gets the r-th part of the root's array."""


@_collective(_from_to)
def send_recv() -> None:
    """Rank `source` sends an array that rank `dest` receives; others do nothing."""


__all__ = [function.__name__ for function in ALL]
