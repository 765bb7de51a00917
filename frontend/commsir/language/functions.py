"""The functions of the kernel language, named as the ops of the dialect (docs/Spec.md): teams, memory, tiles, numbers.

Here are their signatures and what they do; inside a kernel `lowering` makes ops of them, outside they raise. What ranks
say to each other is in `communication` and `collectives`.
"""

# Their bodies are in `lowering`.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from .. import errors
from . import shared_parameters
from .parameters import Array, Index, Memory, Team, Tile, Token, Window

F = TypeVar("F", bound=Callable[..., Any])
# The functions of the language, with the collectives.
ALL: list[Callable[..., Any]] = []


def op(function: F) -> F:
    """A function of the language: its signature and documentation are those of `function`, which is never called."""

    @functools.wraps(function)
    def outside(*args: Any, **keywords: Any) -> Any:
        raise errors.UsageError(f"commsir.{function.__name__} works inside a function with @commsir.kernel")

    outside.__doc__ = shared_parameters.explain(
        function.__doc__ or "", inspect.signature(function), shared_parameters.MEANINGS
    )
    ALL.append(outside)
    return typing.cast(F, outside)


def plain(signature: inspect.Signature) -> inspect.Signature:
    """Returns the signature without types, as errors show it."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return inspect.Signature(bare)


# Teams and identity.


@op
def team(kind: str = "world") -> Team:
    """A team that always exists, by its `kind`: "world", "lsa" (ranks in load and store reach) or "rail"."""


@op
def team_split(team: Team, kind: str, factor: int) -> Team:
    """The part of a team that this rank belongs to, by its `kind`: "inner" (runs of `factor`) or "outer" (every
    `factor`-th).
    """


@op
def rank(team: Team | None = None) -> int:
    """This rank's number in a team (the world)."""


@op
def size(team: Team | None = None) -> int:
    """Number of ranks of a team (the world): a constant once the kernel is specialized to `ranks`."""


@op
def translate_rank(rank: Index, source: Team, to: Team) -> int:
    """Rank `rank` of the team `source` as a rank of the team `to`, which it must be in."""


@op
def block_id() -> int:
    """This block's number on its rank."""


@op
def num_blocks() -> int:
    """Number of blocks of each rank."""


@op
def epoch() -> int:
    """Number of this launch of the kernel: 1 at the first."""


@op
def for_peers(team: Team | None = None, reversed: bool = False) -> Iterator[int]:
    """`for peer in for_peers():` visits every other rank of a team, starting after this one."""


@op
def role(name: str, first: int, last: int) -> AbstractContextManager[None]:
    """`with role("send", 0, 2):` runs its body on blocks first, …, last - 1 of every rank.

    Other blocks skip it. Roles of different blocks run concurrently; there is no barrier at the end. `name` is for
    readers and messages.
    """


def static_range(*arguments: int) -> range:
    """A range of constants: the loop over it is unrolled."""
    return range(*arguments)


ALL.append(static_range)


# Windows and memory.


@op
def local(window: Window) -> Array:
    """This rank's own part of a window."""


@op
def peer(window: Window, peer: Index, team: Team | None = None) -> Array:
    """The part of a window on rank `peer` of a team (default: the world), as an array of the window's shape.

    What the peer wrote is seen, and what is written is seen there, only behind a signal and its wait, or a barrier.
    """


@op
def multimem(window: Window, team: Team | None = None) -> Array:
    """One address for all parts of a window, for the `multimem` functions: NVLink multicast."""


@op
def scratch(dtype: Any, *shape: int | tuple[int, ...], space: str = "") -> Array:
    """Memory private to this block while the kernel runs: `scratch(f32, 4, 64)`, `scratch(f32, (4, 64),
    space="shared")`.

    `space` is "" (global), "scratch" or "shared". What it holds at first is undefined; in a loop it is the same memory.
    """


# Tiles.


@op
def tile_load(
    memory: Memory, offset: Index, length: int, valid: Index | None = None, after: Token | None = None
) -> Tile:
    """`length` elements from `offset` on; those from `valid` on are zero and not touched."""


@op
def tile_store(tile: Tile, memory: Memory, offset: Index = 0, valid: Index | None = None) -> None:
    """Writes a tile, or its first `valid` elements, at an offset in elements, in the type of the memory."""


@op
def contract(
    lhs: Memory | Tile,
    rhs: Memory | Tile,
    acc: Memory | Tile,
    accumulate: bool = False,
    plus: Tile | Sequence[Tile] = (),
    scales: Sequence[Memory] = (),
) -> None:
    """Stores the product of two matrices in a part of an array, as `acc = lhs @ rhs` does; with `accumulate` adds it.

    All are parts of arrays: `contract(x[0:64], w, y[0:64, :])`. Sums are of f32. `plus` is a part of the product's
    size, or a tuple of them, added before it is rounded, as in `acc = lhs @ rhs + d`. `scales=(s, t)` are those of
    fp8 operands: whole arrays of f32, for the whole arrays of which the operands are parts. Of an array [m, k] on
    the left they are [m, k / 128], [m / 128, k / 128], [m, 1], [m / 128, 1], [1, k / 128] or [1, 1], rounded up; the
    same on the right, of [k, n]; and those of a transposed operand lie as its array does.
    """


@op
def row_reduce(op: str, tile: Tile) -> Tile:
    """Combines the elements of a tile: "sum", "prod", "min", "max", "avg", "and", "or" or "xor"."""


@op
def splat(value: Any, length: int, dtype: Any = None) -> Tile:
    """A tile of `length` elements that all equal a scalar, of its type or of `dtype`."""


@op
def full(length: int, value: Any, dtype: Any = None) -> Tile:
    """`splat`, with NumPy's name and order."""


@op
def zeros(length: int, dtype: Any = None) -> Tile:
    """A tile of `length` zeros, f32 or `dtype`."""


@op
def broadcast_row(tile: Tile, length: int) -> Tile:
    """A tile of one element, repeated `length` times. Arithmetic does this by itself."""


@op
def concatenate(tiles: Any) -> Tile:
    """Tiles one behind the other, in one type: `concatenate((a, b))`. A part of a tile is `t[8:16]`."""


@op
def iota(length: int, dtype: Any = None) -> Tile:
    """The tile 0, 1, 2, … of `length` elements, i32 or `dtype`."""


@op
def where(condition: Any, a: Any, b: Any) -> Tile:
    """Element by element, `a` where the condition holds, else `b`."""


@op
def minimum(a: Any, b: Any) -> Tile:
    """The lesser of two, element by element; a NaN wins."""


@op
def maximum(a: Any, b: Any) -> Tile:
    """The greater of two, element by element; a NaN wins."""


@op
def clip(a: Any, low: Any, high: Any) -> Tile:
    """`a` held between the bounds `low` and `high`, element by element; a NaN stays."""


@op
def fma(a: Any, b: Any, c: Any) -> Tile:
    """a * b + c, rounded once."""


@op
def cast(value: Any, dtype: Any) -> Tile:
    """A value in another type, as `tile.astype(dtype)`."""


@op
def bitcast(value: Any, dtype: Any) -> Tile:
    """The bits of a value as another type of the same width: `bitcast(x, i32)` of f32."""


def _unary(name: str, what: str) -> Callable[[Any], Tile]:
    def function(x: Any) -> Tile: ...

    function.__name__ = function.__qualname__ = name
    function.__doc__ = what
    return op(function)


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
isnan = _unary("isnan", "Whether x is not a number.")
isinf = _unary("isinf", "Whether x is infinite.")
isfinite = _unary("isfinite", "Whether x is a finite number.")


# Checks.


@op
def check_bounds(what: str, offset: Index, count: Index, limit: Index) -> None:
    """Ends the run with a BoundsError that has the text `what` when [offset, offset + count) leaves [0, limit)."""


__all__ = [function.__name__ for function in ALL]
